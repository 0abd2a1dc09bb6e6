//! What is counted of checks and ejections, and told of each endpoint.

use super::family::{Families, Kind};
use super::pool::PoolMetrics;
use super::sample::ScrapeInput;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The most endpoints of one pool that have a series of their own: names have no more addresses.
const MOST_ENDPOINTS: usize = 1024;

/// What a check has come to: the `result` label of `edgewright_health_checks_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CheckResult {
    /// The target is well.
    Success,
    /// It is not, or can't be asked.
    Failure,
    /// It didn't say in time.
    Timeout,
}

impl CheckResult {
    const ALL: [Self; 3] = [Self::Success, Self::Failure, Self::Timeout];

    fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Timeout => "timeout",
        }
    }
}

/// Why an endpoint is ejected: the `reason` label of `edgewright_upstream_ejections_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum EjectionReason {
    /// So many requests in a row had no answer.
    Failures,
    /// So many answers in a row were 5xx.
    Status,
    /// It is far slower than the others.
    Latency,
}

impl EjectionReason {
    /// Each, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Failures, Self::Status, Self::Latency];

    /// The label's value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Failures => "failures",
            Self::Status => "5xx",
            Self::Latency => "latency",
        }
    }
}

/// Written by the thread `health` alone.
#[derive(Debug, Default)]
pub(super) struct HealthCounters {
    checks: [AtomicU64; CheckResult::ALL.len()],
    ejections: [AtomicU64; EjectionReason::ALL.len()],
    spared: AtomicU64,
}

impl PoolMetrics {
    /// Counts one check of a target.
    pub fn checked(&self, result: CheckResult) {
        self.health.checks[result as usize].fetch_add(1, Relaxed);
    }

    /// Counts one ejection.
    pub fn ejected(&self, reason: EjectionReason) {
        self.health.ejections[reason as usize].fetch_add(1, Relaxed);
    }

    /// Counts one ejection that would have been one too many.
    pub fn spared(&self) {
        self.health.spared.fetch_add(1, Relaxed);
    }
}

/// An endpoint of a pool.
#[derive(Debug, Clone, Default)]
pub struct EndpointSample {
    /// Where it is.
    pub address: String,
    /// Whether requests may get it.
    pub usable: bool,
}

/// Writes them. Counters appear with what they count; most pools have no checks.
pub(super) fn describe(pools: &[Arc<PoolMetrics>], input: &ScrapeInput, families: &mut Families) {
    {
        let mut family = families.family(
            "edgewright_upstream_health",
            "1 when requests may get the endpoint, 0 when it is ejected or unhealthy.",
            Kind::Gauge,
        );
        for pool in &input.pools {
            for endpoint in pool.each.iter().take(MOST_ENDPOINTS) {
                let labels = [("pool", &*pool.name), ("endpoint", &*endpoint.address)];
                family.add(&labels, f64::from(u8::from(endpoint.usable)));
            }
        }
    }
    {
        let mut family = families.family(
            "edgewright_upstream_panic",
            "1 when so many endpoints are ejected or unhealthy that all are used.",
            Kind::Gauge,
        );
        for pool in &input.pools {
            family.add(&[("pool", &pool.name)], f64::from(u8::from(pool.panic)));
        }
    }
    {
        let mut family = families.family(
            "edgewright_health_checks_total",
            "Checks of targets by result.",
            Kind::Counter,
        );
        for pool in pools {
            let counters = &pool.health.checks;
            if counters.iter().all(|counter| counter.load(Relaxed) == 0) {
                continue;
            }
            for result in CheckResult::ALL {
                let labels = [("pool", pool.name()), ("result", result.name())];
                family.add(&labels, counters[result as usize].load(Relaxed) as f64);
            }
        }
    }
    {
        let mut family = families.family(
            "edgewright_upstream_ejections_total",
            "Ejections of endpoints by reason.",
            Kind::Counter,
        );
        for pool in pools {
            for reason in EjectionReason::ALL {
                let total = pool.health.ejections[reason as usize].load(Relaxed);
                let labels = [("pool", pool.name()), ("reason", reason.name())];
                if total > 0 {
                    family.add(&labels, total as f64);
                }
            }
        }
    }
    let mut family = families.family(
        "edgewright_upstream_ejections_spared_total",
        "Ejections that did not happen, since too many endpoints were ejected already.",
        Kind::Counter,
    );
    for pool in pools {
        let total = pool.health.spared.load(Relaxed);
        if total > 0 {
            family.add(&[("pool", pool.name())], total as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::metrics::PoolSample;

    #[test]
    fn numbers_index_all() {
        for (index, reason) in EjectionReason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, index);
        }
        for (index, result) in CheckResult::ALL.iter().enumerate() {
            assert_eq!(*result as usize, index);
        }
    }

    #[test]
    fn endpoints_are_bounded_and_counters_appear_with_what_they_count() {
        let each = (0..MOST_ENDPOINTS + 5).map(|index| EndpointSample {
            address: format!("10.0.0.1:{index}"),
            usable: index != 3,
        });
        let sample = PoolSample {
            name: "web".to_owned(),
            panic: true,
            each: each.collect(),
            ..PoolSample::default()
        };
        let input = ScrapeInput {
            pools: vec![sample],
            ..ScrapeInput::default()
        };
        let pool = Arc::new(PoolMetrics::new("web", 1));
        let render = || {
            let mut families = Families::default();
            describe(std::slice::from_ref(&pool), &input, &mut families);
            String::from_utf8(families.finish()).unwrap()
        };
        let before = render();
        let series = before
            .lines()
            .filter(|line| line.starts_with("edgewright_upstream_health{"));
        assert_eq!(series.count(), MOST_ENDPOINTS);
        assert!(
            before.contains("edgewright_upstream_health{pool=\"web\",endpoint=\"10.0.0.1:3\"} 0\n")
        );
        assert!(before.contains("edgewright_upstream_panic{pool=\"web\"} 1\n"));
        assert!(!before.contains("_total"), "{before}");
        pool.checked(CheckResult::Timeout);
        pool.ejected(EjectionReason::Status);
        pool.spared();
        let after = render();
        for line in [
            "edgewright_health_checks_total{pool=\"web\",result=\"success\"} 0",
            "edgewright_health_checks_total{pool=\"web\",result=\"timeout\"} 1",
            "edgewright_upstream_ejections_total{pool=\"web\",reason=\"5xx\"} 1",
            "edgewright_upstream_ejections_spared_total{pool=\"web\"} 1",
        ] {
            assert!(after.lines().any(|known| known == line), "{line}: {after}");
        }
    }
}
