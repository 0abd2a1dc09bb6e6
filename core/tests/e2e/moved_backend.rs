//! A backend moves to another address (django-files 425, api-umbrella 4), or its name can't be
//! resolved when the proxy starts.

use std::time::Duration;

use hickory_proto::rr::RecordType;

use crate::support::client::{Connection, get};
use crate::support::dns_server::{Answer, DnsServer};
use crate::support::launch::serving;
use crate::support::upstream::Upstream;
use crate::support::wait::{SOON, timed, until};

const ROUTES: &str = r#"route("/{*rest}").to("web");"#;

/// A resolver at this address, asked with little patience so that a test is short.
fn dns(servers: impl std::fmt::Display) -> String {
    format!(
        "[dns]\nservers = [\"{servers}\"]\ntimeout = \"300ms\"\nattempts = 2\n\
         startup_timeout = \"1s\"\n"
    )
}

#[test]
fn a_new_address_is_in_use_when_the_record_has_run_out() {
    let (first, second) = Upstream::pair("first", "second");
    let server = DnsServer::start();
    server.set_a("backend.test.", 1, &["127.0.0.1"]);
    let proxy = serving(ROUTES)
        .pool("web", format!("backend.test:{}", first.address().port()))
        .settings(&dns(server.addr()))
        .start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    let mut ask = move || connection.send(&get("/")).unwrap().text();
    assert_eq!(ask(), "first");
    server.set_a("backend.test.", 1, &["127.0.0.2"]);
    let (_, took) = timed("the second address", SOON, || {
        (ask() == "second").then_some(())
    });
    // TTL + 1 s, and a second for a machine that is busy with other tests.
    assert!(took <= Duration::from_secs(3), "in use after {took:?}");
    let hits = first.hits();
    for _ in 0..20 {
        assert_eq!(ask(), "second");
    }
    assert_eq!(first.hits(), hits);
    drop(second);
}

#[test]
fn a_resolver_that_goes_away_leaves_the_last_good_answer() {
    let web = Upstream::fixed("served");
    let server = DnsServer::start();
    server.set_a("backend.test.", 1, &["127.0.0.1"]);
    let proxy = serving(ROUTES)
        .pool("web", format!("backend.test:{}", web.address().port()))
        .settings(&dns(server.addr()))
        .start();
    assert_eq!(proxy.text("/"), "served");
    server.set("backend.test.", RecordType::A, Answer::ServFail);
    server.set("backend.test.", RecordType::AAAA, Answer::ServFail);
    until("the answer to be stale", SOON, || {
        proxy.metric("dns_stale", &[("name", "backend.test")]) == 1.0
    });
    for _ in 0..10 {
        assert_eq!(proxy.text("/"), "served");
    }
    assert_eq!(proxy.metric("dns_hosts", &[("name", "backend.test")]), 1.0);
}

#[test]
fn no_resolver_at_start_is_503_with_a_reason_and_then_it_serves() {
    let web = Upstream::fixed("served");
    let address = DnsServer::free_address();
    let proxy = serving(
        r#"
        route("/own").respond(200, "own");
        route("/{*rest}").to("web");
        "#,
    )
    .pool("web", format!("backend.test:{}", web.address().port()))
    .settings(&dns(address))
    .not_ready_at_first()
    .start();
    let not_ready = proxy.ask_admin("/readyz");
    assert_eq!(not_ready.status, 503);
    assert_eq!(
        not_ready.text().trim().lines().count(),
        1,
        "{}",
        not_ready.text()
    );
    assert_eq!(proxy.ask_health("/readyz").status, 503);
    // It lives: the kubelet must not restart it for a resolver's sake.
    assert_eq!(proxy.ask_admin("/healthz").status, 200);
    let refused = proxy.get("/");
    assert_eq!(refused.status, 503);
    let reason = refused.text();
    assert!(
        reason.contains("web") || reason.contains("resolv"),
        "no reason in {reason:?}"
    );
    assert_eq!(proxy.text("/own"), "own");
    assert_eq!(web.hits(), 0);

    let server = DnsServer::start_at(address).unwrap();
    server.set_a("backend.test.", 60, &["127.0.0.1"]);
    until("the proxy to be ready", 2 * SOON, || {
        proxy.ask_admin("/readyz").status == 200
    });
    assert_eq!(proxy.text("/"), "served");
}

#[test]
fn a_name_that_does_not_exist_is_503_with_a_reason() {
    let server = DnsServer::start();
    let none = Answer::NxDomain {
        negative_ttl: Some(1),
    };
    server.set("backend.test.", RecordType::A, none.clone());
    server.set("backend.test.", RecordType::AAAA, none);
    let proxy = serving(ROUTES)
        .pool("web", "backend.test:80")
        .settings(&dns(server.addr()))
        .not_ready_at_first()
        .start();
    let refused = proxy.get("/");
    assert_eq!(refused.status, 503);
    assert!(!refused.text().trim().is_empty());
    until("the lookups to be counted", SOON, || {
        proxy.metric("dns_lookups_total", &[("name", "backend.test")]) >= 1.0
    });
}

#[test]
fn several_addresses_of_one_name_are_all_used() {
    let (first, second) = Upstream::pair("first", "second");
    let server = DnsServer::start();
    server.set_a("backend.test.", 60, &["127.0.0.1", "127.0.0.2"]);
    let proxy = serving(ROUTES)
        .settings(&format!(
            "[pools.web]\ntargets = [\"backend.test:{}\"]\nbalance = \"round_robin\"",
            first.address().port()
        ))
        .settings(&dns(server.addr()))
        .start();
    for _ in 0..10 {
        assert_eq!(proxy.get("/").status, 200);
    }
    assert_eq!((first.hits(), second.hits()), (5, 5));
    let asked = server.count("backend.test.", RecordType::A);
    assert_eq!(asked, 1, "asked {asked} times within the TTL");
}
