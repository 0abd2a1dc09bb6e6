//! Expressions that aren't calls or chains.

use std::fmt::Write as _;

use rhai::{Dynamic, Expr, Position, Stmt, ThinVec};

use super::{Lowered, Lowering, Variable, unknown};
use crate::engine::compiled::{
    machine::{Code, Machine, Test, count},
    native::Native,
};

impl Lowering<'_> {
    /// An expression: counted, then its value.
    pub(super) fn expression(&mut self, expression: &Expr) -> Lowered<Code> {
        let place = expression.position();
        if let Some(value) = simple_constant(expression) {
            return Ok(constant(value, place));
        }
        Ok(match expression {
            Expr::Variable(..) => self.read(expression)?,
            Expr::Stmt(block) => {
                let block = self.block(block.statements())?;
                counted(block, place)
            }
            Expr::FnCall(call, call_place) => {
                let call = self.call(call, *call_place)?;
                counted(call, place)
            }
            Expr::Dot(..) | Expr::Index(..) => self.chain(expression)?,
            Expr::And(parts, _) => self.all_or_any(parts, true, place)?,
            Expr::Or(parts, _) => self.all_or_any(parts, false, place)?,
            Expr::Coalesce(parts, _) => self.coalesce(parts, place)?,
            Expr::InterpolatedString(parts, _) => self.interpolated(parts, place)?,
            Expr::Array(items, _) => self.array(items, place)?,
            Expr::Map(entries, _) => self.map(entries, place)?,
            Expr::ThisPtr(_) => return unknown("`this`", place),
            _ => return unknown("this expression", place),
        })
    }

    /// An argument of a call: what is written out is one operation, however large it is.
    pub(super) fn argument(&mut self, expression: &Expr) -> Lowered<Code> {
        match expression.get_literal_value(None) {
            Some(value) => Ok(constant(value, expression.start_position())),
            None => self.expression(expression),
        }
    }

    /// An expression that must be a bool.
    pub(super) fn condition(&mut self, expression: &Expr) -> Lowered<Test> {
        if let Some(test) = self.comparison(expression)? {
            return Ok(test);
        }
        let place = expression.position();
        let value = self.expression(expression)?;
        Ok(Box::new(move |machine: &mut Machine<'_>| {
            let value = value(machine)?;
            value
                .as_bool()
                .map_err(|found| machine.host.mismatch("bool", found, place))
        }))
    }

    /// The value of a variable.
    fn read(&mut self, expression: &Expr) -> Lowered<Code> {
        let place = expression.position();
        Ok(match self.variable(expression)? {
            Variable::Local(number) => Box::new(move |machine: &mut Machine<'_>| {
                count(place)?;
                Ok(machine.local(number).clone())
            }),
            Variable::Global(value) => {
                let is_read_only = value.is_read_only();
                Box::new(move |_: &mut Machine<'_>| {
                    count(place)?;
                    let value = value.clone();
                    Ok(if is_read_only {
                        value.into_read_only()
                    } else {
                        value
                    })
                })
            }
        })
    }

    fn all_or_any(&mut self, parts: &[Expr], all: bool, place: Position) -> Lowered<Code> {
        let parts = self.conditions(parts)?;
        Ok(Box::new(move |machine: &mut Machine<'_>| {
            count(place)?;
            for part in &parts {
                if part(machine)? != all {
                    return Ok(Dynamic::from_bool(!all));
                }
            }
            Ok(Dynamic::from_bool(all))
        }))
    }

    pub(super) fn conditions(&mut self, parts: &[Expr]) -> Lowered<Vec<Test>> {
        parts.iter().map(|part| self.condition(part)).collect()
    }

    fn coalesce(&mut self, parts: &[Expr], place: Position) -> Lowered<Code> {
        let parts = parts
            .iter()
            .map(|part| self.expression(part))
            .collect::<Lowered<Vec<_>>>()?;
        Ok(Box::new(move |machine: &mut Machine<'_>| {
            count(place)?;
            for part in &parts {
                let value = part(machine)?;
                if !value.is_unit() {
                    return Ok(value);
                }
            }
            Ok(Dynamic::UNIT)
        }))
    }

    fn interpolated(&mut self, parts: &ThinVec<Expr>, place: Position) -> Lowered<Code> {
        struct Part {
            value: Code,
            place: Position,
            print: Native,
        }
        let hash = self.hash_of_to_string(place)?;
        let parts = parts
            .iter()
            .map(|part| {
                Ok(Part {
                    value: self.expression(part)?,
                    place: part.position(),
                    print: Native::new("to_string", hash, part.position()),
                })
            })
            .collect::<Lowered<Vec<_>>>()?;
        Ok(Box::new(move |machine: &mut Machine<'_>| {
            count(place)?;
            let mut text = String::new();
            for part in &parts {
                let mut value = (part.value)(machine)?.flatten();
                if let Ok(plain) = value.as_immutable_string_ref() {
                    text.push_str(&plain);
                } else {
                    let engine = machine.host.engine;
                    let printed = part.print.call(&mut machine.host, &mut [&mut value], true);
                    match printed {
                        Ok(printed) => match printed.value.as_immutable_string_ref() {
                            Ok(printed) => text.push_str(&printed),
                            Err(found) => text.push_str(engine.map_type_name(found)),
                        },
                        // As the interpreter does it: what can't be printed has a name at least.
                        Err(_) => {
                            let mut shown = String::new();
                            let _ = write!(shown, "{value}");
                            text.push_str(engine.map_type_name(&shown));
                        }
                    }
                }
                if text.len() > machine.host.engine.max_string_size() {
                    return Err(super::literals::too_long(part.place));
                }
            }
            Ok(text.into())
        }))
    }

    /// What the name of the function that prints values is for Rhai.
    fn hash_of_to_string(&self, place: Position) -> Lowered<u64> {
        let ast = self.engine.compile("to_string(0)");
        let statement = ast.as_ref().ok().and_then(|ast| ast.statements().first());
        match statement {
            Some(Stmt::FnCall(call, _)) => Ok(call.hashes.native()),
            Some(Stmt::Expr(expression)) => match &**expression {
                Expr::FnCall(call, _) => Ok(call.hashes.native()),
                _ => unknown("a text with values", place),
            },
            _ => unknown("a text with values", place),
        }
    }
}

/// The value of a constant that the interpreter takes as it is.
fn simple_constant(expression: &Expr) -> Option<Dynamic> {
    match expression {
        Expr::DynamicConstant(..)
        | Expr::IntegerConstant(..)
        | Expr::FloatConstant(..)
        | Expr::CharConstant(..)
        | Expr::StringConstant(..)
        | Expr::BoolConstant(..)
        | Expr::Unit(..) => expression.get_literal_value(None),
        _ => None,
    }
}

fn constant(value: Dynamic, place: Position) -> Code {
    Box::new(move |_: &mut Machine<'_>| {
        count(place)?;
        Ok(value.clone())
    })
}

pub(super) fn counted(code: Code, place: Position) -> Code {
    Box::new(move |machine: &mut Machine<'_>| {
        count(place)?;
        code(machine)
    })
}
