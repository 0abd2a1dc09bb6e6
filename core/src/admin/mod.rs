//! The admin and the health listener.
//!
//! They run on a thread of their own and answer whatever the proxy's workers do: while those are
//! saturated, and through the whole of a shutdown, when readiness must be told although the proxy
//! accepts no more connections. HTTP/1 comes from Pingora's session; the listening service of
//! Pingora is not used, because it stops accepting as soon as a shutdown begins, panics when the
//! address can't be bound, and bounds neither the time nor (below 1 MiB) the size of a request.
//! Here a connection carries one request, with a deadline and a size for its header ([`Settings`]).
//!
//! | endpoint | listener | answer |
//! | --- | --- | --- |
//! | `GET /healthz` | both | 200 while the process lives |
//! | `GET /readyz` | both | 200, or 503 with the reason in one line |
//! | `GET /metrics` | both | Prometheus text |
//! | `GET /status` | admin | JSON |
//! | `POST /reload` | admin | 200 or 422, JSON |
//!
//! `HEAD` is answered wherever `GET` is.

mod connection;
mod endpoints;
mod guard;
mod server;
#[cfg(test)]
mod tests;

pub use server::{Listener, Server};

use std::time::Duration;

/// What the listeners ask of the proxy.
pub trait Operations: Send + Sync + 'static {
    /// Whether the proxy can take requests; `Err` says why not. Asked on the listeners' only
    /// thread: it must not block.
    fn readiness(&self) -> Result<(), String>;

    /// All metrics in Prometheus' text format ([`CONTENT_TYPE`](crate::metrics::CONTENT_TYPE)). May
    /// take its time: it runs on a thread of its own.
    fn metrics(&self) -> Vec<u8>;

    /// The state of the proxy for people and their tools. Runs on a thread of its own.
    fn status(&self) -> serde_json::Value;

    /// Loads the configuration now. May block up to its own deadline: it runs on a thread of its
    /// own, and only one at a time.
    fn reload(&self) -> ReloadAnswer;
}

/// How a reload ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReloadAnswer {
    /// A new generation serves.
    Loaded {
        /// Its revision.
        revision: String,
    },
    /// The files are those of the generation that serves.
    Unchanged {
        /// Its revision.
        revision: String,
    },
    /// The configuration was refused; the last good one keeps serving.
    Failed {
        /// What is wrong, one line each.
        errors: Vec<String>,
    },
}

/// Which endpoints a listener has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// All of them.
    Admin,
    /// Only what a kubelet and a monitoring system need.
    Health,
}

/// The bounds of both listeners.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// From the connection to the end of the request's header. 5 s.
    pub read_timeout: Duration,
    /// For sending one answer. 30 s.
    pub write_timeout: Duration,
    /// How long a reload or a scrape waits for its turn before it is refused with 503. 30 s.
    pub busy_timeout: Duration,
    /// Bytes of a request's header. 16 KiB.
    pub request_header: usize,
    /// Connections at a time on each listener; more wait to be accepted. 256.
    pub connections: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            read_timeout: Duration::from_secs(5),
            write_timeout: Duration::from_secs(30),
            busy_timeout: Duration::from_secs(30),
            request_header: 16 * 1024,
            connections: 256,
        }
    }
}
