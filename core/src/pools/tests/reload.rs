//! What a reload carries over.

use super::*;
use crate::config::Timeouts;
use crate::metrics::PoolSample;

#[test]
fn an_unchanged_pool_is_the_same_pool() {
    let server = DnsServer::start();
    server.set_a("web.test", 300, &["10.0.0.1"]);
    let resolver = resolver(&server);
    let before: &[(&str, &[&str])] = &[
        ("api", &["10.0.0.9:80"]),
        ("gone", &["gone.test:80"]),
        ("web", &["web.test:80"]),
    ];
    let old = Pools::build(&configs(before), &resolver, None);
    wait_for(old.get("web").unwrap(), &["10.0.0.1:80"]);
    let held = old.get("web").unwrap().select(&Wish::default()).unwrap();

    let after: &[(&str, &[&str])] = &[
        ("api", &["10.0.0.8:80", "10.0.0.9:80"]),
        ("new", &["10.0.0.7:80"]),
        ("web", &["web.test:80"]),
    ];
    let new = Pools::build(&configs(after), &resolver, Some(&old));
    assert!(Arc::ptr_eq(
        old.get("web").unwrap(),
        new.get("web").unwrap()
    ));
    assert!(!Arc::ptr_eq(
        old.get("api").unwrap(),
        new.get("api").unwrap()
    ));
    assert_eq!(new.get("web").unwrap().snapshot().endpoints[0].in_flight, 1);
    assert!(new.get("gone").is_none());
    assert_eq!(new.len(), 3);

    // When the old generation has drained, the name that only it used isn't asked any more.
    drop(old);
    let names: Vec<_> = resolver
        .snapshot()
        .names
        .into_iter()
        .map(|n| n.name)
        .collect();
    assert_eq!(names, ["web.test"]);
    assert_eq!(
        server.count("web.test", hickory_resolver::proto::rr::RecordType::A),
        1
    );
    drop(held);
}

#[test]
fn a_changed_pool_keeps_the_endpoints_that_stay() {
    let server = DnsServer::start();
    let resolver = resolver(&server);
    let old = Pools::build(&configs(&[("web", &["10.0.0.1:80"])]), &resolver, None);
    let held = old.get("web").unwrap().select(&Wish::default()).unwrap();

    let wider = configs(&[("web", &["10.0.0.1:80", "10.0.0.2:80"])]);
    let new = Pools::build(&wider, &resolver, Some(&old));
    let pool = new.get("web").unwrap();
    assert_eq!(addresses(pool), ["10.0.0.1:80", "10.0.0.2:80"]);
    let sample = PoolSample::from(pool.snapshot());
    assert_eq!((sample.endpoints, sample.in_flight), (2, 1));

    // Other timeouts need other peers.
    let mut slower = wider.clone();
    slower.get_mut("web").unwrap().timeouts = Timeouts {
        read: millis(1),
        ..Timeouts::default()
    };
    let newer = Pools::build(&slower, &resolver, Some(&new));
    let picked = newer
        .get("web")
        .unwrap()
        .select(&Wish {
            avoid: &[held.endpoint()],
            ..Wish::default()
        })
        .unwrap();
    assert_eq!(picked.peer().options.read_timeout, Some(millis(1)));
    assert_eq!(
        held.peer().options.read_timeout,
        Some(Timeouts::default().read)
    );
}

#[test]
fn a_new_name_of_a_changed_pool_can_be_waited_for() {
    let server = DnsServer::start();
    server.set_a("one.test", 300, &["10.0.0.1"]);
    server.set_a("two.test", 300, &["10.0.0.2"]);
    let resolver = resolver(&server);
    let old = Pools::build(&configs(&[("web", &["one.test:80"])]), &resolver, None);
    assert!(old.wait_ready(LIMIT));
    let new = Pools::build(
        &configs(&[("web", &["two.test:80"])]),
        &resolver,
        Some(&old),
    );
    // Nothing of the old pool's endpoints remains in it.
    assert!(new.wait_ready(LIMIT));
    assert_eq!(addresses(new.get("web").unwrap()), ["10.0.0.2:80"]);
    assert_eq!(addresses(old.get("web").unwrap()), ["10.0.0.1:80"]);
}

#[test]
fn positions_are_those_of_the_sorted_names() {
    let server = DnsServer::start();
    let names: &[(&str, &[&str])] = &[("b", &["10.0.0.2:80"]), ("a", &["10.0.0.1:80"])];
    let pools = Pools::build(&configs(names), &resolver(&server), None);
    assert_eq!(pools.index_of("b"), Some(1));
    assert_eq!(pools.at(1).unwrap().name(), "b");
    assert_eq!(pools.index_of("c"), None);
    assert!(pools.at(2).is_none());
    let order: Vec<_> = pools.iter().map(|pool| pool.name()).collect();
    assert_eq!(order, ["a", "b"]);
    assert!(!pools.is_empty());
}
