//! Operators. What is usual (numbers, texts, what is absent) is done here and now; everything else by
//! Rhai's own operators and by those that are registered, in Rhai's order.
//!
//! Rhai has two ways. Usually its own operators come first, and are not counted. In a program that
//! orders values (see [`crate::engine::comparisons`]) registered ones come first, and an operator
//! is counted as a call is.

use std::{cmp::Ordering, rc::Rc};

use rhai::{Dynamic, Engine, EvalAltResult, Expr, FnCallExpr, INT, Position};

use super::{Lowered, Lowering, operands::Operands};
use crate::engine::compiled::{
    machine::{Code, Flow, Host, Machine, Test, count},
    native::Native,
};

/// An operator with two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Other,
}

impl Operator {
    pub(super) fn of(name: &str) -> Self {
        match name {
            "+" => Self::Add,
            "-" => Self::Subtract,
            "*" => Self::Multiply,
            "/" => Self::Divide,
            "%" => Self::Remainder,
            "==" => Self::Equal,
            "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            _ => Self::Other,
        }
    }

    /// What a comparison says of two things in this order; `None` when it is no comparison.
    fn holds(self, order: Ordering) -> Option<bool> {
        Some(match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
            _ => return None,
        })
    }

    /// A comparison that is decided by the types alone or is between two of the usual types.
    #[inline]
    fn compares(self, left: &Dynamic, right: &Dynamic) -> Option<bool> {
        if left.is_string() && right.is_string() {
            let left = left.as_immutable_string_ref().ok()?;
            let right = right.as_immutable_string_ref().ok()?;
            return match self {
                Self::Equal => Some(left.as_bytes() == right.as_bytes()),
                Self::NotEqual => Some(left.as_bytes() != right.as_bytes()),
                _ => self.holds(left.as_str().cmp(right.as_str())),
            };
        }
        if left.is_int() && right.is_int() {
            return self.holds(left.as_int().ok()?.cmp(&right.as_int().ok()?));
        }
        if left.is_unit() && right.is_unit() {
            return match self {
                Self::Equal => Some(true),
                Self::NotEqual => Some(false),
                _ => None,
            };
        }
        let one_is_absent =
            (left.is_string() && right.is_unit()) || (left.is_unit() && right.is_string());
        if one_is_absent {
            return match self {
                Self::Equal => Some(false),
                Self::NotEqual => Some(true),
                _ => None,
            };
        }
        if left.is_bool() && right.is_bool() {
            return self.holds(left.as_bool().ok()?.cmp(&right.as_bool().ok()?));
        }
        None
    }

    /// What comes of two numbers; `None` when that is no number of this size.
    #[inline]
    fn computes(self, left: INT, right: INT) -> Option<INT> {
        match self {
            Self::Add => left.checked_add(right),
            Self::Subtract => left.checked_sub(right),
            Self::Multiply => left.checked_mul(right),
            Self::Divide => left.checked_div(right),
            Self::Remainder => left.checked_rem(right),
            _ => None,
        }
    }

    /// The result for the usual types. `None`: somebody else has to say.
    #[inline]
    pub(super) fn direct(
        self,
        engine: &Engine,
        left: &Dynamic,
        right: &Dynamic,
    ) -> Option<Dynamic> {
        match self {
            Self::Other => None,
            Self::Add if left.is_string() && right.is_string() => {
                let left = left.as_immutable_string_ref().ok()?;
                let right = right.as_immutable_string_ref().ok()?;
                (left.len() + right.len() <= engine.max_string_size())
                    .then(|| (&*left + &*right).into())
            }
            Self::Add | Self::Subtract | Self::Multiply | Self::Divide | Self::Remainder => {
                if !(left.is_int() && right.is_int()) {
                    return None;
                }
                let (left, right) = (left.as_int().ok()?, right.as_int().ok()?);
                self.computes(left, right).map(Dynamic::from_int)
            }
            _ => self.compares(left, right).map(Dynamic::from_bool),
        }
    }
}

/// An operator at a place of the program.
struct Binary {
    operator: Operator,
    native: Native,
    builtins: Rc<Engine>,
    operands: Operands,
}

impl Binary {
    fn value(&self, machine: &mut Machine<'_>) -> Flow {
        self.operands.with(machine, |host, left, right| {
            match self.operator.direct(host.engine, left, right) {
                Some(value) => Ok(value),
                None => self.indirect(host, left.clone(), right.clone()),
            }
        })
    }

    fn indirect(&self, host: &mut Host<'_>, mut left: Dynamic, mut right: Dynamic) -> Flow {
        let mut operands = [&mut left, &mut right];
        let is_own_type = operands.iter().any(|operand| operand.is_variant());
        if !is_own_type {
            let builtin = self
                .native
                .call_builtin(host, &self.builtins, &mut operands)?;
            if let Some(value) = builtin {
                return Ok(value);
            }
        }
        Ok(self.native.call(host, &mut operands, false)?.value)
    }

    fn holds(&self, machine: &mut Machine<'_>, place: Position) -> Flow<bool> {
        self.operands.with(machine, |host, left, right| {
            if let Some(holds) = self.operator.compares(left, right) {
                return Ok(holds);
            }
            let value = self.indirect(host, left.clone(), right.clone())?;
            value
                .as_bool()
                .map_err(|found| host.mismatch("bool", found, place))
        })
    }
}

impl Lowering<'_> {
    /// A call of an operator with one side or two, when it is one and Rhai's own come first.
    pub(super) fn operator(&mut self, call: &FnCallExpr, place: Position) -> Lowered<Option<Code>> {
        if call.op_token.is_none() || !self.engine.fast_operators() {
            return Ok(None);
        }
        if let [operand] = &call.args[..] {
            return self.unary(call, operand, place).map(Some);
        }
        if let Some((value, places)) = self.fold(call) {
            return Ok(Some(Box::new(move |_: &mut Machine<'_>| {
                for place in &places {
                    count(*place)?;
                }
                Ok(value.clone())
            })));
        }
        let Some(binary) = self.binary(call, place)? else {
            return Ok(None);
        };
        Ok(Some(Box::new(move |machine: &mut Machine<'_>| {
            binary.value(machine)
        })))
    }

    /// The value of an operator between things that are written out, and the operations that it counts
    /// before. Functions are never called for that, least of all those that look at a request.
    fn fold(&self, call: &FnCallExpr) -> Option<(Dynamic, Vec<Position>)> {
        let [left, right] = &call.args[..] else {
            return None;
        };
        call.op_token.as_ref()?;
        let (left, mut places) = self.folded(left)?;
        let (right, others) = self.folded(right)?;
        places.extend(others);
        let value = Operator::of(&call.name).direct(self.engine, &left, &right)?;
        Some((value, places))
    }

    fn folded(&self, operand: &Expr) -> Option<(Dynamic, Vec<Position>)> {
        if let Some(value) = operand.get_literal_value(None) {
            return Some((value, vec![operand.start_position()]));
        }
        let Expr::FnCall(call, _) = operand else {
            return None;
        };
        let (value, others) = self.fold(call)?;
        let mut places = vec![operand.position()];
        places.extend(others);
        Some((value, places))
    }

    fn binary(&mut self, call: &FnCallExpr, place: Position) -> Lowered<Option<Binary>> {
        let [left, right] = &call.args[..] else {
            return Ok(None);
        };
        if self.functions.contains_key(&(call.name.as_str(), 2)) {
            // `in` calls `contains`, which a program may have.
            return super::unknown(
                format!("`{}` of the program as an operator", call.name),
                place,
            );
        }
        Ok(Some(Binary {
            operator: Operator::of(&call.name),
            native: Native::of(call, place),
            builtins: self.builtins.clone(),
            operands: self.operands(left, right)?,
        }))
    }

    fn unary(&mut self, call: &FnCallExpr, operand: &Expr, place: Position) -> Lowered<Code> {
        let operand = self.argument(operand)?;
        let native = Native::of(call, place);
        let (is_not, is_minus) = (&*call.name == "!", &*call.name == "-");
        Ok(Box::new(move |machine: &mut Machine<'_>| {
            let mut value = operand(machine)?.flatten();
            if is_not && let Ok(value) = value.as_bool() {
                return Ok(Dynamic::from_bool(!value));
            }
            if is_minus && value.is_int() {
                let number = value.as_int().unwrap_or_default();
                return number.checked_neg().map(Dynamic::from_int).ok_or_else(|| {
                    let overflow = "integer overflow".to_owned();
                    EvalAltResult::ErrorArithmetic(overflow, place).into()
                });
            }
            if is_minus && value.is_float() {
                return Ok(Dynamic::from_float(-value.as_float().unwrap_or_default()));
            }
            Ok(native
                .call(&mut machine.host, &mut [&mut value], false)?
                .value)
        }))
    }

    /// A comparison, `&&`, `||` or `!` as a condition: no value is made of it.
    pub(super) fn comparison(&mut self, expression: &Expr) -> Lowered<Option<Test>> {
        let place = expression.position();
        if let Expr::And(parts, _) | Expr::Or(parts, _) = expression {
            let all = matches!(expression, Expr::And(..));
            let parts = self.conditions(parts)?;
            return Ok(Some(Box::new(move |machine: &mut Machine<'_>| {
                count(place)?;
                for part in &parts {
                    if part(machine)? != all {
                        return Ok(!all);
                    }
                }
                Ok(all)
            })));
        }
        let Expr::FnCall(call, call_place) = expression else {
            return Ok(None);
        };
        let is_comparison = Operator::of(&call.name).holds(Ordering::Equal).is_some();
        if call.op_token.is_none() || !self.engine.fast_operators() || !is_comparison {
            return Ok(None);
        }
        let Some(binary) = self.binary(call, *call_place)? else {
            return Ok(None);
        };
        Ok(Some(Box::new(move |machine: &mut Machine<'_>| {
            count(place)?;
            binary.holds(machine, place)
        })))
    }
}
