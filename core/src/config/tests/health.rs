//! `[pools.NAME.health]` and `[pools.NAME.ejection]`.

use std::time::Duration;

use http::Method;

use super::{errors, parse};
use crate::config::*;

fn pool(tables: &str) -> PoolConfig {
    let text = format!("[pools.web]\ntargets = [\"a:1\"]\n{tables}");
    parse(&text).unwrap().pools.remove("web").unwrap()
}

fn wrong(tables: &str) -> String {
    errors(&format!("[pools.web]\ntargets = [\"a:1\"]\n{tables}"))
}

fn probe(keys: &str) -> Probe {
    pool(&format!("[pools.web.health]\n{keys}"))
        .health
        .unwrap()
        .probe
}

#[test]
fn nothing_is_asked_unless_it_is_said_and_ejection_is_on() {
    let pool = pool("");
    assert_eq!(pool.health, None);
    assert_eq!(pool.ejection, Ejection::default());
    assert_eq!(pool.ejection.consecutive_failures, 5);
    assert_eq!(pool.ejection.max_share, Thousandths(500));
}

#[test]
fn the_kind_follows_from_the_keys() {
    assert_eq!(probe(""), Probe::Tcp);
    assert_eq!(
        probe("path = \"/healthz?full=1\""),
        Probe::Http {
            method: Method::GET,
            path: "/healthz?full=1".to_owned(),
            host: None,
            status: Box::new([200..=299]),
        }
    );
    assert_eq!(
        probe("service = \"shop.Cart\""),
        Probe::Grpc {
            service: "shop.Cart".to_owned(),
            host: None,
        }
    );
    assert_eq!(
        probe("type = \"grpc\"\nhost = \"cart\""),
        Probe::Grpc {
            service: String::new(),
            host: Some("cart".to_owned()),
        }
    );
    let http = "type = \"http\"\nmethod = \"HEAD\"\nhost = \"a.example:81\"\nstatus = [200, \"300-399\", \"404\"]";
    assert_eq!(
        probe(http),
        Probe::Http {
            method: Method::HEAD,
            path: "/".to_owned(),
            host: Some("a.example:81".to_owned()),
            status: Box::new([200..=200, 300..=399, 404..=404]),
        }
    );
}

#[test]
fn every_key_counts() {
    let pool = pool(
        "[pools.web.health]\ninterval = \"2s\"\ntimeout = \"300ms\"\nhealthy = 4\nunhealthy = 5\n\
         port = 8081\ninitial = \"unhealthy\"\n\
         [pools.web.ejection]\nconsecutive_failures = 0\nconsecutive_5xx = 7\nlatency_factor = 2.5\n\
         latency_interval = \"3s\"\nbase_time = \"1s\"\nmax_time = \"9s\"\nmax_share = 1\n",
    );
    assert_eq!(
        pool.health.unwrap(),
        HealthCheck {
            probe: Probe::Tcp,
            interval: Duration::from_secs(2),
            timeout: Duration::from_millis(300),
            healthy: 4,
            unhealthy: 5,
            port: Some(8081),
            initial: Initial::Unhealthy,
        }
    );
    assert_eq!(
        pool.ejection,
        Ejection {
            consecutive_failures: 0,
            consecutive_5xx: 7,
            latency_factor: Thousandths(2500),
            latency_interval: Duration::from_secs(3),
            base_time: Duration::from_secs(1),
            max_time: Duration::from_secs(9),
            max_share: Thousandths(1000),
        }
    );
}

#[test]
fn a_long_first_ejection_needs_no_longest_one() {
    let pool = pool("[pools.web.ejection]\nbase_time = \"10m\"\n");
    assert_eq!(pool.ejection.max_time, Duration::from_secs(600));
}

#[test]
fn mistakes_are_told() {
    for (keys, expected) in [
        ("path = \"healthz\"", "\"healthz\" is no path of a check"),
        ("path = \"/a b\"", "is no path of a check"),
        ("path = \"/a#b\"", "is no path of a check"),
        ("host = \"a b\"\npath = \"/\"", "\"a b\" is no host"),
        ("host = \"u@b\"\npath = \"/\"", "\"u@b\" is no host"),
        (
            "method = \"DELETE\"\npath = \"/\"",
            "\"DELETE\" is no method of a check",
        ),
        (
            "status = []\npath = \"/\"",
            "`status` is a list of 1 to 100 statuses",
        ),
        (
            "status = [100]\npath = \"/\"",
            "100 is no status of an answer",
        ),
        (
            "status = [\"299-200\"]\npath = \"/\"",
            "\"299-200\" is no status",
        ),
        ("status = [\"ok\"]\npath = \"/\"", "\"ok\" is no status"),
        (
            "type = \"tcp\"\npath = \"/\"",
            "`pools.web.health.path` says nothing to a check of type \"tcp\"",
        ),
        (
            "type = \"http\"\nservice = \"x\"",
            "`pools.web.health.service` says nothing to a check of type \"http\"",
        ),
        (
            "method = \"GET\"",
            "`pools.web.health.method` says nothing to a check of type \"tcp\"",
        ),
        ("type = \"udp\"", "udp"),
        (
            "interval = \"1ms\"",
            "`pools.web.health.interval` must be between 100ms and 1h, not 1ms",
        ),
        (
            "port = 0",
            "`pools.web.health.port` must be between 1 and 65535, not 0",
        ),
        (
            "unhealthy = 0",
            "`pools.web.health.unhealthy` must be between 1 and 100, not 0",
        ),
        ("pathh = \"/\"", "pathh"),
    ] {
        let found = wrong(&format!("[pools.web.health]\n{keys}\n"));
        assert!(found.contains(expected), "{keys}: {found}");
    }
    for (keys, expected) in [
        (
            "max_share = 1.5",
            "`pools.web.ejection.max_share` must be between 0 and 1, not 1.5",
        ),
        (
            "max_share = -0.1",
            "`pools.web.ejection.max_share` must be between 0 and 1, not -0.1",
        ),
        (
            "max_share = nan",
            "`pools.web.ejection.max_share` must be between 0 and 1, not NaN",
        ),
        (
            "latency_factor = 1",
            "`pools.web.ejection.latency_factor` must be 0, which is off, or 1.1 and more",
        ),
        ("latency_factor = 101", "must be between 0 and 100, not 101"),
        (
            "base_time = \"5s\"\nmax_time = \"4s\"",
            "`pools.web.ejection.max_time` must be between 5s and 7days, not 4s",
        ),
        (
            "consecutive_5xx = 1001",
            "must be between 0 and 1000, not 1001",
        ),
    ] {
        let found = wrong(&format!("[pools.web.ejection]\n{keys}\n"));
        assert!(found.contains(expected), "{keys}: {found}");
    }
}
