//! Chains of properties, methods and indices: `req.params.id`, `res.header("x").trim()`, `a[0].b`.
//!
//! As in Rhai, all arguments and indices of a chain have their values before the chain is walked.

use rhai::{ASTFlags, BinaryExpr, Expr, FnCallExpr, Position};

use super::{
    Lowered, Lowering, Variable,
    calls::Values,
    detour::Detour,
    expressions::counted,
    name_of,
    one_step::OneStep,
    parts::{Argument, Counted, Kind, Link, Origin, Root},
    unknown,
    walk::{Change, Walk},
};
use crate::engine::compiled::{
    direct::Direct,
    lent::Lent,
    machine::{Code, Machine, count},
    native::Native,
};

/// Names of methods that Rhai does something of its own with.
const SPECIAL: [&str; 3] = ["call", "curry", "is_shared"];

/// A chain that is being taken apart.
#[derive(Default)]
struct Parts {
    arguments: Vec<Argument>,
    /// Operations that are counted before the next argument.
    counted: Counted,
    links: Vec<Link>,
}

/// A chain that has been taken apart.
struct Chain {
    arguments: Vec<Argument>,
    /// Operations that are counted behind the last argument.
    counted: Counted,
    root: Root,
    walk: Walk,
}

impl Chain {
    /// Its value, counted at `place`.
    fn read(mut self, place: Position) -> Code {
        let direct = match &mut self.walk.links[..] {
            [only] if !only.ends_when_absent => only.take_direct(),
            _ => None,
        };
        let Some((direct, native_place)) = direct else {
            return counted(self.code(None), place);
        };
        let Self {
            arguments,
            counted,
            root,
            walk,
        } = self;
        let step = OneStep::new(
            direct,
            native_place,
            walk,
            (place, arguments, counted),
            &root,
        );
        step.from(root)
    }

    /// Any chain, whose end is read or assigned to.
    fn code(self, change: Option<(Code, Change)>) -> Code {
        let Self {
            arguments,
            counted,
            root,
            walk,
        } = self;
        Box::new(move |machine: &mut Machine<'_>| {
            let mut change = match &change {
                Some((value, change)) => Some((value(machine)?.flatten(), change)),
                None => None,
            };
            let mut values = Values::new();
            for argument in &arguments {
                for place in &argument.counted {
                    count(*place)?;
                }
                values.push((argument.value)(machine)?.flatten());
            }
            for place in &counted {
                count(*place)?;
            }
            let walked = match &root {
                Root::Local { number, place } => {
                    count(*place)?;
                    let number = machine.base + *number;
                    let variable = &mut machine.locals[number];
                    if variable.is_shared() {
                        let mut copy = variable.clone().flatten();
                        walk.from(
                            &mut machine.host,
                            &mut copy,
                            false,
                            &mut values,
                            &mut change,
                        )
                    } else {
                        walk.from(&mut machine.host, variable, true, &mut values, &mut change)
                    }
                }
                Root::Global { value, place } => {
                    count(*place)?;
                    let host = &mut machine.host;
                    value.with(|value| walk.from(host, value, false, &mut values, &mut change))
                }
                Root::Value(value) => {
                    let mut value = value(machine)?.flatten();
                    walk.from(
                        &mut machine.host,
                        &mut value,
                        false,
                        &mut values,
                        &mut change,
                    )
                }
            };
            walked.map(|walked| walked.value)
        })
    }
}

impl Lowering<'_> {
    /// A chain as an expression: counted, then its value.
    pub(super) fn chain(&mut self, expression: &Expr) -> Lowered<Code> {
        let place = expression.position();
        let chain = self.taken_apart(expression, None)?;
        Ok(chain.read(place))
    }

    /// A chain whose end is assigned to.
    pub(super) fn assigned_chain(
        &mut self,
        expression: &Expr,
        value: Code,
        change: Change,
    ) -> Lowered<Code> {
        let operator = Some((change.syntax(), change.place()));
        let chain = self.taken_apart(expression, operator)?;
        Ok(chain.code(Some((value, change))))
    }

    fn taken_apart(
        &mut self,
        expression: &Expr,
        operator: Option<(&str, Position)>,
    ) -> Lowered<Chain> {
        let (Expr::Dot(sides, ..) | Expr::Index(sides, ..)) = expression else {
            return unknown("this expression", expression.position());
        };
        let BinaryExpr { lhs, rhs } = &**sides;
        let mut parts = Parts::default();
        let is_simple = match (rhs, expression) {
            (Expr::Property(..), _) => true,
            (Expr::MethodCall(call, _), Expr::Dot(..)) => call.args.is_empty(),
            (index, Expr::Index(..)) => index.get_literal_value(None).is_some(),
            _ => false,
        };
        self.link(expression, rhs, is_simple, operator, &mut parts)?;
        Ok(Chain {
            arguments: parts.arguments,
            counted: parts.counted,
            root: self.root(lhs)?,
            walk: Walk {
                links: parts.links,
                root_name: name_of(lhs),
                root_place: lhs.start_position(),
            },
        })
    }

    fn root(&mut self, expression: &Expr) -> Lowered<Root> {
        let place = expression.position();
        if !matches!(expression, Expr::Variable(..)) {
            return self.expression(expression).map(Root::Value);
        }
        Ok(match self.variable(expression)? {
            Variable::Local(number) => Root::Local { number, place },
            Variable::Global(value) => Root::Global {
                value: Lent::new(value),
                place,
            },
        })
    }

    /// Takes the rest of a chain apart: `parent` is the operator that leads to it.
    fn link(
        &mut self,
        parent: &Expr,
        rest: &Expr,
        is_simple: bool,
        operator: Option<(&str, Position)>,
        parts: &mut Parts,
    ) -> Lowered<()> {
        let flags = parent.options();
        let ends_when_absent = flags.contains(ASTFlags::NEGATED);
        let operator_place = parent.position();
        if !is_simple {
            parts.counted.push(rest.position());
        }
        let (step, more) = match (rest, parent) {
            (Expr::Dot(sides, ..) | Expr::Index(sides, ..), Expr::Dot(..)) => {
                (&sides.lhs, Some(&sides.rhs))
            }
            (Expr::Dot(sides, ..) | Expr::Index(sides, ..), _)
                if !flags.contains(ASTFlags::BREAK) =>
            {
                (&sides.lhs, Some(&sides.rhs))
            }
            _ => (rest, None),
        };
        let kind = match (step, parent) {
            (Expr::Property(names, place), Expr::Dot(..)) => {
                let ((get, get_hash), (set, set_hash), name) = &**names;
                Kind::Property {
                    name: name.clone(),
                    get: Native::new(get.clone(), *get_hash, *place),
                    direct: Direct::property(name),
                    set: Native::new(set.clone(), *set_hash, *place),
                    operator_place,
                }
            }
            (Expr::MethodCall(call, place), Expr::Dot(..)) => self.method(call, *place, parts)?,
            (index, Expr::Index(..)) => {
                let value = if is_simple {
                    let literal = index.get_literal_value(None).unwrap_or_default();
                    Box::new(move |_: &mut Machine<'_>| Ok(literal.clone())) as Code
                } else {
                    self.expression(index)?
                };
                let place = index.start_position();
                let detour = |assigned| Detour::new(self.engine, assigned, place, operator_place);
                let kind = Kind::Index {
                    value: parts.arguments.len(),
                    place,
                    rare: detour(None)?,
                    back: detour(Some(("=", operator_place)))?,
                    assign: match (operator, more) {
                        (Some(operator), None) => Some(detour(Some(operator))?),
                        _ => None,
                    },
                };
                let counted = std::mem::take(&mut parts.counted);
                parts.arguments.push(Argument {
                    counted,
                    value,
                    origin: Origin::Made,
                });
                kind
            }
            _ => return unknown("this chain", step.position()),
        };
        parts.links.push(Link {
            kind,
            ends_when_absent,
        });
        match more {
            Some(more) => self.link(rest, more, false, operator, parts),
            None => Ok(()),
        }
    }

    fn method(&mut self, call: &FnCallExpr, place: Position, parts: &mut Parts) -> Lowered<Kind> {
        let name = call.name.as_str();
        if SPECIAL.contains(&name) {
            return unknown(format!("`.{name}()`"), place);
        }
        let count = call.args.len();
        // A function of the program comes before a native one, with `this` or with one argument more.
        let own = [count, count + 1].map(|count| self.functions.contains_key(&(name, count)));
        if own.contains(&true) {
            return unknown(format!("the function `{name}` as a method"), place);
        }
        self.note_native(name, &call.args);
        if !call.namespace.is_empty() {
            return unknown("a method of a module", place);
        }
        let first = parts.arguments.len();
        let mut written = Vec::with_capacity(count);
        for (argument, value) in call.args.iter().zip(self.arguments(&call.args)?) {
            let literal = argument.get_literal_value(None);
            let origin = match argument {
                _ if literal.is_some() => Origin::Written(argument.start_position()),
                Expr::Variable(..) => match self.variable(argument)? {
                    Variable::Local(number) => Origin::Local {
                        number,
                        place: argument.position(),
                    },
                    Variable::Global(_) => Origin::Made,
                },
                _ => Origin::Made,
            };
            parts.arguments.push(Argument {
                counted: std::mem::take(&mut parts.counted),
                value,
                origin,
            });
            written.push(literal);
        }
        Ok(Kind::Method {
            native: Native::of(call, place),
            direct: Direct::method(name, &written),
            arguments: first..first + count,
        })
    }
}
