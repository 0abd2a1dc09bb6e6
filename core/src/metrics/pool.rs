//! What is counted for each pool of upstreams.

use super::health::HealthCounters;
use super::shard::Sharded;
use super::upstream::{Retried, UpstreamCounts, UpstreamError};
use edgewright_script::program::RetryCause;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why no connection to an upstream could be made: the `reason` label of
/// `edgewright_upstream_connect_failures_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ConnectFailure {
    /// The upstream answered with a reset: nothing listens there.
    Refused,
    /// No answer within the pool's connect timeout.
    Timeout,
    /// No local port was free (`EADDRNOTAVAIL`).
    PortExhausted,
    /// No file descriptor was free (`EMFILE`, `ENFILE`).
    FdExhausted,
    /// The handshake of TLS failed: mostly a certificate that can't be believed.
    Tls,
    /// Anything else.
    Other,
}

impl ConnectFailure {
    const ALL: [ConnectFailure; 6] = [
        ConnectFailure::Refused,
        ConnectFailure::Timeout,
        ConnectFailure::PortExhausted,
        ConnectFailure::FdExhausted,
        ConnectFailure::Tls,
        ConnectFailure::Other,
    ];

    /// The label's value.
    pub fn name(self) -> &'static str {
        match self {
            ConnectFailure::Refused => "refused",
            ConnectFailure::Timeout => "timeout",
            ConnectFailure::PortExhausted => "port_exhausted",
            ConnectFailure::FdExhausted => "fd_exhausted",
            ConnectFailure::Tls => "tls",
            ConnectFailure::Other => "other",
        }
    }
}

/// What became of a request of a route with `.sticky`: the `outcome` label of `edgewright_sticky_requests_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Stickiness {
    /// It went where its cookie says.
    Kept,
    /// It had no cookie, and got one.
    New,
    /// It went elsewhere than its cookie says, and got another one.
    Moved,
}

impl Stickiness {
    const ALL: [Stickiness; 3] = [Stickiness::Kept, Stickiness::New, Stickiness::Moved];

    /// The label's value.
    pub fn name(self) -> &'static str {
        match self {
            Stickiness::Kept => "kept",
            Stickiness::New => "new",
            Stickiness::Moved => "moved",
        }
    }
}

#[derive(Debug, Default)]
struct Connections {
    fresh: AtomicU64,
    reused: AtomicU64,
    failures: [AtomicU64; ConnectFailure::ALL.len()],
    sticky: [AtomicU64; Stickiness::ALL.len()],
}

/// The counters of one pool, kept by name over reloads.
#[derive(Debug)]
pub struct PoolMetrics {
    name: Box<str>,
    connections: Sharded<Connections>,
    /// Apart from those, since most workers never need it.
    upstream: Sharded<UpstreamCounts>,
    pub(super) health: HealthCounters,
}

impl PoolMetrics {
    pub(super) fn new(name: &str, shards: usize) -> Self {
        Self {
            name: name.into(),
            connections: Sharded::new(shards),
            upstream: Sharded::new(shards),
            health: HealthCounters::default(),
        }
    }

    /// The value of the `pool` label.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Counts one connection taken for a request: from the idle ones (`reused`) or newly made.
    #[inline]
    pub fn connected(&self, reused: bool) {
        let mine = self.connections.mine();
        let counter = if reused { &mine.reused } else { &mine.fresh };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one connection that could not be made.
    pub fn connect_failed(&self, reason: ConnectFailure) {
        self.connections.mine().failures[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that got no usable answer from its upstream.
    pub fn failed(&self, error: UpstreamError) {
        self.upstream.mine().failed(error);
    }

    /// Counts an attempt that follows another one.
    pub fn retried(&self, after: Retried) {
        self.upstream.mine().retried(after);
    }

    /// Counts a retry that the budget did not allow.
    pub fn retry_refused(&self) {
        self.upstream.mine().retry_refused();
    }

    /// Requests without a usable answer by reason, those that there were.
    pub(super) fn errors(&self) -> impl Iterator<Item = (&'static str, u64)> {
        UpstreamError::ALL.into_iter().filter_map(|error| {
            let total = self.upstream.used().map(|n| n.error(error)).sum();
            (total > 0).then_some((error.name(), total))
        })
    }

    /// Retries by what they followed, those that there were.
    pub(super) fn retries(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let causes = RetryCause::ALL.map(|cause| (cause.name(), Retried::After(cause)));
        let all = causes.into_iter().chain([("stale", Retried::Stale)]);
        all.filter_map(|(name, after)| {
            let total = self.upstream.used().map(|n| n.retries(after)).sum();
            (total > 0).then_some((name, total))
        })
    }

    /// Retries that the budget did not allow.
    pub(super) fn retries_refused(&self) -> u64 {
        self.upstream.used().map(UpstreamCounts::refused).sum()
    }

    /// Counts one request of a route with `.sticky`.
    pub fn stuck(&self, outcome: Stickiness) {
        self.connections.mine().sticky[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Requests of routes with `.sticky` by outcome; nothing while there was none.
    pub(super) fn sticky(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let totals = Stickiness::ALL.map(|outcome| {
            let counters = self.connections.used();
            let counters = counters.map(|n| n.sticky[outcome as usize].load(Ordering::Relaxed));
            (outcome.name(), counters.sum::<u64>())
        });
        let any = totals.iter().any(|(_, total)| *total > 0);
        totals.into_iter().filter(move |_| any)
    }

    /// (new connections, reused connections)
    pub(super) fn connections(&self) -> (u64, u64) {
        self.connections.used().fold((0, 0), |(fresh, reused), n| {
            (
                fresh + n.fresh.load(Ordering::Relaxed),
                reused + n.reused.load(Ordering::Relaxed),
            )
        })
    }

    /// Failures by reason; zeros too, since there are six at most.
    pub(super) fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> {
        ConnectFailure::ALL.into_iter().map(|reason| {
            let counters = self
                .connections
                .used()
                .map(|n| &n.failures[reason as usize]);
            let total = counters.map(|n| n.load(Ordering::Relaxed)).sum();
            (reason.name(), total)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_and_failures_add_up() {
        let pool = PoolMetrics::new("web", 2);
        pool.connected(false);
        pool.connected(true);
        pool.connected(true);
        pool.connect_failed(ConnectFailure::PortExhausted);
        assert_eq!(pool.connections(), (1, 2));
        assert_eq!(pool.sticky().count(), 0);
        pool.stuck(Stickiness::Moved);
        let sticky: Vec<_> = pool.sticky().collect();
        assert_eq!(sticky, [("kept", 0), ("new", 0), ("moved", 1)]);
        let failures: Vec<_> = pool.failures().filter(|(_, n)| *n > 0).collect();
        assert_eq!(failures, [("port_exhausted", 1)]);
    }

    #[test]
    fn errors_and_retries_add_up() {
        let pool = PoolMetrics::new("web", 2);
        pool.failed(UpstreamError::QueueFull);
        pool.failed(UpstreamError::QueueFull);
        pool.retried(Retried::Stale);
        pool.retried(Retried::After(RetryCause::Unavailable));
        pool.retry_refused();
        assert_eq!(pool.errors().collect::<Vec<_>>(), [("queue_full", 2)]);
        let retries: Vec<_> = pool.retries().collect();
        assert_eq!(retries, [("503", 1), ("stale", 1)]);
        assert_eq!(pool.retries_refused(), 1);
    }

    #[test]
    fn reasons_index_all() {
        for (index, outcome) in Stickiness::ALL.iter().enumerate() {
            assert_eq!(*outcome as usize, index);
        }
        for (index, reason) in ConnectFailure::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, index);
        }
    }
}
