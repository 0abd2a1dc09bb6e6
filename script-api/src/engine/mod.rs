//! Running hooks.
//!
//! Each worker thread has an [`Interpreter`] of its own, without locks. It is made off the request
//! path from the program's source and its frozen constants; it never runs the top level again.

mod absent;
mod answer_api;
mod budget;
pub(crate) mod by_name;
mod collections;
mod comparisons;
mod current;
mod failure;
mod hooks;
mod interpreter;
mod request_api;
pub(crate) mod resolver;
mod response_api;
pub(crate) mod sandbox;
mod text_api;
mod value_api;

pub use budget::{Limits, MemoryCounter, count_memory_with};
pub use failure::{Failure, FailureKind, ScriptLimit};
pub use hooks::{Choice, Verdict};
pub use interpreter::Interpreter;
pub use request_api::REQUEST_PROPERTIES;
pub use response_api::RESPONSE_PROPERTIES;

pub(crate) use answer_api::ScriptAnswer;
pub(crate) use budget::{Exhausted, exhausted, start as start_budget};
pub(crate) use current::{NativeResult, error as native_error};
