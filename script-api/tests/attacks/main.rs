//! Hooks that attack their worker: with loops, with values that grow, with calls inside calls. Each ends
//! within its budget, says where, and leaves the interpreter as it was.
//!
//! A row is the body of a hook and how it ends. The part that must be named as the place of a failure
//! stands between `«` and `»`.

#![allow(clippy::unwrap_used)]

mod calls;
mod closed;
mod collections;
mod counting_operations;
mod deepest;
mod harness;
mod long_run;
mod loops;
mod nesting;
mod numbers;
mod texts;

#[path = "../support/mod.rs"]
mod support;

#[global_allocator]
static ALLOCATOR: support::counting::Counting = support::counting::Counting;
