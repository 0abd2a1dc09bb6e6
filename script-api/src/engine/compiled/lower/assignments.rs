//! Assignments.

use std::rc::Rc;

use rhai::{BinaryExpr, Dynamic, Engine, EvalAltResult, Expr, OpAssignment, Position};

use super::{
    Lowered, Lowering, Variable, blocks::changeable, name_of, operators::Operator, unknown,
};
use crate::engine::compiled::{
    machine::{Code, Flow, Host, Machine, count},
    native::Native,
};

/// `=`, or an operator with it.
pub(super) struct Assignment {
    place: Position,
    combined: Option<Combined>,
}

/// An operator with `=`.
struct Combined {
    syntax: &'static str,
    /// The operator with `=`, and the one without, for types that only have that.
    whole: Native,
    builtin: Native,
    plain_builtin: Native,
    plain: Native,
    operator: Operator,
    builtins: Rc<Engine>,
    fast: bool,
}

impl Assignment {
    fn new(lowering: &Lowering<'_>, info: &OpAssignment) -> Self {
        let place = info.position();
        let fast = lowering.engine.fast_operators();
        let combined = info.get_op_assignment_info().map(
            |(whole_hash, plain_hash, whole_token, whole, plain_token, plain)| Combined {
                syntax: whole,
                // Where Rhai's own come first, they were asked before.
                whole: Native::new(whole, whole_hash, place)
                    .with_token((!fast).then_some(whole_token)),
                plain: Native::new(plain, plain_hash, place)
                    .with_token((!fast).then_some(plain_token)),
                plain_builtin: Native::new(plain, plain_hash, place),
                builtin: Native::new(whole, whole_hash, place),
                operator: Operator::of(plain),
                builtins: lowering.builtins.clone(),
                fast,
            },
        );
        Self { place, combined }
    }

    pub(super) fn place(&self) -> Position {
        self.place
    }

    pub(super) fn is_combined(&self) -> bool {
        self.combined.is_some()
    }

    pub(super) fn syntax(&self) -> &'static str {
        self.combined
            .as_ref()
            .map_or("=", |combined| combined.syntax)
    }

    /// Assigns `value` to `target`, which is, or lies in, the variable `root`.
    pub(super) fn run(
        &self,
        host: &mut Host<'_>,
        root: (&str, Position),
        target: &mut Dynamic,
        value: Dynamic,
    ) -> Flow<()> {
        if target.is_read_only() {
            let (name, place) = (root.0.to_owned(), root.1);
            return Err(EvalAltResult::ErrorAssignmentToConstant(name, place).into());
        }
        let Some(combined) = &self.combined else {
            *target = changeable(value);
            return Ok(());
        };
        combined.run(host, root.1, target, value)
    }
}

impl Combined {
    fn run(
        &self,
        host: &mut Host<'_>,
        root: Position,
        target: &mut Dynamic,
        mut value: Dynamic,
    ) -> Flow<()> {
        if self.fast {
            if let Some(result) = self.operator.direct(host.engine, target, &value) {
                *target = result;
                return Ok(());
            }
            let mut operands = [&mut *target, &mut value];
            if self
                .builtin
                .call_builtin(host, &self.builtins, &mut operands)?
                .is_some()
            {
                return Ok(());
            }
        }
        let whole = self.whole.call(host, &mut [&mut *target, &mut value], true);
        match whole {
            Ok(_) => {}
            Err(error) if is_missing(&error, self.syntax) => {
                *target = self.plain(host, target, &mut value)?;
            }
            Err(error) => return Err(error.into()),
        }
        host.fits(target, root)?;
        Ok(())
    }
}

impl Combined {
    /// The operator without `=`. What is registered comes first, as in each call of a function.
    fn plain(&self, host: &mut Host<'_>, target: &mut Dynamic, value: &mut Dynamic) -> Flow {
        let mut operands = [target, value];
        match self.plain.call(host, &mut operands, true) {
            Ok(called) => Ok(called.value),
            Err(error) if self.fast && is_missing(&error, self.plain.name()) => {
                let builtin =
                    self.plain_builtin
                        .call_builtin(host, &self.builtins, &mut operands)?;
                let value = builtin.ok_or(error)?;
                host.fits(&value, self.plain.place())?;
                Ok(value)
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn is_missing(error: &EvalAltResult, name: &str) -> bool {
    matches!(error, EvalAltResult::ErrorFunctionNotFound(found, _) if found.starts_with(name))
}

impl Lowering<'_> {
    pub(super) fn assignment(
        &mut self,
        info: &OpAssignment,
        sides: &BinaryExpr,
        place: Position,
    ) -> Lowered<Code> {
        let BinaryExpr { lhs, rhs } = sides;
        let assignment = Assignment::new(self, info);
        let value = self.expression(rhs)?;
        if !matches!(lhs, Expr::Variable(..)) {
            if matches!(lhs, Expr::ThisPtr(_)) {
                return unknown("`this`", place);
            }
            let chain = self.assigned_chain(lhs, value, assignment)?;
            return Ok(Box::new(move |machine: &mut Machine<'_>| {
                count(place)?;
                let _assigned = chain(machine)?;
                Ok(Dynamic::UNIT)
            }));
        }
        let root_place = lhs.position();
        let Variable::Local(number) = self.variable(lhs)? else {
            return unknown("an assignment to a constant", place);
        };
        let name = name_of(lhs);
        Ok(Box::new(move |machine: &mut Machine<'_>| {
            count(place)?;
            let value = value(machine)?.flatten();
            count(root_place)?;
            let number = machine.base + number;
            let target = &mut machine.locals[number];
            assignment.run(&mut machine.host, (&name, root_place), target, value)?;
            Ok(Dynamic::UNIT)
        }))
    }
}
