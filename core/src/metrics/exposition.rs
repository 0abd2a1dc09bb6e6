//! Which metrics there are, and where their values come from.

mod failures;
mod tls;

use super::family::{Families, Kind};
use super::pool::PoolMetrics;
use super::route::RouteMetrics;
use super::sample::{DnsSample, JwksSample, ReloadSample, ScrapeInput};
use super::{Limit, Metrics, RefusedConnection, health, process, script};
use edgewright_script::state::StateSample;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Writes all metrics as text.
pub(super) fn render(metrics: &Metrics, input: &ScrapeInput) -> Vec<u8> {
    let mut families = Families::default();
    routes(&metrics.scrape_routes(Instant::now()), &mut families);
    let pools = metrics.scrape_pools(Instant::now());
    upstreams(&pools, input, &mut families);
    health::describe(&pools, input, &mut families);
    outbound(metrics, &mut families);
    auth(metrics, &mut families);
    suspended_hooks(input, &mut families);
    requests(metrics, input.mirrors, &mut families);
    tls::describe(metrics, &input.certificates, &mut families);
    reloads(&input.reload, &mut families);
    families
        .family(
            "edgewright_config_generations",
            "Configurations in memory: the one in force, and those that requests still use.",
            Kind::Gauge,
        )
        .add(&[], metrics.generations() as f64);
    dns(&input.dns, &mut families);
    state(&input.state, &mut families);
    background(metrics, &mut families);
    script::describe(&input.script, &mut families);
    jwks(&input.jwks, &mut families);
    limits_of_the_host(input, &mut families);
    if let Some(sample) = process::read() {
        process::describe(&sample, &mut families);
    }
    families.finish()
}

fn routes(routes: &[Arc<RouteMetrics>], families: &mut Families) {
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

fn upstreams(pools: &[Arc<PoolMetrics>], input: &ScrapeInput, families: &mut Families) {
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
    let mut family = families.family(
        "edgewright_upstream_requests_in_flight",
        "Requests that hold an endpoint of the pool now.",
        Kind::Gauge,
    );
    for pool in &input.pools {
        family.add(&[("pool", &pool.name)], pool.in_flight as f64);
    }
}

/// Nothing before the first call: most programs make none.
fn outbound(metrics: &Metrics, families: &mut Families) {
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
fn background(metrics: &Metrics, families: &mut Families) {
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
fn auth(metrics: &Metrics, families: &mut Families) {
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

fn requests(metrics: &Metrics, mirrors: usize, families: &mut Families) {
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

fn reloads(sample: &ReloadSample, families: &mut Families) {
    {
        let mut family = families.family(
            "edgewright_config_reloads_total",
            "Attempts to load the configuration by result.",
            Kind::Counter,
        );
        let results = [
            ("loaded", sample.loaded),
            ("unchanged", sample.unchanged),
            ("failed", sample.failed),
        ];
        for (result, total) in results {
            family.add(&[("result", result)], total as f64);
        }
    }
    families
        .family(
            "edgewright_config_last_reload_successful",
            "1 when the last attempt to load the configuration did not fail.",
            Kind::Gauge,
        )
        .add(&[], f64::from(u8::from(sample.last_successful)));
    families
        .family(
            "edgewright_config_watch_errors_total",
            "Failures to watch the configuration's files.",
            Kind::Counter,
        )
        .add(&[], sample.watch_errors as f64);
    if let Some(time) = sample.last_success {
        families
            .family(
                "edgewright_config_last_reload_success_timestamp_seconds",
                "When the configuration in force was loaded.",
                Kind::Gauge,
            )
            .add(&[], time);
    }
    if let Some(duration) = sample.last_duration {
        families
            .family(
                "edgewright_config_last_reload_duration_seconds",
                "How long the last attempt to load the configuration took.",
                Kind::Gauge,
            )
            .add(&[], duration);
    }
    families
        .family(
            "edgewright_config_degraded",
            "1 while the copy of the last good files serves, since the files were refused at the start.",
            Kind::Gauge,
        )
        .add(&[], f64::from(u8::from(sample.degraded)));
    if let Some(failures) = sample.keep_failures {
        families
            .family(
                "edgewright_last_good_failures_total",
                "How often the copy of good files could not be kept.",
                Kind::Counter,
            )
            .add(&[], failures as f64);
    }
    if !sample.revision.is_empty() {
        families
            .family(
                "edgewright_config_info",
                "The revision of the configuration in force.",
                Kind::Gauge,
            )
            .add(&[("revision", &sample.revision)], 1.0);
    }
}

fn dns(sample: &DnsSample, families: &mut Families) {
    {
        let mut family = families.family(
            "edgewright_dns_lookups_total",
            "Lookups by name, record type and result.",
            Kind::Counter,
        );
        for lookup in &sample.lookups {
            let labels = [
                ("name", lookup.name.as_str()),
                ("type", lookup.record_type),
                ("result", lookup.result),
            ];
            family.add(&labels, lookup.total as f64);
        }
    }
    families
        .family(
            "edgewright_dns_refused_addresses_total",
            "Addresses in answers that are not used: link-local, metadata services, impossible ones.",
            Kind::Counter,
        )
        .add(&[], sample.refused as f64);
    if let Some(duration) = &sample.duration {
        families
            .histograms(
                "edgewright_dns_lookup_duration_seconds",
                "How long lookups took.",
            )
            .add_histogram(&[], duration);
    }
    let mut hosts = |name, help, value: &dyn Fn(&super::DnsHostSample) -> Option<f64>| {
        let mut family = families.family(name, help, Kind::Gauge);
        for host in &sample.hosts {
            if let Some(value) = value(host) {
                family.add(&[("name", &host.name)], value);
            }
        }
    };
    hosts(
        "edgewright_dns_hosts",
        "Addresses in use for the name, or servers of the service.",
        &|host| Some(host.addresses as f64),
    );
    hosts(
        "edgewright_dns_stale",
        "1 when the addresses are kept although the last lookup failed.",
        &|host| Some(f64::from(u8::from(host.stale))),
    );
    hosts(
        "edgewright_dns_ttl_seconds",
        "The smallest TTL of the answers in use.",
        &|host| host.ttl_seconds.map(|ttl| ttl as f64),
    );
    hosts(
        "edgewright_dns_last_success_timestamp_seconds",
        "When the name was last answered with addresses.",
        &|host| host.last_success,
    );
}

fn state(samples: &[StateSample], families: &mut Families) {
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

fn suspended_hooks(input: &ScrapeInput, families: &mut Families) {
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

fn jwks(sets: &[JwksSample], families: &mut Families) {
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

fn limits_of_the_host(input: &ScrapeInput, families: &mut Families) {
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
