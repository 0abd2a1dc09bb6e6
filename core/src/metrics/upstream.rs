//! How requests of a pool fail, and what was tried again.

use std::sync::atomic::{AtomicU64, Ordering};

use edgewright_script::program::RetryCause;

macro_rules! errors {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $status:literal, $text:literal;)+) => {
        /// Why a request got no usable answer from its upstream: the `reason` of
        /// `edgewright_upstream_errors_total` and of log lines.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum UpstreamError { $($(#[$doc])* $variant,)+ }

        impl UpstreamError {
            /// All of them, in the order of their discriminants.
            pub const ALL: [UpstreamError; [$($name),+].len()] = [$(UpstreamError::$variant),+];

            /// Its word, which stays the same over versions.
            pub fn name(self) -> &'static str {
                match self { $(UpstreamError::$variant => $name,)+ }
            }

            /// The status that the client gets.
            pub fn status(self) -> u16 {
                match self { $(UpstreamError::$variant => $status,)+ }
            }

            /// What the client is told.
            pub fn text(self) -> &'static str {
                match self { $(UpstreamError::$variant => $text,)+ }
            }
        }
    };
}

errors! {
    /// The pool has no target to send it to.
    NoTarget = "no_target", 503, "the pool has no target";
    /// All its targets are ejected or unhealthy.
    AllUnhealthy = "all_unhealthy", 503, "all targets are ejected or unhealthy";
    /// No connection could be made.
    Connect = "connect", 502, "the upstream can't be reached";
    /// No connection stood in time: the pool's `connect`.
    ConnectTimeout = "connect_timeout", 504, "the upstream did not accept in time";
    /// No local port was free.
    PortExhausted = "port_exhausted", 503, "no free port towards the upstream";
    /// No file descriptor was free.
    FdExhausted = "fd_exhausted", 503, "out of open files";
    /// The connection broke before a response header was there.
    Reset = "reset", 502, "the upstream broke the connection off";
    /// What came is no usable response, or broke off in its middle.
    Broken = "broken", 502, "the upstream's answer can't be used";
    /// The response header did not come in time: the pool's `first_byte` or `read`.
    FirstByteTimeout = "first_byte_timeout", 504, "the upstream did not begin to answer in time";
    /// Nor within the route's `.timeout`, over all attempts.
    RouteTimeout = "route_timeout", 504, "the upstream did not answer in time";
    /// All of it took longer than the pool's `request`.
    RequestTimeout = "request_timeout", 504, "the request took too long";
    /// The upstream did not take the request in time: the pool's `write`.
    WriteTimeout = "write_timeout", 504, "the upstream did not take the request in time";
    /// It failed otherwise, and was not tried again because the retry budget is spent; the status is that of the failure.
    RetryBudget = "retry_budget", 502, "no retry, since the retry budget is spent";
    /// The pool's `[limits]` are reached, and nobody may wait.
    BreakerOpen = "breaker_open", 503, "too many requests for the upstream";
    /// As many requests as may wait for the pool.
    QueueFull = "queue_full", 503, "too many requests wait for the upstream";
    /// It has waited for the pool as long as it may.
    QueueTimeout = "queue_timeout", 503, "no place at the upstream became free in time";
}

/// What was tried again after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retried {
    /// A failure, as `on` names it.
    After(RetryCause),
    /// A kept connection that the upstream had closed.
    Stale,
}

impl Retried {
    const COUNT: usize = RetryCause::ALL.len() + 1;

    fn index(self) -> usize {
        match self {
            Self::After(cause) => cause as usize,
            Self::Stale => RetryCause::ALL.len(),
        }
    }
}

/// One worker's counts for one pool.
#[derive(Debug)]
pub(super) struct UpstreamCounts {
    errors: [AtomicU64; UpstreamError::ALL.len()],
    retries: [AtomicU64; Retried::COUNT],
    refused: AtomicU64,
}

impl Default for UpstreamCounts {
    fn default() -> Self {
        Self {
            errors: [const { AtomicU64::new(0) }; UpstreamError::ALL.len()],
            retries: [const { AtomicU64::new(0) }; Retried::COUNT],
            refused: AtomicU64::new(0),
        }
    }
}

impl UpstreamCounts {
    pub(super) fn failed(&self, error: UpstreamError) {
        self.errors[error as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn retried(&self, after: Retried) {
        self.retries[after.index()].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn retry_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn error(&self, error: UpstreamError) -> u64 {
        self.errors[error as usize].load(Ordering::Relaxed)
    }

    pub(super) fn retries(&self, after: Retried) -> u64 {
        self.retries[after.index()].load(Ordering::Relaxed)
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn words_and_texts_tell_errors_apart() {
        for (index, error) in UpstreamError::ALL.into_iter().enumerate() {
            assert_eq!(error as usize, index);
            assert!(matches!(error.status(), 502..=504), "{error:?}");
        }
        for texts in [UpstreamError::name, UpstreamError::text] {
            let different: HashSet<_> = UpstreamError::ALL.into_iter().map(texts).collect();
            assert_eq!(different.len(), UpstreamError::ALL.len());
        }
    }
}
