//! Compiled hooks against the interpreter, which is the reference: the same programs and requests both
//! ways. Equal must be what hooks answer, what they change, and how they fail: kind, limit, place and
//! words. Compared are the hooks of all examples, generated programs, and both again with fewer and
//! fewer operations allowed.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod both;
mod constructs;
mod coverage;
mod examples;
mod generated;
mod generator;
