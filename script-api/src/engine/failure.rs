//! What is known when a hook fails.

use std::fmt;

use rhai::EvalAltResult;

use super::budget::{self, Exhausted};
use crate::{
    diagnostic::{Diagnostic, Place},
    source::Source,
};

/// The kind of a failure; a label of the metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FailureKind {
    /// The program made an error: an unknown value, a wrong type, `throw`, a wrong answer.
    Error,
    /// It used more operations than it may.
    Operations,
    /// It used more time than it may.
    Time,
    /// A value became larger, or calls nested deeper, than allowed.
    Memory,
    /// Too many calls to other services, or too many hooks that wait for some.
    Waiting,
    /// The interpreter itself failed.
    Panic,
}

impl FailureKind {
    /// All of them, in the order of their discriminants.
    pub const ALL: [Self; 6] = [
        Self::Error,
        Self::Operations,
        Self::Time,
        Self::Memory,
        Self::Waiting,
        Self::Panic,
    ];

    /// Its name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Operations => "operations",
            Self::Time => "time",
            Self::Memory => "memory",
            Self::Waiting => "waiting",
            Self::Panic => "panic",
        }
    }
}

/// The limit of `[script]` that a hook ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScriptLimit {
    /// `operations`
    Operations,
    /// `time`, or a second on the clock
    Time,
    /// `memory`
    Memory,
    /// `call_depth`
    CallDepth,
    /// `string`
    String,
    /// `items`, or the number of variables
    Items,
    /// `fetches`
    Fetches,
    /// `waiting`, or `waiting_memory`
    Waiting,
}

/// Why a hook gave no verdict. The request that it belongs to ends with a 500.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What kind.
    pub kind: FailureKind,
    /// The limit that it ran into, if it was one.
    pub limit: Option<ScriptLimit>,
    /// Where in the program.
    pub place: Place,
    /// What happened, in one line.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// A failure that the program made by what it answered.
    pub fn misuse(place: &Place, message: impl Into<String>) -> Self {
        Self {
            kind: FailureKind::Error,
            limit: None,
            place: place.clone(),
            message: message.into(),
        }
    }

    /// The failure of a call that ended well although something ran out.
    pub(super) fn exhausted(hook: &Place) -> Option<Self> {
        let limit = exhausted_limit()?;
        Some(Self {
            kind: kind_of(Some(limit)),
            limit: Some(limit),
            place: hook.clone(),
            message: message_of(limit).unwrap_or_default().to_owned(),
        })
    }

    /// Takes over Rhai's error in `source`; `hook` is the place of the hook, for errors that have
    /// none.
    pub(super) fn from_rhai(error: &EvalAltResult, source: &Source, hook: &Place) -> Self {
        let mut found = Diagnostic::from_eval_error(error, source);
        let place = found.place.get_or_insert_with(|| hook.clone()).clone();
        source.make_readable(&mut found);
        let limit = limit_of(innermost(error));
        let message = limit.and_then(message_of).unwrap_or(&found.message);
        Self {
            kind: kind_of(limit),
            limit,
            place,
            message: one_line(message),
        }
    }
}

fn kind_of(limit: Option<ScriptLimit>) -> FailureKind {
    match limit {
        None => FailureKind::Error,
        Some(ScriptLimit::Operations) => FailureKind::Operations,
        Some(ScriptLimit::Time) => FailureKind::Time,
        Some(
            ScriptLimit::Memory | ScriptLimit::CallDepth | ScriptLimit::String | ScriptLimit::Items,
        ) => FailureKind::Memory,
        Some(ScriptLimit::Fetches | ScriptLimit::Waiting) => FailureKind::Waiting,
    }
}

/// What is said instead of Rhai's own words, which don't name the limit.
fn message_of(limit: ScriptLimit) -> Option<&'static str> {
    match limit {
        ScriptLimit::Operations => Some("more operations than `[script] operations` allows"),
        ScriptLimit::Time => Some("more time than `[script] time` allows"),
        ScriptLimit::Memory => Some("more memory than `[script] memory` allows"),
        ScriptLimit::CallDepth => Some("calls nested deeper than `[script] call_depth` allows"),
        ScriptLimit::Fetches => Some("more calls than `[script] fetches` allows"),
        ScriptLimit::Waiting => Some(
            "more hooks wait than `[script] waiting` allows, or hold more than `waiting_memory`",
        ),
        ScriptLimit::String | ScriptLimit::Items => None,
    }
}

fn exhausted_limit() -> Option<ScriptLimit> {
    Some(match budget::exhausted()? {
        Exhausted::Operations => ScriptLimit::Operations,
        Exhausted::Time => ScriptLimit::Time,
        Exhausted::Memory => ScriptLimit::Memory,
        Exhausted::Stack => ScriptLimit::CallDepth,
        Exhausted::Fetches => ScriptLimit::Fetches,
        Exhausted::Waiting => ScriptLimit::Waiting,
    })
}

fn limit_of(error: &EvalAltResult) -> Option<ScriptLimit> {
    Some(match error {
        EvalAltResult::ErrorTerminated(..) => return exhausted_limit(),
        EvalAltResult::ErrorStackOverflow(..) => ScriptLimit::CallDepth,
        EvalAltResult::ErrorDataTooLarge(what, _) if what.contains("string") => ScriptLimit::String,
        EvalAltResult::ErrorDataTooLarge(..) | EvalAltResult::ErrorTooManyVariables(..) => {
            ScriptLimit::Items
        }
        _ => return None,
    })
}

fn innermost(error: &EvalAltResult) -> &EvalAltResult {
    match error {
        EvalAltResult::ErrorInFunctionCall(_, _, inner, _)
        | EvalAltResult::ErrorInModule(_, inner, _) => innermost(inner),
        other => other,
    }
}

/// A message that can't forge a second log line.
fn one_line(message: &str) -> String {
    message
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
