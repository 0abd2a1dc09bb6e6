//! `if` and `switch`.

use std::hash::{Hash, Hasher};

use ahash::{AHasher, HashMap, HashMapExt as _};
use rhai::{BinaryExpr, Dynamic, Expr, Position, RangeCase, Stmt, SwitchCasesCollection};
use smallvec::SmallVec;

use super::{Lowered, Lowering, unknown};
use crate::engine::compiled::machine::{Code, Flow, Machine, Test, count};

/// A branch of a `switch`: its condition, when it has one, and what it does.
struct Branch {
    condition: Option<Test>,
    /// Whether the condition is written out as `false`.
    never: bool,
    code: Code,
}

impl Branch {
    fn is_taken(&self, machine: &mut Machine<'_>) -> Flow<bool> {
        match &self.condition {
            Some(condition) => condition(machine),
            None => Ok(!self.never),
        }
    }
}

/// A `switch`.
struct Switch {
    value: Code,
    branches: Vec<Branch>,
    /// By the hash of the value, as Rhai does it.
    cases: HashMap<u64, SmallVec<[usize; 2]>>,
    ranges: Vec<RangeCase>,
    default: Option<usize>,
}

impl Switch {
    fn chosen(&self, machine: &mut Machine<'_>) -> Flow<Option<usize>> {
        let value = (self.value)(machine)?;
        if can_be_hashed(&value) {
            if let Some(branches) = self.cases.get(&hash(&value)) {
                for &index in branches {
                    if self.branches[index].is_taken(machine)? {
                        return Ok(Some(index));
                    }
                }
            }
            if !self.ranges.is_empty() {
                let value = value.flatten();
                for range in self.ranges.iter().filter(|range| range.contains(&value)) {
                    if self.branches[range.index()].is_taken(machine)? {
                        return Ok(Some(range.index()));
                    }
                }
            }
        }
        Ok(self.default)
    }
}

impl Lowering<'_> {
    /// `if` or `switch`.
    pub(super) fn choice(&mut self, statement: &Stmt) -> Lowered<Code> {
        match statement {
            Stmt::If(details, place) => {
                let condition = self.condition(&details.expr)?;
                let then = self.block(details.body.statements())?;
                let otherwise = if details.branch.is_empty() {
                    None
                } else {
                    Some(self.block(details.branch.statements())?)
                };
                Ok(conditional(condition, then, otherwise, *place))
            }
            Stmt::Switch(details, place) => self.switch(&details.0, &details.1, *place),
            _ => unknown("this statement", statement.position()),
        }
    }

    fn switch(
        &mut self,
        value: &Expr,
        cases: &SwitchCasesCollection,
        place: Position,
    ) -> Lowered<Code> {
        if !hashes_as_rhai(self.engine) {
            return unknown("`switch` (its hashes are not known)", place);
        }
        let value = self.expression(value)?;
        let mut branches = Vec::with_capacity(cases.expressions.len());
        for BinaryExpr { lhs, rhs } in &cases.expressions {
            let condition = match lhs {
                Expr::BoolConstant(..) => None,
                other => Some(self.condition(other)?),
            };
            branches.push(Branch {
                condition,
                never: matches!(lhs, Expr::BoolConstant(false, _)),
                code: self.expression(rhs)?,
            });
        }
        let mut by_hash = HashMap::with_capacity(cases.cases.len());
        for (hash, case) in &cases.cases {
            by_hash.insert(*hash, case.blocks.clone());
        }
        let switch = Switch {
            value,
            branches,
            cases: by_hash,
            ranges: cases.ranges.to_vec(),
            default: cases.def_case,
        };
        Ok(Box::new(move |machine: &mut Machine<'_>| {
            count(place)?;
            match switch.chosen(machine)? {
                Some(index) => (switch.branches[index].code)(machine),
                None => Ok(Dynamic::UNIT),
            }
        }))
    }
}

fn conditional(condition: Test, then: Code, otherwise: Option<Code>, place: Position) -> Code {
    match otherwise {
        None => Box::new(move |machine: &mut Machine<'_>| {
            count(place)?;
            if condition(machine)? {
                then(machine)
            } else {
                Ok(Dynamic::UNIT)
            }
        }),
        Some(otherwise) => Box::new(move |machine: &mut Machine<'_>| {
            count(place)?;
            if condition(machine)? {
                then(machine)
            } else {
                otherwise(machine)
            }
        }),
    }
}

/// The hash by which Rhai finds the cases of a value: that of a hasher with fixed keys.
fn hash(value: &Dynamic) -> u64 {
    let mut hasher = AHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Whether [`hash`] gives what Rhai put into its syntax trees. It does as long as both use the same
/// version of the hasher, which no type says.
fn hashes_as_rhai(engine: &rhai::Engine) -> bool {
    let Ok(ast) = engine.compile("switch 1 { 1 => 1, \"text\" => 2 }") else {
        return false;
    };
    ast.statements().iter().any(|statement| {
        let cases = match statement {
            Stmt::Switch(details, _) => &details.1,
            Stmt::Expr(expression) => match &**expression {
                Expr::Stmt(block) => match block.statements() {
                    [Stmt::Switch(details, _)] => &details.1,
                    _ => return false,
                },
                _ => return false,
            },
            _ => return false,
        };
        [Dynamic::from_int(1), "text".into()]
            .iter()
            .all(|value| cases.cases.contains_key(&hash(value)))
    })
}

/// Whether a value can be hashed at all; a value of our own types can't.
fn can_be_hashed(value: &Dynamic) -> bool {
    if value.is_variant() {
        return false;
    }
    if let Ok(array) = value.as_array_ref() {
        return array.iter().all(can_be_hashed);
    }
    if let Ok(map) = value.as_map_ref() {
        return map.values().all(can_be_hashed);
    }
    !value.is_fnptr()
        || value
            .read_lock::<rhai::FnPtr>()
            .is_some_and(|function| function.curry().iter().all(can_be_hashed))
}
