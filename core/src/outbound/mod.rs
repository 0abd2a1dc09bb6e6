//! Calls that hooks make to other services: `fetch`.
//!
//! A worker has one [`Client`], which makes its calls on the worker's own runtime. It keeps idle
//! connections of its own (HTTP/1.1, Pingora's connector and session) and the names that URLs gave
//! it; nothing of it is shared with other workers but what a pool shares already. A call is a future
//! that can be dropped at any moment: its connection is closed, the pool's slot is given back.
//!
//! - A pool is called through its own choice of endpoints, with the pool's `timeouts`; a connection
//!   that can't be made is tried at another endpoint, and counts in the pool's metrics.
//! - The server of a URL is found by the resolver of the pools, off the workers. Its names are few and
//!   go when they are not used (`names`), whatever a program makes up. Addresses that lead to a
//!   cloud's metadata service are refused (`addresses`).
//! - `https` is verified against the system's root certificates, read at the first such call
//!   (`tls`).
//! - One deadline holds for all of a call; the answer is read whole, up to a bound. Redirects are an
//!   answer like any other.
//! - A request is sent a second time only when a kept connection turned out to be closed, and only
//!   when nobody can have acted upon it: the method is idempotent (RFC 9110 section 9.2.2), or its
//!   header was not even sent.

mod addresses;
mod callee;
mod client;
mod connect;
mod copy;
mod endpoints;
mod exchange;
mod failure;
mod names;
mod request;
#[cfg(test)]
mod tests;
mod tls;

pub use client::{Client, MOST_KEPT};
pub use tls::Roots;
pub(crate) use tls::{NO_CERTIFICATES, without_certificates};
