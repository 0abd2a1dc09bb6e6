//! Endpoints that come from names.

use hickory_resolver::proto::rr::RecordType;

use super::*;
use crate::config::Dns;

#[test]
fn endpoints_follow_the_name() {
    let server = DnsServer::start();
    server.set_a("web.test", 0, &["10.0.0.1", "10.0.0.2"]);
    let resolver = resolver(&server);
    let targets: &[&str] = &["web.test:80", "10.0.0.2:80", "web.test:81"];
    let pools = Pools::build(&configs(&[("web", targets)]), &resolver, None);
    assert!(pools.wait_ready(LIMIT));
    let pool = pools.get("web").unwrap();
    wait_for(
        pool,
        &["10.0.0.1:80", "10.0.0.1:81", "10.0.0.2:80", "10.0.0.2:81"],
    );
    server.set_a("web.test", 0, &["10.0.0.3"]);
    wait_for(pool, &["10.0.0.2:80", "10.0.0.3:80", "10.0.0.3:81"]);
}

#[test]
fn a_removed_address_gets_no_new_request_and_a_kept_one_stays_itself() {
    let server = DnsServer::start();
    server.set_a("web.test", 0, &["10.0.0.1", "10.0.0.2"]);
    let resolver = resolver(&server);
    let pools = Pools::build(&configs(&[("web", &["web.test:80"])]), &resolver, None);
    let pool = pools.get("web").unwrap();
    wait_for(pool, &["10.0.0.1:80", "10.0.0.2:80"]);
    let first = pool.select(&Wish::default()).unwrap();
    let second = pool
        .select(&Wish {
            avoid: &[first.endpoint()],
            ..Wish::default()
        })
        .unwrap();
    let (gone, kept) = if first.address() == "10.0.0.1:80" {
        (first, second)
    } else {
        (second, first)
    };

    server.set_a("web.test", 0, &["10.0.0.2", "10.0.0.3"]);
    wait_for(pool, &["10.0.0.2:80", "10.0.0.3:80"]);
    for _ in 0..50 {
        assert_ne!(
            pool.select(&Wish::default()).unwrap().address(),
            "10.0.0.1:80"
        );
    }
    // The request under way still has its peer, and the kept one still counts its own.
    assert_eq!(gone.peer().to_string(), "addr: 10.0.0.1:80, scheme: HTTP");
    assert_eq!(pool.snapshot().endpoints[0].in_flight, 1);
    drop(kept);
    assert_eq!(pool.snapshot().endpoints[0].in_flight, 0);
}

#[test]
fn another_order_changes_no_endpoint() {
    let server = DnsServer::start();
    let all = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
    server.set_a("web.test", 0, &all);
    let resolver = resolver(&server);
    let pools = Pools::build(&configs(&[("web", &["web.test:80"])]), &resolver, None);
    let pool = pools.get("web").unwrap();
    wait_for(pool, &["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"]);
    // Held, so that an address that was an endpoint of its own again would have another number.
    let held: Vec<_> = (0..50)
        .map(|_| pool.select(&Wish::default()).unwrap())
        .collect();
    let ids = |held: &[Picked]| {
        let ids = held
            .iter()
            .map(|one| (one.address().to_owned(), one.endpoint()));
        ids.collect::<BTreeMap<_, _>>()
    };
    let before = ids(&held);
    assert_eq!(before.len(), 3);
    for order in [[2, 0, 1], [1, 2, 0], [2, 1, 0]] {
        server.set_a("web.test", 0, &order.map(|index| all[index]));
        let asked = server.count("web.test", RecordType::A);
        assert!(server.wait_for("web.test", RecordType::A, asked + 3, LIMIT));
        let now: Vec<_> = (0..50)
            .map(|_| pool.select(&Wish::default()).unwrap())
            .collect();
        assert_eq!(ids(&now), before);
    }
    let in_flight = pool.snapshot().endpoints;
    assert_eq!(in_flight.iter().map(|one| one.in_flight).sum::<usize>(), 50);
}

#[test]
fn endpoints_follow_a_service() {
    let server = DnsServer::start();
    let name = "_http._tcp.web.test";
    server.set_srv(name, 0, &[(0, 5, 8080, "a.test."), (0, 5, 8081, "b.test.")]);
    server.set_a("a.test", 0, &["10.0.0.1"]);
    server.set_a("b.test", 0, &["10.0.0.2"]);
    let resolver = resolver(&server);
    let targets: &[&str] = &["srv:_http._tcp.web.test"];
    let pools = Pools::build(&configs(&[("web", targets)]), &resolver, None);
    assert!(pools.wait_ready(LIMIT));
    let pool = pools.get("web").unwrap();
    wait_for(pool, &["10.0.0.1:8080", "10.0.0.2:8081"]);
    server.set_a("a.test", 0, &["10.0.0.3"]);
    wait_for(pool, &["10.0.0.2:8081", "10.0.0.3:8080"]);
    server.set_srv(name, 0, &[(0, 5, 8082, "a.test.")]);
    wait_for(pool, &["10.0.0.3:8082"]);
}

#[test]
fn the_lowest_priority_number_goes_first() {
    let server = DnsServer::start();
    let name = "_http._tcp.web.test";
    server.set_srv(name, 0, &[(7, 5, 80, "b.test."), (3, 5, 80, "a.test.")]);
    server.set_a("a.test", 0, &["10.0.0.1"]);
    server.set_a("b.test", 0, &["10.0.0.2"]);
    let resolver = resolver(&server);
    let targets: &[&str] = &["srv:_http._tcp.web.test"];
    let pools = Pools::build(&configs(&[("web", targets)]), &resolver, None);
    assert!(pools.wait_ready(LIMIT));
    let pool = pools.get("web").unwrap();
    let chosen = || {
        let picked = pool.select(&Wish::default());
        picked.map_or_else(|_| String::new(), |picked| picked.address().to_owned())
    };
    wait_until("the first one", || chosen() == "10.0.0.1:80");
    for _ in 0..50 {
        assert_eq!(chosen(), "10.0.0.1:80");
    }
    // Without addresses it is no server that can be used.
    server.set(
        "a.test",
        RecordType::A,
        Answer::NxDomain { negative_ttl: None },
    );
    wait_until("the one that stands in", || chosen() == "10.0.0.2:80");
    server.set_a("a.test", 0, &["10.0.0.1"]);
    wait_until("the first one again", || chosen() == "10.0.0.1:80");
}

#[test]
fn a_pool_waits_for_the_service_and_for_its_servers() {
    let server = DnsServer::start();
    let name = "_http._tcp.web.test";
    server.set(name, RecordType::SRV, Answer::ServFail);
    server.set("a.test", RecordType::A, Answer::ServFail);
    let resolver = resolver(&server);
    let targets: &[&str] = &["srv:_http._tcp.web.test"];
    let pools = Pools::build(&configs(&[("web", targets)]), &resolver, None);
    let pool = pools.get("web").unwrap();
    let waits_for = |names: &[&str]| {
        wait_until(&format!("it waits for {names:?}"), || {
            pool.snapshot().waiting_for == names
        });
        assert_eq!(
            pool.select(&Wish::default()).unwrap_err(),
            Unavailable::Unresolved
        );
    };
    waits_for(&["srv:_http._tcp.web.test"]);
    server.set_srv(name, 0, &[(0, 0, 80, "a.test.")]);
    waits_for(&["a.test."]);
    server.set_a("a.test", 0, &["10.0.0.1"]);
    assert!(pools.wait_ready(LIMIT));
    wait_for(pool, &["10.0.0.1:80"]);
}

#[test]
fn without_an_answer_the_pool_waits_and_says_so() {
    let server = DnsServer::start();
    server.set("web.test", RecordType::A, Answer::ServFail);
    let resolver = resolver(&server);
    let pools = Pools::build(&configs(&[("web", &["web.test:80"])]), &resolver, None);
    let pool = pools.get("web").unwrap();
    assert!(!pools.wait_ready(millis(50)));
    assert_eq!(
        pool.select(&Wish::default()).unwrap_err(),
        Unavailable::Unresolved
    );
    assert!(!pool.has_endpoints());
    assert_eq!(
        pool.readiness(),
        Readiness::Waiting(vec!["web.test".to_owned()])
    );
    assert_eq!(pool.snapshot().waiting_for, ["web.test"]);

    server.set_a("web.test", 300, &["10.0.0.1"]);
    assert!(pools.wait_ready(LIMIT));
    assert_eq!(pool.readiness(), Readiness::Ready);
    assert_eq!(
        pool.select(&Wish::default()).unwrap().address(),
        "10.0.0.1:80"
    );
}

#[test]
fn a_name_that_does_not_exist_is_an_answer() {
    let server = DnsServer::start();
    let resolver = resolver(&server);
    let pools = Pools::build(&configs(&[("web", &["typo.test:80"])]), &resolver, None);
    assert!(pools.wait_ready(LIMIT));
    let pool = pools.get("web").unwrap();
    wait_until("empty", || {
        pool.select(&Wish::default()).err() == Some(Unavailable::Empty)
    });
    assert_eq!(pool.readiness(), Readiness::Ready);
}

#[test]
fn one_bad_name_does_not_hold_up_a_pool_with_endpoints() {
    let server = DnsServer::start();
    server.set("bad.test", RecordType::A, Answer::Silence);
    let config = Dns {
        timeout: LIMIT,
        ..settings(&server)
    };
    let resolver = Resolver::start(&config).unwrap();
    let targets: &[&str] = &["bad.test:80", "10.0.0.1:80"];
    let pools = Pools::build(&configs(&[("web", targets)]), &resolver, None);
    assert!(pools.wait_ready(Duration::ZERO));
    assert_eq!(
        pools
            .get("web")
            .unwrap()
            .select(&Wish::default())
            .unwrap()
            .address(),
        "10.0.0.1:80"
    );
}

#[test]
fn two_pools_make_one_stream_of_queries() {
    let server = DnsServer::start();
    server.set_a("web.test", 300, &["10.0.0.1"]);
    let resolver = resolver(&server);
    let two: &[(&str, &[&str])] = &[
        ("a", &["web.test:80"]),
        ("b", &["web.test:81", "web.test:82"]),
    ];
    let pools = Pools::build(&configs(two), &resolver, None);
    assert!(pools.wait_ready(LIMIT));
    wait_for(pools.get("a").unwrap(), &["10.0.0.1:80"]);
    wait_for(pools.get("b").unwrap(), &["10.0.0.1:81", "10.0.0.1:82"]);
    assert_eq!(server.queries().len(), 1);
}
