//! "No such name" and "no address": believed after a while, not at once.

use super::*;

const NO_NAME: Scripted = Scripted::NxDomain { negative_ttl: None };

fn held_then_empty(answer: Scripted) {
    let server = DnsServer::start();
    server.set_a("web.test", 0, &["10.0.0.1"]);
    let config = settings(&server);
    let resolver = resolver(&server);
    let web = resolver.watch("web.test");
    wait_for(&web, &["10.0.0.1"]);

    let gone = Instant::now();
    let asked = server.count("web.test", RecordType::A);
    server.set("web.test", RecordType::A, answer);
    wait_until("stale", || status(&resolver, "web.test").stale);
    wait_until("empty", || web.state() == State::Empty);
    assert!(gone.elapsed() >= config.hold_empty);
    assert!(server.count("web.test", RecordType::A) >= asked + 2);
    assert!(web.answer().addresses.is_empty());
    let now = status(&resolver, "web.test");
    assert!(!now.stale);
    assert_eq!(now.ttl_seconds, None);

    // A failure afterwards doesn't bring anything back, a record does.
    server.set("web.test", RecordType::A, Scripted::ServFail);
    wait_for_queries(&server, "web.test", RecordType::A, 2);
    assert_eq!(web.state(), State::Empty);
    server.set_a("web.test", 0, &["10.0.0.2"]);
    wait_for(&web, &["10.0.0.2"]);
}

#[test]
fn no_such_name_is_held_then_empty() {
    held_then_empty(NO_NAME);
}

#[test]
fn no_such_name_with_a_long_negative_ttl_is_held_then_empty() {
    held_then_empty(Scripted::NxDomain {
        negative_ttl: Some(3600),
    });
}

#[test]
fn no_data_is_held_then_empty() {
    held_then_empty(Scripted::NoData);
}

#[test]
fn addresses_that_lead_nowhere_are_none() {
    held_then_empty(records(&["0.0.0.0", "224.0.0.1"], 0));
}

#[test]
fn a_name_that_flaps_loses_nothing() {
    let server = DnsServer::start();
    server.set_a("web.test", 0, &["10.0.0.1"]);
    let config = Dns {
        hold_empty: LIMIT,
        ..settings(&server)
    };
    let resolver = Resolver::start_in(&config, environment()).unwrap();
    let web = resolver.watch("web.test");
    wait_for(&web, &["10.0.0.1"]);
    let changes = Changes::of(&web);
    for _ in 0..3 {
        server.set("web.test", RecordType::A, NO_NAME);
        wait_until("stale", || status(&resolver, "web.test").stale);
        server.set_a("web.test", 0, &["10.0.0.1"]);
        wait_until("fresh", || !status(&resolver, "web.test").stale);
    }
    assert_eq!(changes.count(), 0);
}

#[test]
fn a_name_that_never_was_is_empty_after_two_answers() {
    let server = DnsServer::start();
    let config = Dns {
        hold_empty: LIMIT,
        ..settings(&server)
    };
    let resolver = Resolver::start_in(&config, environment()).unwrap();
    let web = resolver.watch("typo.test");
    wait_until("empty", || web.state() == State::Empty);
    assert!(server.count("typo.test", RecordType::A) >= 2);
}

#[test]
fn with_both_families_the_name_is_empty_when_both_are() {
    let server = DnsServer::start();
    server.set("web.test", RecordType::AAAA, records(&["fd00::1"], 0));
    let resolver = dual_stack(&settings(&server));
    let web = resolver.watch("web.test");
    wait_for(&web, &["fd00::1"]);
    wait_for_queries(&server, "web.test", RecordType::A, 3);
    assert_eq!(web.state(), State::Resolved);
    server.set("web.test", RecordType::AAAA, NO_NAME);
    wait_until("empty", || web.state() == State::Empty);
}
