//! Bodies that hooks look at and change.
//!
//! [`request`] reads a whole request body before any upstream is contacted, and [`replay`] makes
//! Pingora send it. [`response`] decides what is done with the body of a response: [`held`] keeps
//! all of it, header too, until the hooks have seen it; [`stream`] hands it on piece by piece.
//! [`kept`] counts what is kept; [`coding`] undoes `Content-Encoding`, with [`brotli`] for that one of them.

mod brotli;
pub(super) mod coding;
mod held;
mod kept;
mod replay;
pub(super) mod request;
pub(super) mod response;
pub(super) mod stream;

pub(crate) use kept::kept_bytes;

pub(super) use held::{Rewritten, buffered, release};
pub(super) use response::{ResponseBody, has_body, weaken_tag};
