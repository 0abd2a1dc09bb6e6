//! What a compiled hook runs on.

use rhai::{Dynamic, Engine, EvalAltResult, GlobalRuntimeState, Position};

use crate::engine::{budget, progress};

/// How an expression or statement ends: with a value, or with something that ends more than itself.
pub(super) type Flow<T = Dynamic> = Result<T, Stop>;

/// What ends more than one expression.
#[derive(Debug)]
pub(super) enum Stop {
    /// An error.
    Failed(Box<EvalAltResult>),
    /// `return`: the function ends with this value.
    Return(Dynamic),
    /// `break`: the loop ends with this value.
    Break(Dynamic),
    /// `continue`: the next turn of the loop.
    Continue,
}

impl From<Box<EvalAltResult>> for Stop {
    fn from(error: Box<EvalAltResult>) -> Self {
        Self::Failed(error)
    }
}

impl From<EvalAltResult> for Stop {
    fn from(error: EvalAltResult) -> Self {
        Self::Failed(Box::new(error))
    }
}

/// An expression or statement, compiled.
pub(super) type Code = Box<dyn Fn(&mut Machine<'_>) -> Flow>;

/// A condition, compiled.
pub(super) type Test = Box<dyn Fn(&mut Machine<'_>) -> Flow<bool>>;

/// What native functions see of the interpreter.
pub(super) struct Host<'a> {
    pub(super) engine: &'a Engine,
    pub(super) global: &'a mut GlobalRuntimeState,
}

/// The state of one call of a hook: its local variables, and those of the functions that it calls.
pub(super) struct Machine<'a> {
    pub(super) host: Host<'a>,
    /// Of all functions that run; those of the innermost from `base` on.
    pub(super) locals: &'a mut Vec<Dynamic>,
    pub(super) base: usize,
}

impl Machine<'_> {
    /// The local variable with this number.
    #[inline(always)]
    pub(super) fn local(&mut self, number: usize) -> &mut Dynamic {
        &mut self.locals[self.base + number]
    }

    /// Forgets all local variables of the running function from this number on.
    pub(super) fn forget_from(&mut self, number: usize) {
        self.locals.truncate(self.base + number);
    }
}

/// Counts one operation, as the interpreter does it at `place`.
///
/// # Errors
/// When the hook may have no more.
#[inline(always)]
pub(super) fn count(place: Position) -> Result<(), Box<EvalAltResult>> {
    match progress::tick() {
        None => Ok(()),
        Some(token) => Err(terminated(token, place)),
    }
}

/// Counts one operation at each of these places, in their order, between which nothing else happens.
///
/// # Errors
/// When the hook may have no more.
#[inline(always)]
pub(super) fn count_all(places: &[Position]) -> Result<(), Box<EvalAltResult>> {
    if budget::count_at_once(places.len() as u64) {
        return Ok(());
    }
    count_each(places)
}

#[cold]
fn count_each(places: &[Position]) -> Result<(), Box<EvalAltResult>> {
    places.iter().try_for_each(|place| count(*place))
}

#[cold]
fn terminated(token: Dynamic, place: Position) -> Box<EvalAltResult> {
    Box::new(EvalAltResult::ErrorTerminated(token, place))
}

/// Says where an error happened, unless it says it itself.
#[cold]
pub(super) fn placed(mut error: Box<EvalAltResult>, place: Position) -> Box<EvalAltResult> {
    if error.position().is_none() {
        error.set_position(place);
    }
    error
}

impl Host<'_> {
    /// Whether a value is as large as it may be, at most.
    ///
    /// # Errors
    /// When it is larger.
    #[inline]
    pub(super) fn fits(&self, value: &Dynamic, place: Position) -> Result<(), Box<EvalAltResult>> {
        if value.is_unit() || value.is_bool() || value.is_int() {
            return Ok(());
        }
        self.measured(value, place)
    }

    fn measured(&self, value: &Dynamic, place: Position) -> Result<(), Box<EvalAltResult>> {
        if let Ok(text) = value.as_immutable_string_ref()
            && text.len() <= self.engine.max_string_size()
        {
            return Ok(());
        }
        if !(value.is_string()
            || value.is_array()
            || value.is_map()
            || value.is_blob()
            || value.is_shared())
        {
            return Ok(());
        }
        self.engine
            .ensure_data_size_within_limits(value)
            .map_err(|error| placed(error, place))
    }

    /// The error of a value that isn't of the type that is wanted here.
    #[cold]
    pub(super) fn mismatch(&self, wanted: &str, found: &str, place: Position) -> Stop {
        let wanted = self.engine.map_type_name(wanted).to_owned();
        EvalAltResult::ErrorMismatchDataType(wanted, found.to_owned(), place).into()
    }
}
