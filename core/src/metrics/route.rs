//! What is counted for each route.

use super::latency::{HistogramSample, Latency};
use super::mirror::{MirrorMetrics, MirrorOutcome};
use super::shard::Sharded;
use super::status::{self, StatusCounters};
use edgewright_script::{engine::FailureKind, program::Gate};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Values of the `hook` label; the last one stands for any other name.
const HOOKS: [&str; 10] = [
    "on_request",
    "on_request_body",
    "when",
    "to",
    "respond",
    "on_response",
    "on_response_body",
    "on_log",
    "every",
    "other",
];

/// One worker's counters of one route: 640 bytes.
#[derive(Debug, Default)]
struct Requests {
    latency: Latency,
    statuses: StatusCounters,
}

#[derive(Debug, Default)]
struct Failures([[AtomicU64; FailureKind::ALL.len()]; HOOKS.len()]);

#[derive(Debug, Default)]
struct Refusals([AtomicU64; Gate::ALL.len()]);

/// The counters of one route label. Kept by label over reloads, see
/// [`Metrics::register_routes`](super::Metrics::register_routes).
#[derive(Debug)]
pub struct RouteMetrics {
    label: Box<str>,
    shards: usize,
    requests: Sharded<Requests>,
    /// Most routes never fail: nothing is set aside before the first failure.
    failures: OnceLock<Sharded<Failures>>,
    /// As little, before the first refusal.
    refusals: OnceLock<Sharded<Refusals>>,
    /// And before the first copy of a request.
    mirrored: OnceLock<MirrorMetrics>,
}

impl RouteMetrics {
    pub(super) fn new(label: &str, shards: usize) -> Self {
        Self {
            label: label.into(),
            shards,
            requests: Sharded::new(shards),
            failures: OnceLock::new(),
            refusals: OnceLock::new(),
            mirrored: OnceLock::new(),
        }
    }

    /// The value of the `route` label.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Counts one finished request. `status` is what the client was sent, or 499 when it went away
    /// before that; `duration` runs from the request's header to the end of the response.
    #[inline]
    pub fn record(&self, status: u16, duration: Duration) {
        let mine = self.requests.mine();
        mine.statuses.add(status);
        mine.latency.add(duration);
    }

    /// Counts one failed call of `hook`, by the script function's name (`on_request`, `to`, ...);
    /// a name that is no hook counts as `other`.
    #[cold]
    pub fn script_failure(&self, hook: &'static str, kind: FailureKind) {
        let hook = HOOKS
            .iter()
            .position(|name| *name == hook)
            .unwrap_or(HOOKS.len() - 1);
        let failures = self.failures.get_or_init(|| Sharded::new(self.shards));
        failures.mine().0[hook][kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one request that `gate` has refused.
    pub fn refused_by(&self, gate: Gate) {
        let refusals = self.refusals.get_or_init(|| Sharded::new(self.shards));
        refusals.mine().0[gate as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts what has become of a request that `.mirror` has picked.
    pub fn mirrored(&self, outcome: MirrorOutcome) {
        let mirrored = self
            .mirrored
            .get_or_init(|| MirrorMetrics::new(self.shards));
        mirrored.count(outcome);
    }

    /// Copies of requests as (outcome, count); none that are zero.
    pub(super) fn mirrors(&self) -> Vec<(&'static str, u64)> {
        self.mirrored
            .get()
            .map(MirrorMetrics::totals)
            .unwrap_or_default()
    }

    /// Refusals as (gate, count); none that are zero.
    pub(super) fn refusals(&self) -> Vec<(&'static str, u64)> {
        let Some(shards) = self.refusals.get() else {
            return Vec::new();
        };
        let total = |gate: Gate| {
            let counters = shards.used().map(|shard| &shard.0[gate as usize]);
            let total: u64 = counters.map(|n| n.load(Ordering::Relaxed)).sum();
            (total > 0).then_some((gate.name(), total))
        };
        Gate::ALL.into_iter().filter_map(total).collect()
    }

    /// Requests by status label; none that are zero.
    pub(super) fn statuses(&self) -> Vec<(String, u64)> {
        status::totals(self.requests.used().map(|shard| &shard.statuses))
    }

    /// Durations of all requests.
    pub(super) fn latency(&self) -> HistogramSample {
        HistogramSample::of(self.requests.used().map(|shard| &shard.latency))
    }

    /// Failures as (hook, kind, count); none that are zero.
    pub(super) fn failures(&self) -> Vec<(&'static str, &'static str, u64)> {
        let Some(shards) = self.failures.get() else {
            return Vec::new();
        };
        let mut totals = Vec::new();
        for (hook, name) in HOOKS.iter().enumerate() {
            for kind in FailureKind::ALL {
                let counters = shards.used().map(|shard| &shard.0[hook][kind as usize]);
                let total: u64 = counters.map(|n| n.load(Ordering::Relaxed)).sum();
                if total > 0 {
                    totals.push((*name, kind.name(), total));
                }
            }
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workers_share_of_a_route_stays_small() {
        assert_eq!(size_of::<Requests>(), 640);
    }

    #[test]
    fn failures_are_counted_by_hook_and_kind() {
        let route = RouteMetrics::new("/", 2);
        assert!(route.failures().is_empty());
        route.script_failure("on_request", FailureKind::Time);
        route.script_failure("on_request", FailureKind::Time);
        route.script_failure("no such hook", FailureKind::Panic);
        assert_eq!(
            route.failures(),
            [("on_request", "time", 2), ("other", "panic", 1)]
        );
    }

    #[test]
    fn refusals_are_counted_by_gate() {
        let route = RouteMetrics::new("/", 2);
        assert!(route.refusals().is_empty());
        route.refused_by(Gate::Allow);
        route.refused_by(Gate::Allow);
        route.refused_by(Gate::Deny);
        assert_eq!(route.refusals(), [("deny", 1), ("allow", 2)]);
    }

    #[test]
    fn kinds_index_all() {
        for (index, kind) in FailureKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, index);
        }
    }
}
