//! What the program does: its state, its hooks, and the services that it asks.

use std::sync::atomic::{AtomicU64, Ordering};

use edgewright_script::state::StateSample;

use crate::metrics::{
    Metrics,
    family::{Families, Kind},
    sample::{JwksSample, ScrapeInput},
};

/// Nothing before the first call: most programs make none.
pub(super) fn outbound(metrics: &Metrics, families: &mut Families) {
    let latency = metrics.outbound.latency();
    if latency.count == 0 {
        return;
    }
    {
        let mut family = families.family(
            "edgewright_outbound_calls_total",
            "Calls that hooks have made to other services, by outcome.",
            Kind::Counter,
        );
        for (outcome, total) in metrics.outbound.outcomes() {
            family.add(&[("outcome", outcome)], total as f64);
        }
    }
    families
        .histograms(
            "edgewright_outbound_duration_seconds",
            "How long calls to other services took, failed ones too.",
        )
        .add_histogram(&[], &latency);
}

/// Nothing before the first run: most programs have no such hooks.
pub(super) fn background(metrics: &Metrics, families: &mut Families) {
    let counted = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
    let runs = counted(&metrics.background.runs);
    if runs == 0.0 {
        return;
    }
    let mut one = |name, help, value| {
        families.family(name, help, Kind::Counter).add(&[], value);
    };
    one(
        "edgewright_background_runs_total",
        "Runs of background hooks that have begun.",
        runs,
    );
    one(
        "edgewright_background_failures_total",
        "Runs of background hooks that failed.",
        counted(&metrics.background.failures),
    );
}

/// Nothing before the first one: most programs have no such filter.
pub(super) fn auth(metrics: &Metrics, families: &mut Families) {
    if metrics.auth.totals().all(|(_, _, total)| total == 0) {
        return;
    }
    let mut family = families.family(
        "edgewright_auth_denied_total",
        "Requests that a filter of authentication did not let through, by filter and outcome.",
        Kind::Counter,
    );
    for (filter, outcome, total) in metrics.auth.totals() {
        family.add(&[("filter", filter), ("outcome", outcome)], total as f64);
    }
}

pub(super) fn state(samples: &[StateSample], families: &mut Families) {
    let mut each = |name, help, kind, value: &dyn Fn(&StateSample) -> f64| {
        let mut family = families.family(name, help, kind);
        for sample in samples {
            let labels = [("kind", sample.kind), ("name", sample.name.as_str())];
            family.add(&labels, value(sample));
        }
    };
    each(
        "edgewright_state_keys",
        "Keys that the rate, counter or cache holds, or series of the metric.",
        Kind::Gauge,
        &|sample| sample.keys as f64,
    );
    each(
        "edgewright_state_full_total",
        "How often it was full: a rate forgot a key, a counter refused one, a cache dropped a value, a metric counted under `other`.",
        Kind::Counter,
        &|sample| sample.full as f64,
    );
}

pub(super) fn suspended_hooks(input: &ScrapeInput, families: &mut Families) {
    let (hooks, bytes) = input.waiting;
    families
        .family(
            "edgewright_script_waiting_hooks",
            "Hooks that are suspended now.",
            Kind::Gauge,
        )
        .add(&[], hooks as f64);
    families
        .family(
            "edgewright_script_waiting_bytes",
            "Bytes of the heap that suspended hooks hold.",
            Kind::Gauge,
        )
        .add(&[], bytes as f64);
    families
        .family(
            "edgewright_script_body_bytes",
            "Bytes of bodies that are kept for hooks.",
            Kind::Gauge,
        )
        .add(&[], input.bodies as f64);
}

pub(super) fn jwks(sets: &[JwksSample], families: &mut Families) {
    {
        let mut family = families.family(
            "edgewright_jwks_keys",
            "Keys of the set in use; 0 before it was fetched.",
            Kind::Gauge,
        );
        for set in sets {
            family.add(&[("source", &set.source)], set.keys as f64);
        }
    }
    {
        let mut family = families.family(
            "edgewright_jwks_age_seconds",
            "Time since the key set was fetched last.",
            Kind::Gauge,
        );
        for set in sets {
            if let Some(age) = set.age {
                family.add(&[("source", &set.source)], age.as_secs_f64());
            }
        }
    }
    let mut family = families.family(
        "edgewright_jwks_failures_total",
        "Attempts to fetch the key set that have failed.",
        Kind::Counter,
    );
    for set in sets {
        family.add(&[("source", &set.source)], set.failures as f64);
    }
}
