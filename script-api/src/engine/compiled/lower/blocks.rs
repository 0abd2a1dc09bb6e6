//! Blocks and statements.

use rhai::{ASTFlags, Dynamic, EvalAltResult, Expr, Ident, Position, Stmt};

use super::{Lowered, Lowering, unknown};
use crate::engine::compiled::machine::{Code, Flow, Machine, Stop, count};

impl Lowering<'_> {
    /// A block with a scope of its own. Its value is that of its last statement.
    pub(super) fn block(&mut self, statements: &[Stmt]) -> Lowered<Code> {
        let height = self.current().variables.len();
        let code = statements
            .iter()
            .map(|statement| self.statement(statement))
            .collect::<Lowered<Vec<_>>>();
        let declares = self.current().variables.len() > height;
        self.current().variables.truncate(height);
        let mut code = code?;
        if !declares {
            return Ok(match code.len() {
                0 => Box::new(|_: &mut Machine<'_>| Ok(Dynamic::UNIT)),
                1 => code.remove(0),
                _ => Box::new(move |machine: &mut Machine<'_>| sequence(&code, machine)),
            });
        }
        Ok(Box::new(move |machine: &mut Machine<'_>| {
            let ended = sequence(&code, machine);
            machine.forget_from(height);
            ended
        }))
    }

    fn statement(&mut self, statement: &Stmt) -> Lowered<Code> {
        let place = statement.position();
        Ok(match statement {
            Stmt::Noop(_) => Box::new(move |_: &mut Machine<'_>| {
                count(place)?;
                Ok(Dynamic::UNIT)
            }),
            Stmt::Expr(expression) => {
                let value = self.expression(expression)?;
                Box::new(move |machine: &mut Machine<'_>| {
                    count(place)?;
                    value(machine).map(Dynamic::flatten)
                })
            }
            Stmt::FnCall(call, call_place) => {
                let value = self.call(call, *call_place)?;
                Box::new(move |machine: &mut Machine<'_>| {
                    count(place)?;
                    value(machine)
                })
            }
            Stmt::Block(block) => {
                let block = self.block(block.statements())?;
                Box::new(move |machine: &mut Machine<'_>| {
                    count(place)?;
                    block(machine)
                })
            }
            Stmt::Assignment(assignment) => self.assignment(&assignment.0, &assignment.1, place)?,
            Stmt::Var(details, flags, _) => {
                let (name, value, shadowed) = &**details;
                if shadowed.is_some() || flags.contains(ASTFlags::EXPORTED) {
                    return unknown("a variable that takes the place of another one", place);
                }
                self.declaration(name, value, flags.contains(ASTFlags::CONSTANT), place)?
            }
            Stmt::If(..) | Stmt::Switch(..) => self.choice(statement)?,
            Stmt::Return(value, flags, _) => {
                self.end(value.as_deref(), flags.contains(ASTFlags::BREAK), place)?
            }
            Stmt::For(..) | Stmt::While(..) | Stmt::Do(..) | Stmt::BreakLoop(..) => {
                self.repetition(statement)?
            }
            Stmt::TryCatch(..) => return unknown("`try`", place),
            Stmt::Share(..) => return unknown("a closure that captures a variable", place),
            _ => return unknown("this statement", place),
        })
    }

    fn declaration(
        &mut self,
        name: &Ident,
        value: &Expr,
        is_constant: bool,
        place: Position,
    ) -> Lowered<Code> {
        if self.current().variables.len() >= self.engine.max_variables() {
            return unknown("so many variables", place);
        }
        let value = self.expression(value)?;
        self.current().variables.push(name.name.clone());
        Ok(Box::new(move |machine: &mut Machine<'_>| {
            count(place)?;
            let value = value(machine)?.flatten();
            machine.locals.push(if is_constant {
                value.into_read_only()
            } else {
                changeable(value)
            });
            Ok(Dynamic::UNIT)
        }))
    }

    /// `return` and `throw`.
    fn end(&mut self, value: Option<&Expr>, throws: bool, place: Position) -> Lowered<Code> {
        let value = value.map(|value| self.expression(value)).transpose()?;
        let value = move |machine: &mut Machine<'_>| -> Flow {
            count(place)?;
            match &value {
                Some(value) => value(machine).map(Dynamic::flatten),
                None => Ok(Dynamic::UNIT),
            }
        };
        if throws {
            return Ok(Box::new(move |machine: &mut Machine<'_>| {
                let value = value(machine)?;
                Err(EvalAltResult::ErrorRuntime(value, place).into())
            }));
        }
        Ok(Box::new(move |machine: &mut Machine<'_>| {
            Err(Stop::Return(value(machine)?))
        }))
    }
}

fn sequence(code: &[Code], machine: &mut Machine<'_>) -> Flow {
    let mut value = Dynamic::UNIT;
    for statement in code {
        value = statement(machine)?;
    }
    Ok(value)
}

/// A value as a variable holds it: that it came from a constant doesn't matter any more.
pub(super) fn changeable(value: Dynamic) -> Dynamic {
    if value.is_read_only() {
        // A copy can be changed.
        value.clone()
    } else {
        value
    }
}
