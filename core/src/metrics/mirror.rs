//! What becomes of copies of requests.

use std::sync::atomic::{AtomicU64, Ordering};

use edgewright_script::outbound::CallFailureKind;

use super::shard::Sharded;

/// What has become of a request that `.mirror` has picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MirrorOutcome {
    /// The copy got an answer, whatever its status.
    Ok,
    /// It got none.
    Failed(CallFailureKind),
    /// It was not made: the body is longer than `.mirror` allows.
    Body,
    /// It was not made: there are as many as `[limits] mirrors` allows.
    Dropped,
    /// It was not sent: the client's body never came whole.
    Incomplete,
    /// It was not made: an upgrade, or copies that go in circles.
    Skipped,
}

const FAILURES: usize = CallFailureKind::ALL.len();
const OTHERS: [&str; 5] = ["ok", "body", "dropped", "incomplete", "skipped"];
const OUTCOMES: usize = FAILURES + OTHERS.len();

impl MirrorOutcome {
    fn index(self) -> usize {
        match self {
            Self::Failed(kind) => kind as usize,
            Self::Ok => FAILURES,
            Self::Body => FAILURES + 1,
            Self::Dropped => FAILURES + 2,
            Self::Incomplete => FAILURES + 3,
            Self::Skipped => FAILURES + 4,
        }
    }
}

/// The counters of one route.
#[derive(Debug)]
pub(super) struct MirrorMetrics(Sharded<[AtomicU64; OUTCOMES]>);

impl MirrorMetrics {
    pub(super) fn new(shards: usize) -> Self {
        Self(Sharded::new(shards))
    }

    pub(super) fn count(&self, outcome: MirrorOutcome) {
        self.0.mine()[outcome.index()].fetch_add(1, Ordering::Relaxed);
    }

    /// Outcomes with how often; none that are zero.
    pub(super) fn totals(&self) -> Vec<(&'static str, u64)> {
        let failures = CallFailureKind::ALL.map(CallFailureKind::name);
        let names = failures.into_iter().chain(OTHERS).enumerate();
        let total = |(index, name): (usize, _)| {
            let counters = self.0.used().map(|all| &all[index]);
            let total: u64 = counters.map(|n| n.load(Ordering::Relaxed)).sum();
            (total > 0).then_some((name, total))
        };
        names.filter_map(total).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_told_apart() {
        let metrics = MirrorMetrics::new(2);
        assert!(metrics.totals().is_empty());
        let failures = CallFailureKind::ALL.map(MirrorOutcome::Failed);
        let others = [
            MirrorOutcome::Ok,
            MirrorOutcome::Body,
            MirrorOutcome::Dropped,
            MirrorOutcome::Incomplete,
            MirrorOutcome::Skipped,
        ];
        for (outcome, times) in failures.into_iter().chain(others).zip(1..) {
            for _ in 0..times {
                metrics.count(outcome);
            }
        }
        let expected = [
            ("unavailable", 1),
            ("connect", 2),
            ("timeout", 3),
            ("too_large", 4),
            ("broken", 5),
            ("ok", 6),
            ("body", 7),
            ("dropped", 8),
            ("incomplete", 9),
            ("skipped", 10),
        ];
        assert_eq!(metrics.totals(), expected);
    }
}
