//! Makes the second form of loops that only compute with whole numbers (`compiled::numbers`).
//!
//! What isn't known here makes no such form, and the general one runs all turns. Each operation of the
//! hook is counted as the general form does it; where doesn't matter, since nothing is looked at in between.

use rhai::{ASTFlags, Expr, FnCallExpr, Ident, Stmt};

use super::{Lowering, Variable as Found};
use crate::engine::compiled::numbers::{
    Assembler, Compare, Label, Loop, Op, Operands, Register, Variable,
};

impl Lowering<'_> {
    /// The second form of a loop. The variable of a `for` is `item`, the last one that is visible.
    pub(super) fn numbers(
        &mut self,
        item: Option<&Ident>,
        condition: Option<&Expr>,
        body: &[Stmt],
    ) -> Option<Loop> {
        if body.is_empty() || !self.engine.fast_operators() {
            return None;
        }
        let visible = self.current().variables.len();
        let mut maker = Maker {
            outside: visible - usize::from(item.is_some()),
            lowering: self,
            made: Assembler::default(),
            inside: Vec::new(),
        };
        let item = maker.turn(item.is_some(), condition, body);
        let Maker { made, .. } = maker;
        self.current().variables.truncate(visible);
        Some(Loop {
            program: made.end(),
            item: item?,
        })
    }
}

/// A variable of the loop or of its body.
struct Inside {
    local: usize,
    register: Register,
    is_constant: bool,
}

struct Maker<'l, 'p> {
    lowering: &'l mut Lowering<'p>,
    made: Assembler,
    /// The number of the first variable that isn't one of the hook around the loop.
    outside: usize,
    inside: Vec<Inside>,
}

impl Maker<'_, '_> {
    /// Makes the program; gives the register of the variable of a `for`.
    fn turn(
        &mut self,
        has_item: bool,
        condition: Option<&Expr>,
        body: &[Stmt],
    ) -> Option<Option<Register>> {
        let item = if has_item {
            let register = self.made.register()?;
            self.inside.push(Inside {
                local: self.outside,
                register,
                is_constant: false,
            });
            Some(register)
        } else {
            None
        };
        let end = self.made.label();
        if let Some(condition) = condition {
            self.branch(condition, false, end)?;
        }
        self.statements(body)?;
        if condition.is_some() {
            self.made.next();
            self.made.bind(end)?;
            self.made.last();
        }
        Some(item)
    }

    fn statements(&mut self, statements: &[Stmt]) -> Option<()> {
        let visible = self.lowering.current().variables.len();
        let inside = self.inside.len();
        for statement in statements {
            self.statement(statement)?;
            self.made.free_temporaries();
        }
        self.lowering.current().variables.truncate(visible);
        self.inside.truncate(inside);
        Some(())
    }

    fn statement(&mut self, statement: &Stmt) -> Option<()> {
        self.made.count()?;
        match statement {
            Stmt::Noop(_) => Some(()),
            Stmt::Block(block) => self.statements(block.statements()),
            Stmt::Assignment(assignment) => {
                let (info, sides) = &**assignment;
                let operator = match info.get_op_assignment_info() {
                    None => None,
                    Some((_, _, _, whole, _, plain)) => {
                        if self.is_own(whole) || self.is_own(plain) {
                            return None;
                        }
                        Some(computation(plain)?)
                    }
                };
                let value = self.number(&sides.rhs)?;
                self.made.count()?;
                let to = self.target(&sides.lhs)?;
                self.made.push(match operator {
                    Some(operator) => operator(Operands {
                        to,
                        left: to,
                        right: value,
                    }),
                    None => Op::Copy { to, from: value },
                });
                Some(())
            }
            Stmt::Var(details, flags, _) => {
                let (name, value, shadowed) = &**details;
                let variables = self.lowering.current().variables.len();
                if shadowed.is_some()
                    || flags.contains(ASTFlags::EXPORTED)
                    || variables >= self.lowering.engine.max_variables()
                {
                    return None;
                }
                let from = self.number(value)?;
                let register = self.made.register()?;
                let to = register;
                self.made.push(Op::Copy { to, from });
                self.inside.push(Inside {
                    local: variables,
                    register,
                    is_constant: flags.contains(ASTFlags::CONSTANT),
                });
                self.lowering.current().variables.push(name.name.clone());
                Some(())
            }
            Stmt::If(details, _) => {
                let (otherwise, behind) = (self.made.label(), self.made.label());
                self.branch(&details.expr, false, otherwise)?;
                self.statements(details.body.statements())?;
                if details.branch.is_empty() {
                    return self.made.bind(otherwise);
                }
                self.made.jump(behind);
                self.made.bind(otherwise)?;
                self.statements(details.branch.statements())?;
                self.made.bind(behind)
            }
            Stmt::BreakLoop(None, flags, _) => {
                if flags.contains(ASTFlags::BREAK) {
                    self.made.last();
                } else {
                    self.made.next();
                }
                Some(())
            }
            _ => None,
        }
    }

    /// The register with the value of an expression.
    fn number(&mut self, expression: &Expr) -> Option<Register> {
        self.made.count()?;
        if let Some(value) = expression.get_literal_value(None) {
            return self.made.constant(value.as_int().ok()?);
        }
        match expression {
            Expr::Variable(..) => match self.lowering.variable(expression).ok()? {
                Found::Global(value) => self.made.constant(value.as_int().ok()?),
                Found::Local(local) => self.variable(local),
            },
            Expr::FnCall(call, _) if call.op_token.is_some() && !self.is_own(&call.name) => {
                self.computed(call)
            }
            _ => None,
        }
    }

    fn computed(&mut self, call: &FnCallExpr) -> Option<Register> {
        let (operator, left, right) = match &call.args[..] {
            [left, right] => {
                let operator = computation(&call.name)?;
                (operator, self.number(left)?, self.number(right)?)
            }
            [operand] if call.name == "-" => {
                let operand = self.number(operand)?;
                (Op::Subtract as Computation, self.made.constant(0)?, operand)
            }
            _ => return None,
        };
        let to = self.made.temporary()?;
        self.made.push(operator(Operands { to, left, right }));
        Some(to)
    }

    /// Goes to a label if a condition holds, or if it doesn't.
    fn branch(&mut self, condition: &Expr, if_it: bool, target: Label) -> Option<()> {
        self.made.count()?;
        match condition {
            Expr::And(parts, _) => self.parts(parts, false, if_it, target),
            Expr::Or(parts, _) => self.parts(parts, true, if_it, target),
            Expr::FnCall(call, _) if call.op_token.is_some() && !self.is_own(&call.name) => {
                match &call.args[..] {
                    [operand] if call.name == "!" => self.branch(operand, !if_it, target),
                    [left, right] => {
                        let operator = comparison(&call.name)?;
                        let (left, right) = (self.number(left)?, self.number(right)?);
                        let operator = if if_it { operator.opposite() } else { operator };
                        self.made.unless(operator, left, right, target);
                        Some(())
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// `&&` and `||`: the first part that is `decides` decides.
    fn parts(&mut self, parts: &[Expr], decides: bool, if_it: bool, target: Label) -> Option<()> {
        let (last, others) = parts.split_last()?;
        if decides == if_it {
            for part in parts {
                self.branch(part, if_it, target)?;
            }
            return Some(());
        }
        let behind = self.made.label();
        for part in others {
            self.branch(part, decides, behind)?;
        }
        self.branch(last, if_it, target)?;
        self.made.bind(behind)
    }

    /// The register of a variable that is assigned to.
    fn target(&mut self, expression: &Expr) -> Option<Register> {
        if !matches!(expression, Expr::Variable(..)) {
            return None;
        }
        let Found::Local(local) = self.lowering.variable(expression).ok()? else {
            return None;
        };
        if let Some(inside) = self.inside.iter().find(|inside| inside.local == local) {
            return (!inside.is_constant).then_some(inside.register);
        }
        let register = self.variable(local)?;
        let mut variables = self.made.program.variables.iter_mut();
        variables
            .find(|variable| variable.local == local)?
            .is_changed = true;
        Some(register)
    }

    fn variable(&mut self, local: usize) -> Option<Register> {
        if let Some(inside) = self.inside.iter().find(|inside| inside.local == local) {
            return Some(inside.register);
        }
        // What isn't one of the loop's own stands outside of it.
        if local >= self.outside {
            return None;
        }
        let mut known = self.made.program.variables.iter();
        if let Some(variable) = known.find(|variable| variable.local == local) {
            return Some(variable.register);
        }
        let register = self.made.register()?;
        self.made.program.variables.push(Variable {
            local,
            register,
            is_changed: false,
        });
        Some(register)
    }

    /// Whether the program has an operator of this name.
    fn is_own(&self, name: &str) -> bool {
        [1, 2].iter().any(|&parameters| {
            let functions = self.lowering.functions;
            functions.contains_key(&(name, parameters))
        })
    }
}

/// Makes the operation of an operator.
type Computation = fn(Operands) -> Op;

fn computation(name: &str) -> Option<Computation> {
    Some(match name {
        "+" => Op::Add,
        "-" => Op::Subtract,
        "*" => Op::Multiply,
        "/" => Op::Divide,
        "%" => Op::Remainder,
        _ => return None,
    })
}

fn comparison(name: &str) -> Option<Compare> {
    Some(match name {
        "==" => Compare::Equal,
        "!=" => Compare::NotEqual,
        "<" => Compare::Less,
        "<=" => Compare::LessOrEqual,
        ">" => Compare::Greater,
        ">=" => Compare::GreaterOrEqual,
        _ => return None,
    })
}
