//! Loops.

use std::{
    ops::{Range, RangeInclusive},
    rc::Rc,
};

use super::{Lowered, Lowering, Traits, unknown};
use crate::engine::compiled::{
    iterators::Iterators,
    machine::{Code, Flow, Machine, Stop, Test, count, placed},
    numbers::{Ended, Loop},
};
use rhai::{
    ASTFlags, Array, Dynamic, EvalAltResult, Expr, FlowControl, INT, Ident, Position, Stmt,
};

/// Runs the body of a loop once. Gives the value of the loop when that was the last turn.
fn turn(body: &Code, machine: &mut Machine<'_>) -> Flow<Option<Dynamic>> {
    match body(machine) {
        Ok(_) | Err(Stop::Continue) => Ok(None),
        Err(Stop::Break(value)) => Ok(Some(value)),
        Err(stop) => Err(stop),
    }
}

impl Lowering<'_> {
    /// A loop, or what ends one.
    pub(super) fn repetition(&mut self, statement: &Stmt) -> Lowered<Code> {
        self.note(Traits { needs_stack: true });
        match statement {
            Stmt::BreakLoop(value, flags, place) => {
                self.loop_end(value.as_deref(), flags.contains(ASTFlags::BREAK), *place)
            }
            Stmt::For(details, place) => {
                let (name, counter, flow) = &**details;
                self.for_loop(name, counter.as_ref(), flow, *place)
            }
            Stmt::While(flow, place) => self.while_loop(flow, *place),
            Stmt::Do(flow, flags, place) => {
                self.do_loop(flow, flags.contains(ASTFlags::NEGATED), *place)
            }
            _ => unknown("this statement", statement.position()),
        }
    }

    fn loop_body(&mut self, flow: &FlowControl) -> Lowered<Code> {
        self.current().loops += 1;
        let body = self.block(flow.body.statements());
        self.current().loops -= 1;
        body
    }

    fn loop_end(&mut self, value: Option<&Expr>, breaks: bool, place: Position) -> Lowered<Code> {
        if self.current().loops == 0 {
            return unknown("`break` or `continue` outside of a loop", place);
        }
        let value = value.map(|value| self.expression(value)).transpose()?;
        Ok(Box::new(move |machine: &mut Machine<'_>| {
            count(place)?;
            let value = match &value {
                Some(value) => value(machine)?,
                None => Dynamic::UNIT,
            };
            Err(if breaks {
                Stop::Break(value)
            } else {
                Stop::Continue
            })
        }))
    }

    fn while_loop(&mut self, flow: &FlowControl, place: Position) -> Lowered<Code> {
        let is_endless = matches!(flow.expr, Expr::Unit(..) | Expr::BoolConstant(true, ..));
        let condition: Option<Test> = if is_endless {
            None
        } else {
            Some(self.condition(&flow.expr)?)
        };
        let asked = condition.as_ref().map(|_| &flow.expr);
        let numbers = self.numbers(None, asked, flow.body.statements());
        let is_empty = flow.body.is_empty();
        let body_place = flow.body.position();
        let body = self.loop_body(flow)?;
        let once = move |machine: &mut Machine<'_>| -> Flow<Option<Dynamic>> {
            match &condition {
                Some(condition) if !condition(machine)? => return Ok(Some(Dynamic::UNIT)),
                Some(_) if is_empty => return Ok(None),
                None if is_empty => {
                    count(body_place)?;
                    return Ok(None);
                }
                _ => {}
            }
            turn(&body, machine)
        };
        Ok(Box::new(move |machine: &mut Machine<'_>| {
            count(place)?;
            if let Some(numbers) = &numbers {
                let mut turns = std::iter::repeat(0);
                let ended = numbers.run(machine, &mut turns, |machine, _| once(machine))?;
                if let Ended::Done(value) = ended {
                    return Ok(value);
                }
            }
            loop {
                if let Some(value) = once(machine)? {
                    return Ok(value);
                }
            }
        }))
    }

    fn do_loop(&mut self, flow: &FlowControl, until: bool, place: Position) -> Lowered<Code> {
        let body = self.loop_body(flow)?;
        let is_empty = flow.body.is_empty();
        let condition = self.condition(&flow.expr)?;
        Ok(Box::new(move |machine: &mut Machine<'_>| {
            count(place)?;
            loop {
                if !is_empty {
                    match body(machine) {
                        Ok(_) => {}
                        // Rhai goes on without a look at the condition.
                        Err(Stop::Continue) => continue,
                        Err(Stop::Break(value)) => return Ok(value),
                        Err(stop) => return Err(stop),
                    }
                }
                if condition(machine)? == until {
                    return Ok(Dynamic::UNIT);
                }
            }
        }))
    }

    fn for_loop(
        &mut self,
        name: &Ident,
        counter: Option<&Ident>,
        flow: &FlowControl,
        place: Position,
    ) -> Lowered<Code> {
        let height = self.current().variables.len();
        if height + 1 >= self.engine.max_variables() {
            return unknown("so many variables", place);
        }
        let over = self.expression(&flow.expr)?;
        let has_counter = counter.is_some();
        if let Some(counter) = counter {
            self.current().variables.push(counter.name.clone());
        }
        self.current().variables.push(name.name.clone());
        let numbers = if has_counter {
            None
        } else {
            self.numbers(Some(name), None, flow.body.statements())
        };
        let body = self.loop_body(flow);
        self.current().variables.truncate(height);
        let repeated = Repeated {
            body: body?,
            is_empty: flow.body.is_empty(),
            body_place: flow.body.position(),
            has_counter,
            height,
            over_place: flow.expr.start_position(),
            item_place: flow.expr.position(),
            iterators: self.iterators.clone(),
            numbers,
        };
        Ok(Box::new(move |machine: &mut Machine<'_>| {
            count(place)?;
            let over = over(machine)?.flatten();
            let ended = repeated.over(over, machine);
            machine.forget_from(repeated.height);
            ended
        }))
    }
}

/// The body of a `for`.
struct Repeated {
    body: Code,
    is_empty: bool,
    body_place: Position,
    has_counter: bool,
    /// The number of the first variable of the loop.
    height: usize,
    /// Where what is gone over begins, and where it is.
    over_place: Position,
    item_place: Position,
    iterators: Rc<Iterators>,
    /// The same for whole numbers.
    numbers: Option<Loop>,
}

impl Repeated {
    fn over(&self, value: Dynamic, machine: &mut Machine<'_>) -> Flow {
        if value.is_array() {
            let items: Array = value.cast();
            return self.each(items.into_iter().map(Ok), machine);
        }
        if value.is::<Range<INT>>() {
            return self.each_number(value.cast::<Range<INT>>(), machine);
        }
        if value.is::<RangeInclusive<INT>>() {
            return self.each_number(value.cast::<RangeInclusive<INT>>(), machine);
        }
        let Some(items) = self.iterators.over(&value) else {
            return Err(EvalAltResult::ErrorFor(self.over_place).into());
        };
        self.each(items(value), machine)
    }

    fn each_number(
        &self,
        mut numbers: impl Iterator<Item = INT>,
        machine: &mut Machine<'_>,
    ) -> Flow {
        if let Some(in_registers) = &self.numbers {
            machine.locals.push(Dynamic::UNIT);
            let ended = in_registers.run(machine, &mut numbers, |machine, number| {
                *machine.local(self.height) = Dynamic::from_int(number);
                turn(&self.body, machine)
            })?;
            machine.forget_from(self.height);
            if let Ended::Done(value) = ended {
                return Ok(value);
            }
        }
        self.each(numbers.map(Dynamic::from_int).map(Ok), machine)
    }

    fn each(
        &self,
        items: impl Iterator<Item = Result<Dynamic, Box<EvalAltResult>>>,
        machine: &mut Machine<'_>,
    ) -> Flow {
        if self.has_counter {
            machine.locals.push(Dynamic::ZERO);
        }
        let variable = self.height + usize::from(self.has_counter);
        machine.locals.push(Dynamic::UNIT);
        for (index, item) in items.enumerate() {
            if self.is_empty {
                count(self.body_place)?;
                continue;
            }
            if self.has_counter {
                let index = INT::try_from(index).unwrap_or(INT::MAX);
                *machine.local(self.height) = Dynamic::from_int(index);
            }
            let item = item.map_err(|error| placed(error, self.item_place))?;
            *machine.local(variable) = item.flatten();
            if let Some(value) = turn(&self.body, machine)? {
                return Ok(value);
            }
        }
        Ok(Dynamic::UNIT)
    }
}
