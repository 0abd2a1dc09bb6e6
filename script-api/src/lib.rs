//! Everything that a `routes.rhai` can see, and the compiled program.
//!
//! [`load::load`] turns the text into a [`program::Program`]: an immutable table of sites, routes and
//! hooks. [`program::Program::find`] matches a request natively; where the route has hooks, an
//! [`engine::Interpreter`] runs them against a [`request::Request`]. No server is needed for any of
//! it: [`memory`] holds requests in memory.

pub mod answer;
pub mod cookie;
pub mod diagnostic;
pub mod engine;
pub mod frozen;
#[doc(hidden)]
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod jwt;
pub mod lint;
pub mod load;
pub mod log;
pub mod memory;
pub mod outbound;
pub mod password;
pub mod path;
pub mod program;
pub mod reference;
pub mod request;
pub mod response;
pub mod router;
mod script_error;
pub mod source;
pub mod stable_hash;
pub mod state;
pub mod suggest;
mod syntax;
pub mod values;

/// The interpreter's own library, for those who extend it.
pub use rhai;
