//! What is known when a hook fails.

use std::fmt;

use rhai::EvalAltResult;

use super::budget::{self, Exhausted};
use crate::diagnostic::{Diagnostic, Place};

/// The kind of a failure; a label of the metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The program made an error: an unknown value, a wrong type, `throw`, a wrong answer.
    Error,
    /// It used more operations than it may.
    Operations,
    /// It used more time than it may.
    Time,
    /// A value became larger, or calls nested deeper, than allowed.
    Memory,
    /// The interpreter itself failed.
    Panic,
}

impl FailureKind {
    /// Its name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Operations => "operations",
            Self::Time => "time",
            Self::Memory => "memory",
            Self::Panic => "panic",
        }
    }
}

/// Why a hook gave no verdict. The request that it belongs to ends with a 500.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What kind.
    pub kind: FailureKind,
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
    pub(super) fn misuse(place: &Place, message: impl Into<String>) -> Self {
        Self {
            kind: FailureKind::Error,
            place: place.clone(),
            message: message.into(),
        }
    }

    /// Takes over Rhai's error; `hook` is the place of the hook, for errors that have none.
    pub(super) fn from_rhai(error: &EvalAltResult, hook: &Place) -> Self {
        let found = Diagnostic::from_eval_error(error, &hook.file);
        let (kind, message) = match (innermost(error), budget::exhausted()) {
            (EvalAltResult::ErrorTerminated(..), Some(Exhausted::Operations)) => (
                FailureKind::Operations,
                "more operations than `[script] operations` allows".to_owned(),
            ),
            (EvalAltResult::ErrorTerminated(..), Some(Exhausted::Time)) => (
                FailureKind::Time,
                "more time than `[script] time` allows".to_owned(),
            ),
            (EvalAltResult::ErrorStackOverflow(..), _) => (
                FailureKind::Memory,
                "calls nested deeper than `[script] call_depth` allows".to_owned(),
            ),
            (EvalAltResult::ErrorDataTooLarge(..) | EvalAltResult::ErrorTooManyVariables(..), _) => {
                (FailureKind::Memory, found.message)
            }
            _ => (FailureKind::Error, found.message),
        };
        Self {
            kind,
            place: found.place.unwrap_or_else(|| hook.clone()),
            message: one_line(&message),
        }
    }
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
