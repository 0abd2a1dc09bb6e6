//! How requests of pools fail, wait and are tried again.

use std::sync::Arc;

use crate::metrics::{
    family::{Families, Kind},
    pool::PoolMetrics,
    sample::PoolSample,
};

/// The counters appear with the first of each: most pools have none of them.
pub(super) fn describe(
    pools: &[Arc<PoolMetrics>],
    samples: &[PoolSample],
    families: &mut Families,
) {
    {
        let mut family = families.family(
            "edgewright_upstream_errors_total",
            "Requests that got no usable answer from their upstream, by reason.",
            Kind::Counter,
        );
        for pool in pools {
            for (reason, total) in pool.errors() {
                let labels = [("pool", pool.name()), ("reason", reason)];
                family.add(&labels, total as f64);
            }
        }
    }
    {
        let mut family = families.family(
            "edgewright_upstream_retries_total",
            "Attempts that followed another one, by what that one failed of.",
            Kind::Counter,
        );
        for pool in pools {
            for (cause, total) in pool.retries() {
                let labels = [("pool", pool.name()), ("cause", cause)];
                family.add(&labels, total as f64);
            }
        }
    }
    {
        let mut family = families.family(
            "edgewright_upstream_retries_refused_total",
            "Retries that the budget of the pool did not allow.",
            Kind::Counter,
        );
        for pool in pools.iter().filter(|pool| pool.retries_refused() > 0) {
            let total = pool.retries_refused();
            family.add(&[("pool", pool.name())], total as f64);
        }
    }
    let mut each = |name, help, value: &dyn Fn(&PoolSample) -> u64| {
        let mut family = families.family(name, help, Kind::Gauge);
        for pool in samples {
            family.add(&[("pool", &pool.name)], value(pool) as f64);
        }
    };
    each(
        "edgewright_upstream_requests_waiting",
        "Requests that wait for a place in the pool now.",
        &|pool| pool.waiting,
    );
    each(
        "edgewright_upstream_retries_in_flight",
        "Retries under way now that count against the pool's budget.",
        &|pool| pool.retries,
    );
}
