//! Chains of one step that is known for the types that it usually gets: `req.path`,
//! `req.header("host")`, `KEYS.get(key)`.

use rhai::{Dynamic, Position};

use super::{
    calls::Values,
    operands::Operand,
    parts::{Argument, Counted, Origin, Root},
    walk::Walk,
};
use crate::engine::compiled::{
    direct::Direct,
    machine::{Code, Flow, Host, Machine, count, count_all},
};

/// The step.
pub(super) struct OneStep {
    direct: Direct,
    place: Position,
    /// Counted before the argument that isn't written out has its value.
    before: Counted,
    argument: Option<Operand>,
    /// Counted after it.
    after: Counted,
    /// The same step for other types.
    walk: Walk,
}

impl OneStep {
    /// Counted are the place of the chain, then the arguments with what belongs to them, then the operations
    /// behind the last one.
    pub(super) fn new(
        direct: Direct,
        place: Position,
        walk: Walk,
        (chain_place, arguments, counted): (Position, Vec<Argument>, Counted),
        root: &Root,
    ) -> Self {
        let mut before = Counted::new();
        before.push(chain_place);
        let mut open = None;
        for argument in arguments {
            before.extend(argument.counted);
            // What makes the root could change a variable.
            let stays = !matches!(root, Root::Value(_));
            open = match argument.origin {
                Origin::Written(place) => {
                    before.push(place);
                    continue;
                }
                Origin::Local { number, place } if stays => Some(Operand::Local { number, place }),
                _ => Some(Operand::Made(argument.value)),
            };
        }
        let mut after = counted;
        if open.is_none() {
            before.append(&mut after);
        }
        Self {
            direct,
            place,
            before,
            argument: open,
            after,
            walk,
        }
    }

    /// The step as code.
    pub(super) fn from(self, root: Root) -> Code {
        match root {
            Root::Local { number, place } => Box::new(move |machine: &mut Machine<'_>| {
                let made = self.begin(machine)?;
                count(place)?;
                let number = machine.base + number;
                let argument = self.argument(&made, machine);
                let target = &machine.locals[number];
                if let Some(ended) = self.go(&machine.host, target, argument) {
                    return ended;
                }
                let argument = argument.clone().flatten();
                let variable = &mut machine.locals[number];
                if variable.is_shared() {
                    let mut copy = variable.clone().flatten();
                    return self.rarely(&mut machine.host, &mut copy, false, argument);
                }
                self.rarely(&mut machine.host, variable, true, argument)
            }),
            Root::Global { value, place } => Box::new(move |machine: &mut Machine<'_>| {
                let made = self.begin(machine)?;
                count(place)?;
                value.with(|target| {
                    let argument = self.argument(&made, machine);
                    if let Some(ended) = self.go(&machine.host, target, argument) {
                        return ended;
                    }
                    let argument = argument.clone().flatten();
                    self.rarely(&mut machine.host, target, false, argument)
                })
            }),
            Root::Value(value) => Box::new(move |machine: &mut Machine<'_>| {
                let argument = self.begin(machine)?;
                let mut target = value(machine)?.flatten();
                if let Some(ended) = self.go(&machine.host, &target, &argument) {
                    return ended;
                }
                self.rarely(&mut machine.host, &mut target, false, argument)
            }),
        }
    }

    /// Counts what comes before the root, and makes the argument if that has to be made.
    #[inline]
    fn begin(&self, machine: &mut Machine<'_>) -> Flow {
        count_all(&self.before)?;
        let Some(argument) = &self.argument else {
            return Ok(Dynamic::UNIT);
        };
        let made = argument.begin(machine)?;
        count_all(&self.after)?;
        Ok(made)
    }

    /// The argument that isn't written out, or what was made instead of one.
    #[inline]
    fn argument<'v>(&'v self, made: &'v Dynamic, machine: &'v Machine<'_>) -> &'v Dynamic {
        match &self.argument {
            Some(argument) => argument.value(made, machine.locals, machine.base),
            None => made,
        }
    }

    #[inline]
    fn go(&self, host: &Host<'_>, target: &Dynamic, argument: &Dynamic) -> Option<Flow> {
        self.direct.call(host, self.place, target, argument)
    }

    #[cold]
    fn rarely(
        &self,
        host: &mut Host<'_>,
        target: &mut Dynamic,
        by_reference: bool,
        argument: Dynamic,
    ) -> Flow {
        let mut values: Values = self.direct.written.iter().cloned().collect();
        if self.argument.is_some() {
            values.push(argument);
        }
        let walked = self
            .walk
            .from(host, target, by_reference, &mut values, &mut None);
        Ok(walked?.value)
    }
}
