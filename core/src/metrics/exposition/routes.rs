//! Requests by route.

use std::sync::Arc;

use crate::metrics::{
    family::{Families, Kind},
    route::RouteMetrics,
};

pub(super) fn describe(routes: &[Arc<RouteMetrics>], families: &mut Families) {
    {
        let mut family = families.family(
            "edgewright_requests_total",
            "Finished requests by route and status code.",
            Kind::Counter,
        );
        for route in routes {
            for (status, total) in route.statuses() {
                let labels = [("route", route.label()), ("status", status.as_str())];
                family.add(&labels, total as f64);
            }
        }
    }
    {
        let mut family = families.histograms(
            "edgewright_request_duration_seconds",
            "Time from the request's header to the end of the response.",
        );
        for route in routes {
            let latency = route.latency();
            if latency.count > 0 {
                family.add_histogram(&[("route", route.label())], &latency);
            }
        }
    }
    {
        let mut family = families.family(
            "edgewright_gate_refusals_total",
            "Requests that a gate of the route has refused, by route and gate.",
            Kind::Counter,
        );
        for route in routes {
            for (gate, total) in route.refusals() {
                family.add(&[("route", route.label()), ("gate", gate)], total as f64);
            }
        }
    }
    {
        let mut family = families.family(
            "edgewright_mirror_total",
            "Requests that .mirror has picked to be copied, by route and outcome.",
            Kind::Counter,
        );
        for route in routes {
            for (outcome, total) in route.mirrors() {
                family.add(
                    &[("route", route.label()), ("outcome", outcome)],
                    total as f64,
                );
            }
        }
    }
    let mut family = families.family(
        "edgewright_script_failures_total",
        "Failed hook calls by route, hook and kind.",
        Kind::Counter,
    );
    for route in routes {
        for (hook, kind, total) in route.failures() {
            let labels = [("route", route.label()), ("hook", hook), ("kind", kind)];
            family.add(&labels, total as f64);
        }
    }
}
