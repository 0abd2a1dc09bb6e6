//! Pools, and their certificates.

use std::sync::Arc;

use super::failures;
use crate::metrics::{
    family::{Families, Kind},
    pool::PoolMetrics,
    sample::{PoolSample, ScrapeInput},
};

pub(super) fn describe(pools: &[Arc<PoolMetrics>], input: &ScrapeInput, families: &mut Families) {
    {
        let mut family = families.family(
            "edgewright_upstream_connections_total",
            "Connections taken for requests, newly made or reused.",
            Kind::Counter,
        );
        for pool in pools {
            let (fresh, reused) = pool.connections();
            for (label, total) in [("false", fresh), ("true", reused)] {
                let labels = [("pool", pool.name()), ("reused", label)];
                family.add(&labels, total as f64);
            }
        }
    }
    {
        let mut family = families.family(
            "edgewright_upstream_connect_failures_total",
            "Connections to upstreams that could not be made.",
            Kind::Counter,
        );
        for pool in pools {
            for (reason, total) in pool.failures() {
                let labels = [("pool", pool.name()), ("reason", reason)];
                family.add(&labels, total as f64);
            }
        }
    }
    failures::describe(pools, &input.pools, families);
    {
        let mut family = families.family(
            "edgewright_sticky_requests_total",
            "Requests of routes with .sticky, by what became of them.",
            Kind::Counter,
        );
        for pool in pools {
            for (outcome, total) in pool.sticky() {
                let labels = [("pool", pool.name()), ("outcome", outcome)];
                family.add(&labels, total as f64);
            }
        }
    }
    {
        let mut family = families.family(
            "edgewright_upstream_endpoints",
            "Endpoints of the pool that can be picked now.",
            Kind::Gauge,
        );
        for pool in &input.pools {
            family.add(&[("pool", &pool.name)], pool.endpoints as f64);
        }
    }
    {
        let mut family = families.family(
            "edgewright_upstream_requests_in_flight",
            "Requests that hold an endpoint of the pool now.",
            Kind::Gauge,
        );
        for pool in &input.pools {
            family.add(&[("pool", &pool.name)], pool.in_flight as f64);
        }
    }
    certificates(&input.pools, families);
}

/// Nothing without a pool that shows one.
fn certificates(pools: &[PoolSample], families: &mut Families) {
    let shown = |pool: &PoolSample| Some((pool.name.clone(), pool.certificate_not_after?));
    let shown: Vec<_> = pools.iter().filter_map(shown).collect();
    if shown.is_empty() {
        return;
    }
    let mut family = families.family(
        "edgewright_upstream_certificate_not_after_timestamp_seconds",
        "When the certificate that the targets of the pool are shown expires.",
        Kind::Gauge,
    );
    for (pool, until) in &shown {
        family.add(&[("pool", pool)], *until as f64);
    }
}
