//! Transient failures: the last good addresses stay.

use super::*;

fn keeps_the_last_good_addresses(failure: Scripted, label: &str) {
    let server = DnsServer::start();
    server.set_a("web.test", 0, &["10.0.0.1"]);
    let config = Dns {
        timeout: millis(40),
        ..settings(&server)
    };
    let resolver = Resolver::start_in(&config, environment()).unwrap();
    let web = resolver.watch("web.test");
    wait_for(&web, &["10.0.0.1"]);
    let changes = Changes::of(&web);

    server.set("web.test", RecordType::A, failure);
    let failures = || {
        let lookups = status(&resolver, "web.test").lookups;
        let failed = lookups.iter().find(|count| count.result == label);
        failed.map_or(0, |count| count.count)
    };
    // Longer than hold_empty, which only counts for authoritative answers.
    let start = Instant::now();
    wait_until("failures were counted", || {
        failures() >= 3 && start.elapsed() > 2 * config.hold_empty
    });
    assert_eq!(web.state(), State::Resolved);
    assert_eq!(changes.count(), 0);
    let now = status(&resolver, "web.test");
    assert!(now.stale);
    assert!(now.last_error.unwrap().contains("web.test."));

    server.set_a("web.test", 0, &["10.0.0.2"]);
    wait_for(&web, &["10.0.0.2"]);
    assert!(!status(&resolver, "web.test").stale);
}

#[test]
fn servfail_keeps_the_last_good_addresses() {
    keeps_the_last_good_addresses(Scripted::ServFail, "servfail");
}

#[test]
fn refused_keeps_the_last_good_addresses() {
    keeps_the_last_good_addresses(Scripted::Refused, "refused");
}

#[test]
fn silence_keeps_the_last_good_addresses() {
    keeps_the_last_good_addresses(Scripted::Silence, "timeout");
}

#[test]
fn formerr_keeps_the_last_good_addresses() {
    keeps_the_last_good_addresses(Scripted::FormErr, "error");
}

#[test]
fn a_cut_off_answer_that_tcp_does_not_complete_keeps_the_last_good_addresses() {
    keeps_the_last_good_addresses(Scripted::Truncated, "error");
}

#[test]
fn a_silent_server_is_asked_as_often_as_is_configured() {
    let server = DnsServer::start();
    server.set("web.test", RecordType::A, Scripted::Silence);
    let config = Dns {
        timeout: millis(50),
        attempts: 3,
        ..settings(&server)
    };
    let environment = Environment {
        backoff_min: LIMIT,
        backoff_max_unresolved: LIMIT,
        ..environment()
    };
    let resolver = Resolver::start_in(&config, environment).unwrap();
    let web = resolver.watch("web.test");
    wait_until("the failure", || web.failure().is_some());
    assert_eq!(server.count("web.test", RecordType::A), 3);
    let next = status(&resolver, "web.test").next_refresh_seconds.unwrap();
    assert!(next > 0.0 && next <= LIMIT.as_secs_f64(), "{next}");
}

#[test]
fn an_error_is_not_asked_for_again_at_once() {
    for failure in [Scripted::ServFail, Scripted::Refused] {
        let server = DnsServer::start();
        server.set("web.test", RecordType::A, failure);
        let config = Dns {
            attempts: 3,
            ..settings(&server)
        };
        let environment = Environment {
            backoff_min: LIMIT,
            backoff_max_unresolved: LIMIT,
            ..environment()
        };
        let resolver = Resolver::start_in(&config, environment).unwrap();
        let web = resolver.watch("web.test");
        wait_until("the failure", || web.failure().is_some());
        assert_eq!(server.count("web.test", RecordType::A), 1);
    }
}

#[test]
fn a_failing_aaaa_keeps_its_own_addresses() {
    let server = DnsServer::start();
    server.set_a("web.test", 0, &["10.0.0.1"]);
    server.set("web.test", RecordType::AAAA, records(&["fd00::1"], 0));
    let resolver = dual_stack(&settings(&server));
    let web = resolver.watch("web.test");
    wait_for(&web, &["10.0.0.1", "fd00::1"]);
    server.set("web.test", RecordType::AAAA, Scripted::ServFail);
    server.set_a("web.test", 0, &["10.0.0.2"]);
    wait_for(&web, &["10.0.0.2", "fd00::1"]);
    wait_for_queries(&server, "web.test", RecordType::AAAA, 3);
    wait_for(&web, &["10.0.0.2", "fd00::1"]);
}

#[test]
fn a_failure_of_a_is_not_hidden_by_an_empty_aaaa() {
    let server = DnsServer::start();
    server.set("web.test", RecordType::A, Scripted::ServFail);
    server.set("web.test", RecordType::AAAA, Scripted::NoData);
    let resolver = dual_stack(&settings(&server));
    let web = resolver.watch("web.test");
    wait_for_queries(&server, "web.test", RecordType::AAAA, 4);
    assert_eq!(web.state(), State::Unresolved);
}

#[test]
fn a_server_that_comes_up_late_is_found() {
    let address = DnsServer::free_address();
    let config = Dns {
        servers: vec![address],
        timeout: millis(50),
        attempts: 1,
        ..Dns::default()
    };
    let resolver = Resolver::start_in(&config, environment()).unwrap();
    let web = resolver.watch("web.test");
    wait_until("a failure is reported", || {
        status(&resolver, "web.test").last_error.is_some()
    });
    assert_eq!(web.state(), State::Unresolved);

    let server = DnsServer::start_at(address).unwrap();
    server.set_a("web.test", 300, &["10.0.0.1"]);
    wait_for(&web, &["10.0.0.1"]);
}

#[test]
fn the_next_server_is_asked_and_a_silent_one_goes_to_the_end() {
    let silent = DnsServer::start();
    let server = DnsServer::start();
    for name in ["one.test", "two.test"] {
        silent.set(name, RecordType::A, Scripted::Silence);
        server.set_a(name, 300, &["10.0.0.1"]);
    }
    let config = Dns {
        servers: vec![silent.addr(), server.addr()],
        ..settings(&server)
    };
    let resolver = Resolver::start_in(&config, environment()).unwrap();
    let one = resolver.watch("one.test");
    wait_for(&one, &["10.0.0.1"]);
    assert!(silent.count("one.test", RecordType::A) > 0);
    let two = resolver.watch("two.test");
    wait_for(&two, &["10.0.0.1"]);
    assert_eq!(silent.count("two.test", RecordType::A), 0);
}

#[test]
fn a_servfail_of_the_first_server_moves_on_to_the_second() {
    let broken = DnsServer::start();
    let server = DnsServer::start();
    broken.set("web.test", RecordType::A, Scripted::ServFail);
    server.set_a("web.test", 300, &["10.0.0.1"]);
    let config = Dns {
        servers: vec![broken.addr(), server.addr()],
        attempts: 3,
        ..settings(&server)
    };
    let resolver = Resolver::start_in(&config, environment()).unwrap();
    let web = resolver.watch("web.test");
    wait_for(&web, &["10.0.0.1"]);
    assert_eq!(broken.count("web.test", RecordType::A), 1);
}

#[test]
fn a_panic_does_not_pin_the_addresses() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let server = DnsServer::start();
    server.set_a("web.test", 0, &["10.0.0.1"]);
    let environment = Environment {
        has_ipv6: || {
            assert!(CALLS.fetch_add(1, Ordering::SeqCst) >= 2, "on purpose");
            false
        },
        ..environment()
    };
    let resolver = Resolver::start_in(&settings(&server), environment).unwrap();
    let web = resolver.watch("web.test");
    wait_for(&web, &["10.0.0.1"]);
    server.set_a("web.test", 0, &["10.0.0.2"]);
    wait_for(&web, &["10.0.0.2"]);
    assert_eq!(CALLS.load(Ordering::SeqCst), 3);
}
