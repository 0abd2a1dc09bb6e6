//! The two sides of an operator. What lies in a variable or is written out is looked at where it lies.

use rhai::{Dynamic, Expr, Position};

use super::{Lowered, Lowering, Variable};
use crate::engine::compiled::machine::{Code, Flow, Host, Machine, count};

/// Both sides.
pub(super) struct Operands {
    left: Operand,
    right: Operand,
}

/// One of them, or an argument of a call.
pub(super) enum Operand {
    Local { number: usize, place: Position },
    Written { value: Dynamic, place: Position },
    Made(Code),
}

impl Lowering<'_> {
    /// The sides of an operator, which have their values in this order.
    pub(super) fn operands(&mut self, left: &Expr, right: &Expr) -> Lowered<Operands> {
        let is_simple =
            matches!(right, Expr::Variable(..)) || right.get_literal_value(None).is_some();
        let left = if is_simple {
            self.operand(left)?
        } else {
            // What makes the right side could change the variable that is the left one.
            Operand::Made(self.argument(left)?)
        };
        let right = self.operand(right)?;
        Ok(Operands { left, right })
    }

    fn operand(&mut self, expression: &Expr) -> Lowered<Operand> {
        if let Some(value) = expression.get_literal_value(None) {
            let place = expression.start_position();
            return Ok(Operand::Written { value, place });
        }
        if matches!(expression, Expr::Variable(..))
            && let Variable::Local(number) = self.variable(expression)?
        {
            let place = expression.position();
            return Ok(Operand::Local { number, place });
        }
        self.argument(expression).map(Operand::Made)
    }
}

impl Operands {
    /// Gives both values to `look`.
    #[inline]
    pub(super) fn with<R>(
        &self,
        machine: &mut Machine<'_>,
        look: impl FnOnce(&mut Host<'_>, &Dynamic, &Dynamic) -> Flow<R>,
    ) -> Flow<R> {
        let made_left = self.left.begin(machine)?;
        let made_right = self.right.begin(machine)?;
        let (locals, base) = (&machine.locals[..], machine.base);
        let left = self.left.value(&made_left, locals, base);
        let right = self.right.value(&made_right, locals, base);
        if left.is_shared() || right.is_shared() {
            let (left, right) = (left.clone().flatten(), right.clone().flatten());
            return look(&mut machine.host, &left, &right);
        }
        look(&mut machine.host, left, right)
    }
}

impl Operand {
    /// Counts it, and makes it when it has to be made.
    #[inline]
    pub(super) fn begin(&self, machine: &mut Machine<'_>) -> Flow {
        match self {
            Self::Local { place, .. } | Self::Written { place, .. } => {
                count(*place)?;
                Ok(Dynamic::UNIT)
            }
            Self::Made(code) => Ok(code(machine)?.flatten()),
        }
    }

    #[inline]
    /// What it is: `made` is what [`Operand::begin`] gave.
    pub(super) fn value<'v>(
        &'v self,
        made: &'v Dynamic,
        locals: &'v [Dynamic],
        base: usize,
    ) -> &'v Dynamic {
        match self {
            Self::Local { number, .. } => &locals[base + *number],
            Self::Written { value, .. } => value,
            Self::Made(_) => made,
        }
    }
}
