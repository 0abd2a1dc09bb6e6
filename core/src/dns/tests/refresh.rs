//! When names are asked again, and what counts as a change.

use super::*;

#[test]
fn a_changed_address_is_in_use_within_its_ttl() {
    let server = DnsServer::start();
    server.set_a("web.test", 1, &["10.0.0.1"]);
    let resolver = resolver(&server);
    let web = resolver.watch("web.test");
    wait_for(&web, &["10.0.0.1"]);

    let changed = Instant::now();
    server.set_a("web.test", 1, &["10.0.0.2"]);
    wait_for(&web, &["10.0.0.2"]);
    let elapsed = changed.elapsed();
    assert!(elapsed < Duration::from_secs(2), "took {elapsed:?}");
    assert_eq!(status(&resolver, "web.test").ttl_seconds, Some(1));
}

#[test]
fn the_ttl_is_respected() {
    let server = DnsServer::start();
    server.set_a("slow.test", 300, &["10.0.0.1"]);
    server.set_a("quick.test", 0, &["10.0.0.2"]);
    let resolver = resolver(&server);
    let slow = resolver.watch("slow.test");
    let quick = resolver.watch("quick.test");
    wait_for(&slow, &["10.0.0.1"]);
    wait_for(&quick, &["10.0.0.2"]);
    wait_for_queries(&server, "quick.test", RecordType::A, 10);
    assert_eq!(server.count("slow.test", RecordType::A), 1);
}

#[test]
fn a_ttl_of_zero_is_raised_to_min_ttl() {
    let server = DnsServer::start();
    server.set_a("web.test", 0, &["10.0.0.1"]);
    let config = Dns {
        min_ttl: millis(100),
        ..settings(&server)
    };
    let resolver = Resolver::start_in(&config, environment()).unwrap();
    let start = Instant::now();
    let _web = resolver.watch("web.test");
    assert!(server.wait_for("web.test", RecordType::A, 4, LIMIT));
    // Three pauses of at least 90 ms: the jitter takes off 10 % at most.
    assert!(start.elapsed() >= millis(270), "took {:?}", start.elapsed());
}

#[test]
fn max_ttl_bounds_a_long_ttl() {
    let server = DnsServer::start();
    server.set_a("web.test", 86_400, &["10.0.0.1"]);
    let config = Dns {
        max_ttl: millis(50),
        ..settings(&server)
    };
    let resolver = Resolver::start_in(&config, environment()).unwrap();
    let _web = resolver.watch("web.test");
    assert!(server.wait_for("web.test", RecordType::A, 3, LIMIT));
}

#[test]
fn another_order_is_no_change() {
    let server = DnsServer::start();
    server.set_a("web.test", 0, &["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
    let resolver = resolver(&server);
    let web = resolver.watch("web.test");
    wait_for(&web, &["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
    let changes = Changes::of(&web);

    server.set_a("web.test", 0, &["10.0.0.3", "10.0.0.1", "10.0.0.2"]);
    wait_for_queries(&server, "web.test", RecordType::A, 3);
    assert_eq!(changes.count(), 0);

    server.set_a("web.test", 0, &["10.0.0.3", "10.0.0.1"]);
    wait_for(&web, &["10.0.0.1", "10.0.0.3"]);
    wait_for_queries(&server, "web.test", RecordType::A, 2);
    assert_eq!(changes.count(), 1);
}

#[test]
fn a_silent_aaaa_does_not_delay_a() {
    let server = DnsServer::start();
    server.set_a("web.test", 0, &["10.0.0.1"]);
    server.set("web.test", RecordType::AAAA, Scripted::Silence);
    let config = Dns {
        timeout: LIMIT,
        ..settings(&server)
    };
    let resolver = dual_stack(&config);
    let start = Instant::now();
    let web = resolver.watch("web.test");
    wait_for(&web, &["10.0.0.1"]);
    // Not only the first answer: later changes too.
    server.set_a("web.test", 0, &["10.0.0.2"]);
    wait_for(&web, &["10.0.0.2"]);
    assert!(server.count("web.test", RecordType::AAAA) > 0);
    assert!(start.elapsed() < LIMIT / 2, "took {:?}", start.elapsed());
}

#[test]
fn both_families_are_used() {
    let server = DnsServer::start();
    server.set_a("web.test", 5, &["10.0.0.1"]);
    server.set("web.test", RecordType::AAAA, records(&["fd00::1"], 3));
    let resolver = dual_stack(&settings(&server));
    let web = resolver.watch("web.test");
    wait_for(&web, &["10.0.0.1", "fd00::1"]);
    assert_eq!(status(&resolver, "web.test").ttl_seconds, Some(3));
}

#[test]
fn aaaa_is_not_asked_without_ipv6() {
    let server = DnsServer::start();
    server.set_a("web.test", 0, &["10.0.0.1"]);
    let resolver = resolver(&server);
    let _web = resolver.watch("web.test");
    wait_for_queries(&server, "web.test", RecordType::A, 3);
    assert_eq!(server.count("web.test", RecordType::AAAA), 0);
}

#[test]
fn the_smallest_ttl_counts() {
    let server = DnsServer::start();
    let [one, two] = ["10.0.0.1", "10.0.0.2"].map(|ip| ip.parse().unwrap());
    let answer = Scripted::Each(vec![(one, 300), (two, 20)]);
    server.set("web.test", RecordType::A, answer);
    let resolver = resolver(&server);
    let web = resolver.watch("web.test");
    wait_for(&web, &["10.0.0.1", "10.0.0.2"]);
    let name = status(&resolver, "web.test");
    assert_eq!(name.ttl_seconds, Some(20));
    let next = name.next_refresh_seconds.unwrap();
    assert!(next > 0.0 && next <= 20.0, "{next}");
}

#[test]
fn another_ttl_is_followed() {
    let server = DnsServer::start();
    server.set_a("web.test", 0, &["10.0.0.1"]);
    server.set_a("other.test", 0, &["10.0.0.9"]);
    let resolver = resolver(&server);
    let web = resolver.watch("web.test");
    let _other = resolver.watch("other.test");
    wait_for(&web, &["10.0.0.1"]);
    let changes = Changes::of(&web);
    server.set_a("web.test", 300, &["10.0.0.1"]);
    wait_until("the longer one is known", || {
        status(&resolver, "web.test").ttl_seconds == Some(300)
    });
    let asked = server.count("web.test", RecordType::A);
    wait_for_queries(&server, "other.test", RecordType::A, 10);
    assert_eq!(server.count("web.test", RecordType::A), asked);
    assert_eq!(changes.count(), 0);
}

#[test]
fn the_set_grows_and_shrinks() {
    let server = DnsServer::start();
    let resolver = resolver(&server);
    let all = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"];
    server.set_a("web.test", 0, &all[..1]);
    let web = resolver.watch("web.test");
    wait_for(&web, &all[..1]);
    let changes = Changes::of(&web);
    for size in [4, 2, 3, 1] {
        server.set_a("web.test", 0, &all[..size]);
        wait_for(&web, &all[..size]);
    }
    assert_eq!(changes.count(), 4);
}

#[test]
fn the_ttl_of_an_alias_counts() {
    let server = DnsServer::start();
    let alias = Scripted::Alias {
        target: "real.test".to_owned(),
        alias_ttl: 5,
        ips: ips(&["10.0.0.1"]),
        ttl: 300,
    };
    server.set("web.test", RecordType::A, alias);
    let resolver = resolver(&server);
    let web = resolver.watch("web.test");
    wait_for(&web, &["10.0.0.1"]);
    assert_eq!(status(&resolver, "web.test").ttl_seconds, Some(5));
}

#[test]
fn large_answers_come_over_tcp_and_middling_ones_do_not() {
    let server = DnsServer::start();
    let address = |n: u16| IpAddr::from([10, 0, (n >> 8) as u8, n as u8]);
    let answer = |count| Scripted::Records {
        ips: (1..=count).map(address).collect(),
        ttl: 300,
    };
    server.set("forty.test", RecordType::A, answer(40));
    server.set("many.test", RecordType::A, answer(500));
    let resolver = resolver(&server);
    let forty = resolver.watch("forty.test");
    wait_until("40 addresses", || forty.answer().addresses.len() == 40);
    assert_eq!(server.tcp_queries(), 0);
    assert!(server.largest_udp_payload() >= 1232);
    let many = resolver.watch("many.test");
    wait_until("500 addresses", || many.answer().addresses.len() == 500);
    assert_eq!(server.tcp_queries(), 1);
}
