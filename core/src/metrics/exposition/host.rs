//! What the process may use of the machine.

use crate::metrics::{
    family::{Families, Kind},
    sample::ScrapeInput,
};

pub(super) fn describe(input: &ScrapeInput, families: &mut Families) {
    let mut one = |name, help, kind, value| families.family(name, help, kind).add(&[], value);
    one(
        "edgewright_threads",
        "Worker threads.",
        Kind::Gauge,
        input.threads as f64,
    );
    one(
        "edgewright_open_files_limit",
        "The limit on open files in force.",
        Kind::Gauge,
        input.open_files_limit as f64,
    );
    one(
        "edgewright_connections_limit",
        "Connections of clients that there may be.",
        Kind::Gauge,
        input.connections_limit as f64,
    );
    if let Some(sample) = &input.throttling {
        one(
            "edgewright_cpu_periods_total",
            "Scheduling periods of the CPU quota in which the process ran.",
            Kind::Counter,
            sample.periods as f64,
        );
        one(
            "edgewright_cpu_throttled_periods_total",
            "Scheduling periods in which the CPU quota was used up.",
            Kind::Counter,
            sample.throttled_periods as f64,
        );
        one(
            "edgewright_cpu_throttled_seconds_total",
            "Time spent waiting for CPU quota.",
            Kind::Counter,
            sample.throttled_micros as f64 / 1e6,
        );
    }
}
