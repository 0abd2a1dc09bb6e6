//! Calls in the style of functions: `f(a, b)`.

use std::rc::Rc;

use rhai::{Dynamic, EvalAltResult, Expr, FnCallExpr, ImmutableString, Position};
use smallvec::SmallVec;

use super::{Compiled, Lowered, Lowering, Traits, Variable, operators::Operator, unknown};
use crate::engine::{
    compiled::{
        lent::Lent,
        machine::{Code, Flow, Host, Machine, Stop, count},
        native::{Called, Native},
    },
    coroutine,
};

/// Arguments of a call.
pub(super) type Values = SmallVec<[Dynamic; 4]>;

/// Names that Rhai does something of its own with.
const SPECIAL: [&str; 8] = [
    "Fn",
    "call",
    "curry",
    "eval",
    "is_def_fn",
    "is_def_var",
    "is_shared",
    "this",
];

/// The first argument of a call, which natives get by reference when it is a variable.
enum First {
    Local { number: usize, place: Position },
    Global { value: Lent, place: Position },
    Value(Code),
}

impl Lowering<'_> {
    /// A call, without the operation that an expression counts.
    pub(super) fn call(&mut self, call: &FnCallExpr, place: Position) -> Lowered<Code> {
        if let Some(operator) = self.operator(call, place)? {
            return Ok(operator);
        }
        if !call.namespace.is_empty() {
            return unknown(format!("a function of a module (`{}`)", call.name), place);
        }
        if call.capture_parent_scope {
            return unknown("a call with `!`", place);
        }
        let is_operator = call.op_token.is_some();
        let name = call.name.as_str();
        if !is_operator {
            if SPECIAL.contains(&name) {
                return unknown(format!("`{name}`"), place);
            }
            if let Some(function) = self.functions.get(&(name, call.args.len())).copied() {
                let compiled = self.function(function)?;
                return self.own_call(call, compiled, place);
            }
        } else if self.functions.contains_key(&(name, call.args.len())) {
            return unknown(format!("`{name}` of the program as an operator"), place);
        }
        self.note_native(name, &call.args);
        self.native_call(call, place)
    }

    /// Notes what a native function can do that matters to who runs the hook.
    pub(super) fn note_native(&mut self, name: &str, arguments: &[Expr]) {
        let calls_back = arguments.iter().any(|argument| {
            let value = argument.get_literal_value(None);
            value.is_some_and(|value| value.is_fnptr())
        });
        if coroutine::may_wait(name) || calls_back {
            self.note(Traits { needs_stack: true });
        }
    }

    fn first(&mut self, argument: &Expr) -> Lowered<First> {
        let place = argument.position();
        if !matches!(argument, Expr::Variable(..)) {
            return self.argument(argument).map(First::Value);
        }
        Ok(match self.variable(argument)? {
            Variable::Local(number) => First::Local { number, place },
            Variable::Global(value) => {
                if value.is_fnptr() {
                    self.note(Traits { needs_stack: true });
                }
                First::Global {
                    value: Lent::new(value),
                    place,
                }
            }
        })
    }

    pub(super) fn arguments(&mut self, arguments: &[Expr]) -> Lowered<Vec<Code>> {
        for argument in arguments {
            if let Expr::Variable(..) = argument
                && let Ok(Variable::Global(value)) = self.variable(argument)
                && value.is_fnptr()
            {
                // Who is given a function calls it.
                self.note(Traits { needs_stack: true });
            }
        }
        arguments
            .iter()
            .map(|argument| self.argument(argument))
            .collect()
    }

    fn native_call(&mut self, call: &FnCallExpr, place: Position) -> Lowered<Code> {
        let native = Native::of(call, place);
        let operator = Operator::of(&call.name);
        let Some((first, rest)) = call.args.split_first() else {
            return Ok(Box::new(move |machine: &mut Machine<'_>| {
                Ok(native.call(&mut machine.host, &mut [], false)?.value)
            }));
        };
        let first = self.first(first)?;
        let rest = self.arguments(rest)?;
        if call.name == "type_of" && rest.is_empty() {
            return Ok(type_of(first));
        }
        let has_direct = call.op_token.is_some() && rest.len() == 1 && operator != Operator::Other;
        Ok(Box::new(move |machine: &mut Machine<'_>| {
            let by_value = match &first {
                First::Local { place, .. } | First::Global { place, .. } => {
                    count(*place)?;
                    None
                }
                First::Value(value) => Some(value(machine)?.flatten()),
            };
            let mut values = Values::new();
            for argument in &rest {
                values.push(argument(machine)?.flatten());
            }
            match (&first, by_value) {
                (First::Local { number, .. }, _) => {
                    let number = machine.base + *number;
                    let variable = &mut machine.locals[number];
                    if has_direct
                        && let Some(value) =
                            direct(&machine.host, &native, operator, variable, &values)?
                    {
                        return Ok(value);
                    }
                    if variable.is_read_only() || variable.is_shared() {
                        let mut copy = variable.clone().flatten();
                        let host = &mut machine.host;
                        return Ok(called(host, &native, &mut copy, &mut values, false)?.value);
                    }
                    let host = &mut machine.host;
                    Ok(called(host, &native, variable, &mut values, true)?.value)
                }
                (First::Global { value, .. }, _) => value.with(|value| {
                    let host = &mut machine.host;
                    Ok(called(host, &native, value, &mut values, false)?.value)
                }),
                (First::Value(_), Some(mut value)) => {
                    if has_direct
                        && let Some(value) =
                            direct(&machine.host, &native, operator, &value, &values)?
                    {
                        return Ok(value);
                    }
                    let host = &mut machine.host;
                    Ok(called(host, &native, &mut value, &mut values, false)?.value)
                }
                (First::Value(_), None) => Ok(Dynamic::UNIT),
            }
        }))
    }

    /// A call of a function of the program.
    fn own_call(
        &mut self,
        call: &FnCallExpr,
        compiled: Compiled,
        place: Position,
    ) -> Lowered<Code> {
        let arguments = call
            .args
            .iter()
            .enumerate()
            .map(|(index, argument)| match argument {
                // Counted at once, read when all others have their values.
                Expr::Variable(..) if index == 0 => self.first(argument),
                _ => self.argument(argument).map(First::Value),
            })
            .collect::<Lowered<Vec<_>>>()?;
        let name = call.name.clone();
        let source = self.source.clone();
        let compiled = Rc::downgrade(&compiled);
        let parameters = arguments.len();
        if parameters > self.engine.max_variables() {
            return unknown("so many arguments", place);
        }
        Ok(Box::new(move |machine: &mut Machine<'_>| {
            let mut values = Values::with_capacity(parameters);
            for argument in &arguments {
                values.push(match argument {
                    First::Value(value) => value(machine)?.flatten(),
                    First::Local { place, .. } | First::Global { place, .. } => {
                        count(*place)?;
                        Dynamic::UNIT
                    }
                });
            }
            match arguments.first() {
                Some(First::Local { number, .. }) => {
                    values[0] = machine.local(*number).clone().flatten();
                }
                Some(First::Global { value, .. }) => values[0] = value.copy().flatten(),
                _ => {}
            }
            let compiled = compiled.upgrade();
            let Some(body) = compiled.as_ref().and_then(|compiled| compiled.get()) else {
                return Err(EvalAltResult::from(format!("`{name}` is not there yet")).into());
            };
            if body.is_empty {
                return Ok(Dynamic::UNIT);
            }
            let orig_source = std::mem::replace(&mut machine.host.global.source, source.clone());
            machine.host.global.level += 1;
            let ended = run(machine, &body.code, values, place);
            machine.host.global.level -= 1;
            let ended = match ended {
                Ok(value) | Err(Stop::Return(value)) => Ok(value),
                Err(Stop::Failed(error)) => Err(in_call(error, &name, machine, place)),
                Err(other) => Err(other),
            };
            machine.host.global.source = orig_source;
            ended
        }))
    }
}

/// Runs the body of a function of the program with its arguments as its first variables.
fn run(machine: &mut Machine<'_>, body: &Code, values: Values, place: Position) -> Flow {
    count(place)?;
    if machine.host.global.level > machine.host.engine.max_call_levels() {
        return Err(EvalAltResult::ErrorStackOverflow(place).into());
    }
    let base = std::mem::replace(&mut machine.base, machine.locals.len());
    machine.locals.extend(values);
    let ended = body(machine);
    machine.locals.truncate(machine.base);
    machine.base = base;
    ended
}

/// An error that comes out of a function, as the interpreter passes it on.
#[cold]
fn in_call(
    mut error: Box<EvalAltResult>,
    name: &ImmutableString,
    machine: &Machine<'_>,
    place: Position,
) -> Stop {
    if error.is_system_exception() {
        error.set_position(place);
        return Stop::Failed(error);
    }
    let source = machine.host.global.source().unwrap_or("").to_owned();
    EvalAltResult::ErrorInFunctionCall(name.to_string(), source, error, place).into()
}

fn type_of(first: First) -> Code {
    fn name(host: &Host<'_>, value: &Dynamic) -> Dynamic {
        let name = host.engine.map_type_name(value.type_name());
        ImmutableString::from(name).into()
    }
    Box::new(move |machine: &mut Machine<'_>| match &first {
        First::Local { number, place } => {
            count(*place)?;
            let number = machine.base + *number;
            Ok(name(&machine.host, &machine.locals[number]))
        }
        First::Global { value, place } => {
            count(*place)?;
            Ok(value.with(|value| name(&machine.host, value)))
        }
        First::Value(value) => {
            let value = value(machine)?.flatten();
            Ok(name(&machine.host, &value))
        }
    })
}

/// The result of an operator that is counted as a call.
#[inline]
fn direct(
    host: &Host<'_>,
    native: &Native,
    operator: Operator,
    left: &Dynamic,
    right: &[Dynamic],
) -> Flow<Option<Dynamic>> {
    let direct = right
        .first()
        .and_then(|right| operator.direct(host.engine, left, right));
    if direct.is_some() {
        count(native.place())?;
    }
    Ok(direct)
}

/// Calls a native function with a first argument and others.
pub(super) fn called(
    host: &mut Host<'_>,
    native: &Native,
    first: &mut Dynamic,
    rest: &mut [Dynamic],
    by_reference: bool,
) -> Flow<Called> {
    let called = match rest {
        [] => native.call(host, &mut [first], by_reference),
        [second] => native.call(host, &mut [first, second], by_reference),
        [second, third] => native.call(host, &mut [first, second, third], by_reference),
        _ => {
            let mut all: Vec<&mut Dynamic> = std::iter::once(first).chain(rest).collect();
            native.call(host, &mut all, by_reference)
        }
    };
    Ok(called?)
}
