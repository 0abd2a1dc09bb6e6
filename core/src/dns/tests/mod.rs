//! The resolver against a scripted DNS server.

#![allow(clippy::unwrap_used)]

#[path = "../../../tests/support/dns_server.rs"]
pub(crate) mod dns_server;
mod empty;
mod failure;
mod family;
mod refresh;
mod refused;
mod search;
mod service;
mod sharing;
mod sources;
mod unlisted;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hickory_resolver::proto::rr::RecordType;

use self::dns_server::{Answer as Scripted, DnsServer};
use super::system::Environment;
use super::{Listener, NameSnapshot, Resolver, State, Watched};
use crate::config::Dns;

/// Long enough for a loaded machine; no test waits this long unless it fails.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Polls a condition until it holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < deadline, "still not: {what}");
        std::thread::sleep(millis(2));
    }
}

/// Settings with which a test's time passes quickly.
pub(crate) fn settings(server: &DnsServer) -> Dns {
    Dns {
        servers: vec![server.addr()],
        timeout: millis(300),
        attempts: 1,
        min_ttl: millis(30),
        max_ttl: Duration::from_secs(300),
        hold_empty: millis(200),
        ..Dns::default()
    }
}

fn environment() -> Environment {
    Environment {
        resolv_conf: "/nonexistent/resolv.conf".into(),
        hosts: "/nonexistent/hosts".into(),
        poll: millis(20),
        poll_without_servers: millis(20),
        has_ipv6: || false,
        backoff_min: millis(20),
        backoff_max: millis(50),
        backoff_max_unresolved: millis(50),
        empty_recheck: millis(40),
        empty_recheck_max: millis(60),
        empty_confirm: millis(20),
        new_server: millis(300),
        ..Environment::default()
    }
}

/// A resolver that asks `server` for A only.
pub(crate) fn resolver(server: &DnsServer) -> Resolver {
    Resolver::start_in(&settings(server), environment()).unwrap()
}

/// A resolver that asks `server` for both record types.
fn dual_stack(config: &Dns) -> Resolver {
    let environment = Environment {
        has_ipv6: || true,
        ..environment()
    };
    Resolver::start_in(config, environment).unwrap()
}

/// A resolver that reads these files; the servers in resolv.conf listen on `port`.
fn with_files(config: &Dns, folder: &Path, port: u16) -> Resolver {
    let environment = Environment {
        resolv_conf: folder.join("resolv.conf"),
        hosts: folder.join("hosts"),
        port,
        ..environment()
    };
    let config = Dns {
        servers: Vec::new(),
        ..config.clone()
    };
    Resolver::start_in(&config, environment).unwrap()
}

fn ips(list: &[&str]) -> Vec<IpAddr> {
    list.iter().map(|ip| ip.parse().unwrap()).collect()
}

fn records(list: &[&str], ttl: u32) -> Scripted {
    Scripted::Records {
        ips: ips(list),
        ttl,
    }
}

#[track_caller]
fn wait_for(watched: &Watched, list: &[&str]) {
    let wanted = ips(list);
    let what = format!("{} is {list:?}", watched.host());
    wait_until(&what, || watched.answer().addresses[..] == wanted[..]);
}

#[track_caller]
fn wait_for_queries(server: &DnsServer, name: &str, record_type: RecordType, more: usize) {
    let count = server.count(name, record_type) + more;
    assert!(
        server.wait_for(name, record_type, count, LIMIT),
        "{name} {record_type} isn't asked {more} more times"
    );
}

fn status(resolver: &Resolver, name: &str) -> NameSnapshot {
    let names = resolver.snapshot().names;
    names.into_iter().find(|n| n.name == name).unwrap()
}

/// Counts changes.
#[derive(Default)]
struct Changes(AtomicUsize);

impl Changes {
    fn of(watched: &Watched) -> Arc<Changes> {
        let changes = Arc::new(Changes::default());
        let listener: Arc<dyn Listener> = changes.clone();
        watched.subscribe(Arc::downgrade(&listener));
        changes
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Listener for Changes {
    fn answer_changed(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
