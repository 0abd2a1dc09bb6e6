#![allow(clippy::unwrap_used)]

use super::*;
use crate::tls::CertificateSample;
use edgewright_script::engine::FailureKind;
use edgewright_script::state::StateSample;
use std::collections::{BTreeMap, HashSet};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

/// The samples of a text, by name and labels as written. Checks the format on the way: every sample
/// stands under the TYPE line of its family, families and series come once, values are numbers.
fn parse(text: &[u8]) -> BTreeMap<String, f64> {
    let text = std::str::from_utf8(text).unwrap();
    assert!(text.ends_with('\n'));
    let mut samples = BTreeMap::new();
    let mut families = HashSet::new();
    let mut family = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(families.insert(name.to_owned()), "twice: {line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            family = name.to_owned();
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let name = series.split('{').next().unwrap();
        let part_of_family = name
            .strip_prefix(family.as_str())
            .is_some_and(|rest| ["", "_bucket", "_sum", "_count"].contains(&rest));
        assert!(part_of_family, "{line} under {family}");
        assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
        let value = value.parse::<f64>().unwrap();
        assert!(
            samples.insert(series.to_owned(), value).is_none(),
            "twice: {line}"
        );
    }
    samples
}

fn scrape(metrics: &Metrics) -> BTreeMap<String, f64> {
    parse(&metrics.render(&ScrapeInput::default()))
}

fn route(metrics: &Metrics, label: &str) -> Arc<RouteMetrics> {
    metrics.register_routes([label]).pop().unwrap()
}

fn requests(samples: &BTreeMap<String, f64>, route: &str, status: &str) -> Option<f64> {
    let series = format!("edgewright_requests_total{{route=\"{route}\",status=\"{status}\"}}");
    samples.get(&series).copied()
}

/// Eight threads on `shards` shards: sums are exact when each has its own and when they share.
fn count_from_eight_threads(workers: usize) {
    const EACH: u64 = 20_000;
    let metrics = Metrics::new(workers);
    let routes = metrics.register_routes(["/a", "/b"]);
    let pool = metrics.register_pool("web");
    let start = Barrier::new(8);
    thread::scope(|scope| {
        for worker in 0..8u16 {
            let (metrics, routes, pool, start) = (&metrics, &routes, &pool, &start);
            scope.spawn(move || {
                start.wait();
                for i in 0..EACH {
                    let request = metrics.begin_request();
                    routes[(i % 2) as usize].record(200 + worker % 4, Duration::from_millis(2));
                    pool.connected(i % 4 == 0);
                    metrics.limit_hit(Limit::Uri);
                    drop(request);
                }
                routes[0].script_failure("to", FailureKind::Error);
            });
        }
    });
    let samples = scrape(&metrics);
    for label in ["/a", "/b"] {
        for status in ["200", "201", "202", "203"] {
            assert_eq!(requests(&samples, label, status), Some(EACH as f64));
        }
        let count = format!("edgewright_request_duration_seconds_count{{route=\"{label}\"}}");
        assert_eq!(samples[&count], (4 * EACH) as f64);
        let sum = format!("edgewright_request_duration_seconds_sum{{route=\"{label}\"}}");
        assert!((samples[&sum] - 4.0 * EACH as f64 * 0.002).abs() < 1e-6);
    }
    let value = |series: &str| samples[series];
    let connections = "edgewright_upstream_connections_total";
    assert_eq!(
        value(&format!("{connections}{{pool=\"web\",reused=\"true\"}}")),
        (2 * EACH) as f64
    );
    assert_eq!(
        value(&format!("{connections}{{pool=\"web\",reused=\"false\"}}")),
        (6 * EACH) as f64
    );
    assert_eq!(
        value("edgewright_limit_hits_total{limit=\"uri\"}"),
        (8 * EACH) as f64
    );
    let failures = "edgewright_script_failures_total{route=\"/a\",hook=\"to\",kind=\"error\"}";
    assert_eq!(value(failures), 8.0);
    assert_eq!(value("edgewright_requests_in_flight"), 0.0);
}

#[test]
fn eight_threads_add_up_on_shards_of_their_own() {
    count_from_eight_threads(64);
}

#[test]
fn eight_threads_add_up_on_shared_shards() {
    count_from_eight_threads(2);
}

#[test]
fn a_request_counts_as_in_flight_until_dropped_on_any_thread() {
    let metrics = Metrics::new(4);
    assert_eq!(metrics.in_flight(), 0);
    let here = metrics.begin_request();
    let there = thread::scope(|s| s.spawn(|| metrics.begin_request()).join().unwrap());
    assert_eq!(metrics.in_flight(), 2);
    thread::spawn(move || drop(here)).join().unwrap();
    assert_eq!(metrics.in_flight(), 1);
    drop(there);
    assert_eq!(metrics.in_flight(), 0);
}

#[test]
fn counts_go_on_when_a_route_is_registered_again() {
    let metrics = Metrics::new(2);
    let first = route(&metrics, "/a");
    first.record(200, Duration::ZERO);
    drop(first);
    let second = route(&metrics, "/a");
    second.record(200, Duration::ZERO);
    assert_eq!(requests(&scrape(&metrics), "/a", "200"), Some(2.0));
}

#[test]
fn a_route_of_the_old_and_the_new_generation_counts_once() {
    let metrics = Metrics::new(2);
    let old = route(&metrics, "/a");
    let new = route(&metrics, "/a");
    old.record(200, Duration::ZERO);
    new.record(200, Duration::ZERO);
    assert_eq!(requests(&scrape(&metrics), "/a", "200"), Some(2.0));
}

#[test]
fn routes_beyond_the_bound_count_as_overflow() {
    let metrics = Metrics::bounded(2, 2, 10);
    let routes = metrics.register_routes(["/a", "/b", "/c", "/d"]);
    for route in &routes {
        route.record(200, Duration::ZERO);
    }
    let samples = scrape(&metrics);
    assert_eq!(requests(&samples, "/a", "200"), Some(1.0));
    assert_eq!(requests(&samples, "/b", "200"), Some(1.0));
    assert_eq!(requests(&samples, "/c", "200"), None);
    assert_eq!(requests(&samples, OVERFLOW, "200"), Some(2.0));
    assert_eq!(metrics.limit_hits(Limit::RouteLabels), 2);
}

#[test]
fn pools_beyond_the_bound_share_one_label_with_a_pool_of_that_name() {
    let metrics = Metrics::bounded(2, 10, 1);
    let pools = ["web", "api", OVERFLOW].map(|name| metrics.register_pool(name));
    for pool in &pools {
        pool.connect_failed(ConnectFailure::Timeout);
    }
    let samples = scrape(&metrics);
    let failures = |pool: &str| {
        let name = "edgewright_upstream_connect_failures_total";
        samples[&format!("{name}{{pool=\"{pool}\",reason=\"timeout\"}}")]
    };
    assert_eq!(failures("web"), 1.0);
    assert_eq!(failures(OVERFLOW), 2.0);
}

#[test]
fn a_hundred_thousand_routes_register_in_reasonable_time() {
    let metrics = Metrics::new(2);
    let labels: Vec<String> = (0..100_000).map(|i| format!("/r{i}")).collect();
    let started = Instant::now();
    let old = metrics.register_routes(labels.iter().map(String::as_str));
    let new = metrics.register_routes(labels.iter().map(String::as_str));
    // A purge per overflowing label would take minutes.
    assert!(started.elapsed() < Duration::from_secs(10));
    assert!(Arc::ptr_eq(&old[0], &new[0]));
    assert_eq!(new[MAX_ROUTES - 1].label(), format!("/r{}", MAX_ROUTES - 1));
    assert_eq!(new[MAX_ROUTES].label(), OVERFLOW);
}

#[test]
fn labels_are_escaped() {
    let metrics = Metrics::new(1);
    let odd = route(&metrics, "/a\"b\\c\nd/{*rest}");
    odd.record(200, Duration::ZERO);
    assert_eq!(
        requests(&scrape(&metrics), r#"/a\"b\\c\nd/{*rest}"#, "200"),
        Some(1.0)
    );
}

#[test]
fn what_others_own_is_in_the_text() {
    let time = 1_500_000_000.5;
    let latency = Latency::default();
    latency.add(Duration::from_millis(3));
    let input = ScrapeInput {
        waiting: (2, 4096),
        bodies: 512,
        mirrors: 5,
        reload: ReloadSample {
            degraded: true,
            keep_failures: Some(2),
            loaded: 3,
            unchanged: 2,
            failed: 1,
            last_successful: true,
            last_success: Some(time),
            last_duration: Some(0.25),
            watch_errors: 6,
            revision: "0123456789ab".into(),
        },
        dns: DnsSample {
            hosts: vec![DnsHostSample {
                name: "web.svc".into(),
                addresses: 4,
                stale: true,
                ttl_seconds: Some(30),
                last_success: Some(time),
            }],
            lookups: vec![DnsLookupSample {
                name: "web.svc".into(),
                record_type: "AAAA",
                result: "timeout",
                total: 7,
            }],
            refused: 3,
            duration: Some(HistogramSample::of(std::iter::once(&latency))),
        },
        pools: vec![PoolSample {
            name: "web".into(),
            endpoints: 4,
            in_flight: 9,
            waiting: 2,
            retries: 1,
            panic: true,
            certificate_not_after: Some(1_600_000_000),
            each: vec![EndpointSample {
                address: "10.0.0.1:80".into(),
                usable: true,
            }],
        }],
        throttling: Some(ThrottlingSample {
            periods: 100,
            throttled_periods: 5,
            throttled_micros: 1_250_000,
        }),
        threads: 2,
        open_files_limit: 20_000,
        connections_limit: 9_000,
        state: vec![StateSample {
            kind: "rate",
            name: "LIMITS.gold".into(),
            keys: 3,
            full: 1,
        }],
        script: Vec::new(),
        jwks: vec![
            JwksSample {
                source: "https://id.example/keys".into(),
                keys: 2,
                age: Some(Duration::from_millis(1500)),
                failures: 4,
            },
            JwksSample {
                source: "pool id /keys".into(),
                ..JwksSample::default()
            },
        ],
        certificates: vec![
            CertificateSample {
                name: "a.crt".into(),
                not_after: Some(time),
                failed: true,
            },
            CertificateSample {
                name: "b.crt".into(),
                ..CertificateSample::default()
            },
        ],
    };
    let metrics = Metrics::new(2);
    metrics.tls_handshake(true);
    let samples = parse(&metrics.render(&input));
    let expected = [
        ("tls_handshakes_total{result=\"done\"}", 1.0),
        ("tls_handshakes_total{result=\"failed\"}", 0.0),
        (
            "tls_certificate_not_after_timestamp_seconds{name=\"a.crt\"}",
            1_500_000_000.5,
        ),
        ("tls_certificate_failed{name=\"a.crt\"}", 1.0),
        (
            "upstream_certificate_not_after_timestamp_seconds{pool=\"web\"}",
            1_600_000_000.0,
        ),
        ("tls_certificate_failed{name=\"b.crt\"}", 0.0),
        ("config_reloads_total{result=\"loaded\"}", 3.0),
        ("config_reloads_total{result=\"unchanged\"}", 2.0),
        ("config_reloads_total{result=\"failed\"}", 1.0),
        ("config_last_reload_successful", 1.0),
        ("config_watch_errors_total", 6.0),
        ("state_keys{kind=\"rate\",name=\"LIMITS.gold\"}", 3.0),
        ("state_full_total{kind=\"rate\",name=\"LIMITS.gold\"}", 1.0),
        (
            "config_last_reload_success_timestamp_seconds",
            1_500_000_000.5,
        ),
        ("config_last_reload_duration_seconds", 0.25),
        ("config_info{revision=\"0123456789ab\"}", 1.0),
        ("mirrors_in_flight", 5.0),
        ("dns_hosts{name=\"web.svc\"}", 4.0),
        ("dns_stale{name=\"web.svc\"}", 1.0),
        ("dns_ttl_seconds{name=\"web.svc\"}", 30.0),
        (
            "dns_last_success_timestamp_seconds{name=\"web.svc\"}",
            1_500_000_000.5,
        ),
        (
            "dns_lookups_total{name=\"web.svc\",type=\"AAAA\",result=\"timeout\"}",
            7.0,
        ),
        ("dns_refused_addresses_total", 3.0),
        ("dns_lookup_duration_seconds_count", 1.0),
        ("dns_lookup_duration_seconds_bucket{le=\"0.0025\"}", 0.0),
        ("dns_lookup_duration_seconds_bucket{le=\"0.005\"}", 1.0),
        ("upstream_endpoints{pool=\"web\"}", 4.0),
        ("upstream_requests_in_flight{pool=\"web\"}", 9.0),
        (
            "upstream_health{pool=\"web\",endpoint=\"10.0.0.1:80\"}",
            1.0,
        ),
        ("upstream_panic{pool=\"web\"}", 1.0),
        ("cpu_periods_total", 100.0),
        ("cpu_throttled_periods_total", 5.0),
        ("cpu_throttled_seconds_total", 1.25),
        ("threads", 2.0),
        ("open_files_limit", 20_000.0),
        ("connections_limit", 9_000.0),
        ("jwks_keys{source=\"https://id.example/keys\"}", 2.0),
        ("jwks_keys{source=\"pool id /keys\"}", 0.0),
        ("jwks_age_seconds{source=\"https://id.example/keys\"}", 1.5),
        (
            "jwks_failures_total{source=\"https://id.example/keys\"}",
            4.0,
        ),
    ];
    for (series, value) in expected {
        assert_eq!(
            samples.get(&format!("edgewright_{series}")),
            Some(&value),
            "{series}"
        );
    }
    assert!(!cfg!(target_os = "linux") || samples["process_resident_memory_bytes"] > 0.0);
}

#[test]
fn a_new_process_has_no_route_series_and_says_nothing_of_a_load() {
    let samples = scrape(&Metrics::new(2));
    let starts = |name: &str| samples.keys().any(|series| series.starts_with(name));
    assert!(!starts("edgewright_requests_total"));
    assert!(!starts("edgewright_config_info"));
    assert!(starts("edgewright_limit_hits_total"));
}

#[test]
fn denied_requests_have_series_from_the_first_one_on() {
    let metrics = Metrics::new(2);
    let denied = |samples: &BTreeMap<String, f64>| {
        let name = "edgewright_auth_denied_total{filter=\"jwt\",outcome=\"refused\"}";
        samples.get(name).copied()
    };
    assert_eq!(denied(&scrape(&metrics)), None);
    metrics.auth_denied(AuthFilter::Jwt, AuthOutcome::Refused);
    assert_eq!(denied(&scrape(&metrics)), Some(1.0));
}

#[test]
fn calls_to_other_services_have_series_from_the_first_one_on() {
    let metrics = Metrics::new(2);
    let starts = |samples: &BTreeMap<String, f64>| {
        samples
            .keys()
            .any(|series| series.starts_with("edgewright_outbound"))
    };
    assert!(!starts(&scrape(&metrics)));
    metrics.outbound_call(Ok(()), Duration::from_millis(3));
    metrics.outbound_call(Err(CallFailureKind::Timeout), Duration::from_millis(30));
    let samples = scrape(&metrics);
    let calls = |outcome: &str| {
        samples[&format!("edgewright_outbound_calls_total{{outcome=\"{outcome}\"}}")]
    };
    assert_eq!(
        [calls("ok"), calls("timeout"), calls("broken")],
        [1.0, 1.0, 0.0]
    );
    assert_eq!(samples["edgewright_outbound_duration_seconds_count"], 2.0);
}
