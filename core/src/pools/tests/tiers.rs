//! Who is preferred to whom, what a request may wish for, and how targets begin.

use edgewright_script::stable_hash::StampKey;

use super::*;
use crate::config::{PoolTarget, TargetTraits};

fn target(address: &str, traits: TargetTraits) -> PoolTarget {
    PoolTarget {
        target: address.parse().unwrap(),
        traits,
    }
}

fn of(targets: &[(&str, TargetTraits)], change: impl FnOnce(&mut PoolConfig)) -> PoolConfig {
    let targets = targets.iter();
    let mut config = PoolConfig {
        targets: targets
            .map(|(address, traits)| target(address, traits.clone()))
            .collect(),
        ..config(&[])
    };
    change(&mut config);
    config
}

fn plain() -> TargetTraits {
    TargetTraits::default()
}

fn backup() -> TargetTraits {
    TargetTraits {
        backup: true,
        ..plain()
    }
}

fn in_zone(zone: &str) -> TargetTraits {
    TargetTraits {
        zone: Some(zone.into()),
        ..plain()
    }
}

fn weighing(weight: u16) -> TargetTraits {
    TargetTraits { weight, ..plain() }
}

/// All that are chosen, one by one avoided, in groups of equals.
fn order(pool: &Pool, groups: &[usize]) -> Vec<Vec<String>> {
    let mut avoid = Vec::new();
    let group = |count: &usize| {
        let mut group = Vec::new();
        for _ in 0..*count {
            let wish = Wish {
                avoid: &avoid,
                ..Wish::default()
            };
            let picked = pool.select(&wish).unwrap();
            avoid.push(picked.endpoint());
            group.push(picked.address().to_owned());
        }
        group.sort();
        group
    };
    groups.iter().map(group).collect()
}

#[test]
fn own_zone_then_others_then_backups() {
    let near_backup = TargetTraits {
        zone: Some("a".into()),
        ..backup()
    };
    let targets = [
        ("10.0.0.1:80", backup()),
        ("10.0.0.2:80", in_zone("b")),
        ("10.0.0.3:80", in_zone("a")),
        ("10.0.0.4:80", near_backup),
        ("10.0.0.5:80", plain()),
        ("10.0.0.6:80", in_zone("a")),
    ];
    let near = pool(of(&targets, |config| config.own_zone = Some("a".into())));
    assert_eq!(
        order(&near, &[2, 2, 1, 1]),
        [
            vec!["10.0.0.3:80", "10.0.0.6:80"],
            vec!["10.0.0.2:80", "10.0.0.5:80"],
            vec!["10.0.0.4:80"],
            vec!["10.0.0.1:80"],
        ]
    );
    let nowhere = pool(of(&targets, |_| ()));
    assert_eq!(order(&nowhere, &[4, 2])[1], ["10.0.0.1:80", "10.0.0.4:80"]);
    // When all have failed, the first ones are tried again.
    let all: Vec<_> = near.snapshot().endpoints.iter().map(|e| e.id).collect();
    let wish = Wish {
        avoid: &all,
        ..Wish::default()
    };
    for _ in 0..20 {
        let again = near.select(&wish).unwrap();
        assert!(["10.0.0.3:80", "10.0.0.6:80"].contains(&again.address()));
    }
}

#[test]
fn a_weight_of_zero_is_only_for_those_who_ask_for_it() {
    let targets = [("10.0.0.1:80", weighing(0)), ("10.0.0.2:80", backup())];
    let draining = pool(of(&targets, |_| ()));
    assert_eq!(
        draining.select(&Wish::default()).unwrap().address(),
        "10.0.0.2:80"
    );
    let wish = Wish {
        target: Some(Wanted::Address("10.0.0.1:80")),
        ..Wish::default()
    };
    assert_eq!(draining.select(&wish).unwrap().address(), "10.0.0.1:80");
    let empty = pool(of(&targets[..1], |_| ()));
    assert_eq!(
        empty.select(&Wish::default()).unwrap_err(),
        Unavailable::Drained
    );
    assert!(!empty.can_balance());
    assert_eq!(empty.readiness(), Readiness::Ready);
}

#[test]
fn a_wish_is_granted_where_it_can_be() {
    let pool = pool(config(&["10.0.0.1:80", "10.0.0.2:80"]));
    let address = |target, only, avoid: &[EndpointId]| {
        let picked = pool.select(&Wish {
            target: Some(target),
            only,
            avoid,
            ..Wish::default()
        });
        picked.map(|picked| picked.address().to_owned())
    };
    let wanted = Wanted::Address("10.0.0.2:80");
    let id = pool.snapshot().endpoints[1].id;
    for _ in 0..20 {
        assert_eq!(address(wanted, false, &[]).unwrap(), "10.0.0.2:80");
        // It has failed already.
        assert_eq!(address(wanted, false, &[id]).unwrap(), "10.0.0.1:80");
        assert_eq!(address(wanted, true, &[id]).unwrap(), "10.0.0.2:80");
    }
    let unknown = Wanted::Address("10.0.0.3:80");
    assert!(address(unknown, false, &[]).is_ok());
    assert_eq!(address(unknown, true, &[]), Err(Unavailable::NotThere));

    let key = StampKey::of_secret(b"0123456789abcdef");
    let stamp = key.stamp(OF_ADDRESS, "10.0.0.2:80");
    assert_eq!(
        address(Wanted::Stamp(&key, stamp), true, &[]).unwrap(),
        "10.0.0.2:80"
    );
    let other = Wanted::Stamp(&StampKey::PUBLIC, stamp);
    assert_eq!(address(other, true, &[]), Err(Unavailable::NotThere));
}

#[test]
fn a_cookie_does_not_hold_a_client_at_a_backup() {
    let targets = [("10.0.0.1:80", plain()), ("10.0.0.2:80", backup())];
    let stamp = StampKey::PUBLIC.stamp(OF_ADDRESS, "10.0.0.2:80");
    let wish = Wish {
        target: Some(Wanted::Stamp(&StampKey::PUBLIC, stamp)),
        ..Wish::default()
    };
    let both = pool(of(&targets, |_| ()));
    assert_eq!(both.select(&wish).unwrap().address(), "10.0.0.1:80");
    let spare = [targets[1].clone(), ("10.0.0.3:80", backup())];
    let spare = pool(of(&spare, |_| ()));
    for _ in 0..20 {
        assert_eq!(spare.select(&wish).unwrap().address(), "10.0.0.2:80");
    }
}

#[test]
fn a_changed_weight_keeps_the_endpoint() {
    let server = DnsServer::start();
    let resolver = resolver(&server);
    let build = |weight, previous: Option<&Pools>| {
        let config = of(
            &[("10.0.0.1:80", weighing(weight)), ("10.0.0.2:80", plain())],
            |config| {
                config.balance = Balance::RoundRobin;
            },
        );
        Pools::build(
            &BTreeMap::from([("web".to_owned(), config)]),
            &resolver,
            previous,
        )
    };
    let old = build(1, None);
    let held = old.get("web").unwrap().select(&Wish::default()).unwrap();
    let new = build(4, Some(&old));
    let pool = new.get("web").unwrap();
    assert_eq!(
        pool.snapshot()
            .endpoints
            .iter()
            .map(|e| e.in_flight)
            .sum::<usize>(),
        1
    );
    drop(held);
    let picks =
        (0..50).filter(|_| pool.select(&Wish::default()).unwrap().address() == "10.0.0.1:80");
    assert_eq!(picks.count(), 40);
}

/// A name's first answer is the beginning of its pool; what comes later joins others.
#[test]
fn who_joins_begins_slowly() {
    let server = DnsServer::start();
    server.set_a("web.test", 0, &["10.0.0.1", "10.0.0.2"]);
    let resolver = resolver(&server);
    let config = PoolConfig {
        balance: Balance::RoundRobin,
        // The test is over long before.
        slow_start: Some(Duration::from_secs(24 * 3600)),
        ..config(&["web.test:80", "10.0.0.9:80"])
    };
    let configs = BTreeMap::from([("web".to_owned(), config)]);
    let pools = Pools::build(&configs, &resolver, None);
    let pool = pools.get("web").unwrap();
    wait_for(pool, &["10.0.0.1:80", "10.0.0.2:80", "10.0.0.9:80"]);
    let share = |address: &str| {
        let picks =
            (0..3000).filter(|_| pool.select(&Wish::default()).unwrap().address() == address);
        picks.count()
    };
    for address in ["10.0.0.1:80", "10.0.0.9:80"] {
        assert_eq!(share(address), 1000);
    }
    server.set_a("web.test", 0, &["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
    wait_for(
        pool,
        &["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80", "10.0.0.9:80"],
    );
    // A tenth of 750, with a deviation of 8; what it doesn't take goes to the others.
    let new = share("10.0.0.3:80");
    assert!((30..=125).contains(&new), "{new}");
    let old = share("10.0.0.1:80");
    assert!((850..=1100).contains(&old), "{old}");
    // Where nobody else is, it has all of it.
    let others: Vec<_> = pool
        .snapshot()
        .endpoints
        .iter()
        .filter(|e| e.address != "10.0.0.3:80")
        .map(|e| e.id)
        .collect();
    let alone = Wish {
        avoid: &others,
        ..Wish::default()
    };
    for _ in 0..20 {
        assert_eq!(pool.select(&alone).unwrap().address(), "10.0.0.3:80");
    }
}

/// Whose turn is left out must not have the next one, which in a round robin of two is his again.
#[test]
fn of_two_the_new_one_has_a_tenth_of_a_half() {
    let config = |targets: &[&str]| {
        let config = PoolConfig {
            balance: Balance::RoundRobin,
            slow_start: Some(Duration::from_secs(24 * 3600)),
            ..config(targets)
        };
        BTreeMap::from([("web".to_owned(), config)])
    };
    let resolver = resolver(&DnsServer::start());
    let one = Pools::build(&config(&["10.0.0.1:80"]), &resolver, None);
    let two = Pools::build(
        &config(&["10.0.0.1:80", "10.0.0.2:80"]),
        &resolver,
        Some(&one),
    );
    let pool = two.get("web").unwrap();
    let picks = (0..10_000).map(|_| pool.select(&Wish::default()).unwrap());
    let new = picks.filter(|picked| picked.address() == "10.0.0.2:80");
    // With a deviation of 21.
    let new = new.count();
    assert!((380..=620).contains(&new), "{new}");
}

#[test]
fn keys_have_their_targets_in_every_pool() {
    for balance in [Balance::LeastRequests, Balance::Hash, Balance::RingHash] {
        let targets: Vec<String> = (1..=5).map(|n| format!("10.0.0.{n}:80")).collect();
        let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
        let pool = pool(PoolConfig {
            balance,
            ..config(&targets)
        });
        let mut seen = std::collections::BTreeSet::new();
        for key in 0_u64..60 {
            let wish = Wish {
                key: Some(edgewright_script::stable_hash::stable_hash(
                    &key.to_le_bytes(),
                )),
                ..Wish::default()
            };
            let first = pool.select(&wish).unwrap();
            assert_eq!(pool.select(&wish).unwrap().address(), first.address());
            let avoid = [first.endpoint()];
            let second = pool
                .select(&Wish {
                    avoid: &avoid,
                    ..wish
                })
                .unwrap();
            assert_ne!(second.address(), first.address());
            assert_eq!(
                pool.select(&Wish {
                    avoid: &avoid,
                    ..wish
                })
                .unwrap()
                .address(),
                second.address()
            );
            seen.insert(first.address().to_owned());
        }
        assert_eq!(seen.len(), 5, "{balance:?}");
    }
}
