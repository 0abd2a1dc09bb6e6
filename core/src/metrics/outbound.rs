//! What is counted of the calls that hooks make.

use super::latency::{HistogramSample, Latency};
use super::shard::Sharded;
use edgewright_script::outbound::CallFailureKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The `outcome` label of a call that got its answer, whatever the status.
const OK: &str = "ok";

const OUTCOMES: usize = CallFailureKind::ALL.len() + 1;

#[derive(Debug, Default)]
struct Calls {
    /// The failures in the order of their kinds, then those that got an answer.
    outcomes: [AtomicU64; OUTCOMES],
    latency: Latency,
}

/// The counters of all calls of the process.
#[derive(Debug)]
pub(super) struct OutboundMetrics {
    calls: Sharded<Calls>,
}

impl OutboundMetrics {
    pub(super) fn new(shards: usize) -> Self {
        Self {
            calls: Sharded::new(shards),
        }
    }

    pub(super) fn record(&self, outcome: Result<(), CallFailureKind>, duration: Duration) {
        let mine = self.calls.mine();
        let index = match outcome {
            Ok(()) => OUTCOMES - 1,
            Err(kind) => kind as usize,
        };
        mine.outcomes[index].fetch_add(1, Ordering::Relaxed);
        mine.latency.add(duration);
    }

    /// Calls by outcome; zeros too, since there are six.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let names = CallFailureKind::ALL.map(CallFailureKind::name);
        names
            .into_iter()
            .chain([OK])
            .enumerate()
            .map(|(index, name)| {
                let counters = self.calls.used().map(|calls| &calls.outcomes[index]);
                (name, counters.map(|n| n.load(Ordering::Relaxed)).sum())
            })
    }

    pub(super) fn latency(&self) -> HistogramSample {
        HistogramSample::of(self.calls.used().map(|calls| &calls.latency))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_told_apart() {
        let metrics = OutboundMetrics::new(2);
        for (kind, times) in CallFailureKind::ALL.into_iter().zip(1..) {
            for _ in 0..times {
                metrics.record(Err(kind), Duration::ZERO);
            }
        }
        metrics.record(Ok(()), Duration::from_millis(3));
        let expected = [
            ("unavailable", 1),
            ("connect", 2),
            ("timeout", 3),
            ("too_large", 4),
            ("broken", 5),
            ("ok", 1),
        ];
        assert_eq!(metrics.outcomes().collect::<Vec<_>>(), expected);
        let latency = metrics.latency();
        assert_eq!(latency.count, 16);
        assert!((latency.sum - 0.003).abs() < 1e-9);
    }
}
