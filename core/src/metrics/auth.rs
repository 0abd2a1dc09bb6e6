//! What is counted of requests that the filters of authentication did not let through.

use super::shard::Sharded;
use std::sync::atomic::{AtomicU64, Ordering};

/// A filter that finds out who the client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthFilter {
    /// `.basic_auth`
    Basic,
    /// `.jwt`
    Jwt,
    /// `.forward_auth`
    Forward,
}

/// Why a request was not let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthOutcome {
    /// What the client showed was not right.
    Refused,
    /// It could not be decided.
    Failed,
}

const FILTERS: [(AuthFilter, &str); 3] = [
    (AuthFilter::Basic, "basic_auth"),
    (AuthFilter::Jwt, "jwt"),
    (AuthFilter::Forward, "forward_auth"),
];

const OUTCOMES: [(AuthOutcome, &str); 2] = [
    (AuthOutcome::Refused, "refused"),
    (AuthOutcome::Failed, "failed"),
];

type Counters = [[AtomicU64; OUTCOMES.len()]; FILTERS.len()];

/// The counters of the process.
#[derive(Debug)]
pub(super) struct AuthMetrics {
    counters: Sharded<Counters>,
}

impl AuthMetrics {
    pub(super) fn new(shards: usize) -> Self {
        Self {
            counters: Sharded::new(shards),
        }
    }

    pub(super) fn denied(&self, filter: AuthFilter, outcome: AuthOutcome) {
        let counter = &self.counters.mine()[filter as usize][outcome as usize];
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Filter, outcome and how often, zeros too.
    pub(super) fn totals(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        FILTERS.into_iter().flat_map(move |(filter, name)| {
            OUTCOMES.into_iter().map(move |(outcome, reason)| {
                let counters = self.counters.used();
                let counters = counters.map(|all| &all[filter as usize][outcome as usize]);
                (
                    name,
                    reason,
                    counters.map(|n| n.load(Ordering::Relaxed)).sum(),
                )
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_and_outcomes_are_told_apart() {
        let metrics = AuthMetrics::new(2);
        for (index, (filter, _)) in FILTERS.into_iter().enumerate() {
            assert_eq!(filter as usize, index);
            for _ in 0..=index {
                metrics.denied(filter, AuthOutcome::Refused);
            }
        }
        metrics.denied(AuthFilter::Forward, AuthOutcome::Failed);
        let totals: Vec<_> = metrics.totals().collect();
        assert_eq!(
            totals,
            [
                ("basic_auth", "refused", 1),
                ("basic_auth", "failed", 0),
                ("jwt", "refused", 2),
                ("jwt", "failed", 0),
                ("forward_auth", "refused", 3),
                ("forward_auth", "failed", 1),
            ]
        );
    }
}
