//! Connections and requests of clients, and the limits that they hit.

use crate::metrics::{
    Limit, Metrics, RefusedConnection,
    family::{Families, Kind},
};

pub(super) fn describe(metrics: &Metrics, mirrors: usize, families: &mut Families) {
    families
        .family(
            "edgewright_requests_in_flight",
            "Requests being served now.",
            Kind::Gauge,
        )
        .add(&[], metrics.in_flight() as f64);
    families
        .family(
            "edgewright_mirrors_in_flight",
            "Copies of requests that are being made or whose answer is awaited now.",
            Kind::Gauge,
        )
        .add(&[], mirrors as f64);
    families
        .family(
            "edgewright_connections_open",
            "Connections of clients that are open now.",
            Kind::Gauge,
        )
        .add(&[], metrics.connections().open() as f64);
    let mut family = families.family(
        "edgewright_limit_hits_total",
        "How often a limit was hit.",
        Kind::Counter,
    );
    for limit in Limit::ALL {
        family.add(&[("limit", limit.name())], metrics.limit_hits(limit) as f64);
    }
    drop(family);
    let mut family = families.family(
        "edgewright_refused_connections_total",
        "Connections of clients that were closed before their first request.",
        Kind::Counter,
    );
    for reason in RefusedConnection::ALL {
        let refused = metrics.connections_refused(reason) as f64;
        family.add(&[("reason", reason.name())], refused);
    }
    drop(family);
    families
        .family(
            "edgewright_accept_failures_total",
            "How often connections had to wait because there were no more open files, or no memory for a socket.",
            Kind::Counter,
        )
        .add(&[], metrics.accept_failures() as f64);
}
