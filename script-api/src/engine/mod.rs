//! Running hooks.
//!
//! Each worker thread has an [`Interpreter`] of its own, without locks. It is made off the request
//! path from the program's source and its frozen constants; it never runs the top level again.
//!
//! A hook runs on a stack of its own ([`Running`]), so that it can be suspended where it stands:
//! while a call to another service is made, and to give others a turn.

mod absent;
mod answer_api;
mod attempt_api;
mod blob_api;
mod body_api;
mod budget;
pub(crate) mod by_name;
mod clock;
pub(crate) mod coding_api;
mod collections;
mod comparisons;
mod compiled;
mod cookie_api;
mod coroutine;
mod current;
mod data;
mod digest_api;
mod equality;
mod facts_api;
mod failure;
mod fetch_api;
mod fields_api;
mod hooks;
mod interpreter;
pub(crate) mod json;
pub(crate) mod jwt;
mod limits;
mod loads;
mod local;
mod log_api;
mod metric_api;
mod password_api;
mod pick_api;
mod plain;
mod progress;
mod query_api;
mod reply_api;
mod request_api;
mod request_text;
mod request_values_api;
pub(crate) mod resolver;
mod response_api;
mod running;
pub(crate) mod sandbox;
mod secret_api;
mod size;
mod state_api;
mod suspended;
mod text_api;
mod text_helpers;
mod time_api;
#[cfg(test)]
mod types;
mod value_api;
mod written;

pub use attempt_api::ATTEMPT_PROPERTIES;
pub use budget::{MemoryCounter, count_memory_with};
pub use clock::set_clock;
pub use compiled::Way;
pub use current::Subject;
pub use failure::{Failure, FailureKind, ScriptLimit};
pub use hooks::{Choice, Finished, Holds, Pick, Seen, Verdict};
pub use interpreter::Interpreter;
pub use limits::Limits;
pub use loads::Awaited;
pub use request_api::REQUEST_PROPERTIES;
pub use response_api::RESPONSE_PROPERTIES;
pub use running::{Running, Said, Step};
pub use suspended::{Arriving, suspended_hooks};

pub(crate) use answer_api::ScriptAnswer;
pub(crate) use budget::{Exhausted, exhausted, is_out_of_memory, start as start_budget};
pub(crate) use current::{NativeResult, error as native_error};
pub(crate) use digest_api::MOST_RANDOM;
pub(crate) use fetch_api::{OPTIONS as FETCH_OPTIONS, refuse_while_loading, url};
pub(crate) use local::Local;
pub(crate) use metric_api::refuse_metrics_while_loading;
pub(crate) use pick_api::PICK_OPTIONS;
pub(crate) use secret_api::secret_of;
#[cfg(test)]
pub(crate) use types::own_types;
