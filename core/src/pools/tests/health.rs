//! Endpoints that fail, as the pool sees them.

use std::collections::BTreeSet;
use std::time::Instant;

use super::*;
use crate::config::{Ejection, HealthCheck, Initial, Probe, Thousandths};
use crate::metrics::{EjectionReason, PoolSample};

const REFUSED: Outcome = Outcome::Failed(Fault::Refused);

fn ejecting(targets: &[&str], ejection: Ejection) -> PoolConfig {
    PoolConfig {
        balance: Balance::RoundRobin,
        ejection,
        ..config(targets)
    }
}

fn quick() -> Ejection {
    Ejection {
        consecutive_failures: 2,
        base_time: millis(100),
        ..Ejection::default()
    }
}

fn checked(targets: &[&str], initial: Initial) -> PoolConfig {
    PoolConfig {
        health: Some(HealthCheck {
            probe: Probe::Tcp,
            interval: millis(100),
            timeout: millis(100),
            healthy: 1,
            unhealthy: 1,
            port: None,
            initial,
        }),
        ..ejecting(targets, Ejection::default())
    }
}

/// Reports `outcome` of the endpoint at `address`, so often.
fn report(pool: &Pool, address: &str, outcome: Outcome, times: usize) {
    let endpoints = pool.endpoints();
    let found = endpoints.iter().find(|e| e.address() == address).unwrap();
    for _ in 0..times {
        pool.report_on(found.standing(), outcome, None);
    }
}

fn say(pool: &Pool, address: &str, well: bool) {
    let endpoints = pool.endpoints();
    let found = endpoints.iter().find(|e| e.address() == address).unwrap();
    let check = pool.config().health.as_ref().unwrap();
    let result = if well { Ok(()) } else { Err("said no") };
    found
        .standing()
        .checked(result, check, std::time::SystemTime::now());
}

/// What the keeper does.
fn look(pool: &Pool, now: Instant) -> Vec<Event> {
    let review = pool.review(now, false);
    pool.rebuild();
    review.events
}

/// Those that requests get.
fn used(pool: &Pool) -> Vec<String> {
    let seen: BTreeSet<String> = (0..50)
        .filter_map(|_| Some(pool.select(&Wish::default()).ok()?.address().to_owned()))
        .collect();
    seen.into_iter().collect()
}

const TWO: [&str; 2] = ["10.0.0.1:80", "10.0.0.2:80"];
const FOUR: [&str; 4] = ["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80", "10.0.0.4:80"];

#[test]
fn one_that_fails_is_left_out_and_comes_back() {
    let pool = pool(ejecting(&TWO, quick()));
    let start = Instant::now();
    report(&pool, TWO[0], REFUSED, 1);
    assert!(look(&pool, start).is_empty());
    report(&pool, TWO[0], REFUSED, 1);
    let events = look(&pool, start);
    let [Event::Ejected(endpoint, EjectionReason::Failures, time)] = &*events else {
        panic!("{events:?}");
    };
    assert_eq!((endpoint.address(), *time), (TWO[0], millis(100)));
    assert_eq!(used(&pool), [TWO[1]]);
    // All of it is told.
    let status = pool.snapshot();
    assert_eq!(status.endpoints.len(), 2);
    let told = &status.endpoints[0];
    assert_eq!((told.usable, told.ejected), (false, Some("failures")));
    assert_eq!(told.last_failure.as_deref(), Some("connection refused"));
    assert!(told.since.is_some() && told.healthy.is_none() && !status.panic);
    assert_eq!(PoolSample::from(status).endpoints, 1);

    assert_eq!(pool.review(start, false).next, Some(start + millis(100)));
    assert!(look(&pool, start + millis(99)).is_empty());
    let events = look(&pool, start + millis(100));
    assert!(matches!(&*events, [Event::Returned(_)]), "{events:?}");
    assert_eq!(used(&pool), TWO);
    // The next one lasts longer.
    report(&pool, TWO[0], REFUSED, 2);
    let events = look(&pool, start + millis(150));
    assert!(
        matches!(&*events, [Event::Ejected(_, _, time)] if *time == millis(200)),
        "{events:?}"
    );
}

#[test]
fn no_more_than_the_share_and_never_the_only_one() {
    let pool_of_four = pool(ejecting(&FOUR, quick()));
    let now = Instant::now();
    for address in FOUR {
        report(&pool_of_four, address, REFUSED, 2);
    }
    let events = look(&pool_of_four, now);
    let spared = events.iter().filter(|e| matches!(e, Event::Spared(..)));
    assert_eq!((events.len(), spared.count()), (4, 2), "{events:?}");
    assert_eq!(used(&pool_of_four), FOUR[2..]);
    assert!(!pool_of_four.is_panicking());
    // It was looked at: no alarm without new failures.
    assert!(look(&pool_of_four, now).is_empty());

    let alone = pool(ejecting(&TWO[..1], quick()));
    report(&alone, TWO[0], REFUSED, 50);
    let events = look(&alone, now);
    assert!(matches!(&*events, [Event::Spared(..)]), "{events:?}");
    assert_eq!(used(&alone), [TWO[0]]);
}

#[test]
fn a_pool_that_shrinks_brings_ejected_ones_back() {
    let server = DnsServer::start();
    server.set_a(
        "web.test",
        0,
        &["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"],
    );
    let configs = BTreeMap::from([("web".to_owned(), ejecting(&["web.test:80"], quick()))]);
    let resolver = resolver(&server);
    let pools = Pools::build(&configs, &resolver, None);
    let pool = pools.get("web").unwrap();
    wait_for(pool, &FOUR);
    report(pool, FOUR[0], REFUSED, 2);
    report(pool, FOUR[1], REFUSED, 2);
    look(pool, Instant::now());
    assert_eq!(used(pool), FOUR[2..]);
    server.set_a("web.test", 0, &["10.0.0.1", "10.0.0.2"]);
    wait_for(pool, &FOUR[..2]);
    assert_eq!(used(pool).len(), 1);
}

#[test]
fn checks_say_who_is_used_and_too_many_verdicts_are_not_believed() {
    let pool = pool(checked(&FOUR, Initial::Healthy));
    let now = Instant::now();
    assert_eq!(used(&pool), FOUR);
    say(&pool, FOUR[0], false);
    say(&pool, FOUR[1], false);
    look(&pool, now);
    assert_eq!(used(&pool), FOUR[2..]);
    let told = pool.snapshot();
    assert_eq!(told.endpoints[0].healthy, Some(false));
    assert_eq!(
        told.endpoints[0].last_failure.as_deref(),
        Some("check: said no")
    );
    // A third one is too many.
    say(&pool, FOUR[2], false);
    look(&pool, now);
    assert_eq!(used(&pool), FOUR);
    assert!(pool.is_panicking() && pool.snapshot().panic);
    say(&pool, FOUR[0], true);
    look(&pool, now);
    assert_eq!(used(&pool), [FOUR[0], FOUR[3]]);
    assert!(!pool.is_panicking());
}

#[test]
fn without_panic_nobody_is_left_and_the_proxy_stays_ready() {
    let all = Ejection {
        max_share: Thousandths(1000),
        ..Ejection::default()
    };
    let pool = pool(PoolConfig {
        ejection: all,
        ..checked(&TWO, Initial::Healthy)
    });
    say(&pool, TWO[0], false);
    say(&pool, TWO[1], false);
    look(&pool, Instant::now());
    let none = pool.select(&Wish::default()).unwrap_err();
    assert_eq!(none, Unavailable::Unhealthy);
    assert_eq!(none.to_string(), "all targets are ejected or unhealthy");
    assert!(pool.has_endpoints());
    assert_eq!(pool.readiness(), Readiness::Ready);
}

#[test]
fn who_must_be_checked_first_waits_for_that() {
    let pool = pool(checked(&TWO, Initial::Unhealthy));
    assert_eq!(
        pool.select(&Wish::default()).unwrap_err(),
        Unavailable::Unhealthy
    );
    say(&pool, TWO[1], true);
    look(&pool, Instant::now());
    assert_eq!(used(&pool), [TWO[1]]);
}

#[test]
fn a_changed_pool_knows_how_its_addresses_stand() {
    let server = DnsServer::start();
    let resolver = resolver(&server);
    let build = |config: PoolConfig, previous: Option<&Pools>| {
        let configs = BTreeMap::from([("web".to_owned(), config)]);
        Pools::build(&configs, &resolver, previous)
    };
    let first = build(checked(&FOUR, Initial::Healthy), None);
    let pool = first.get("web").unwrap();
    say(pool, FOUR[0], false);
    report(pool, FOUR[1], REFUSED, 5);
    look(pool, Instant::now());
    assert_eq!(used(pool), FOUR[2..]);

    // The timeouts change, so endpoints are made anew, and one target goes.
    let mut other = checked(
        &["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80", "10.0.0.5:80"],
        Initial::Healthy,
    );
    other.timeouts.read = millis(77);
    let second = build(other.clone(), Some(&first));
    let pool = second.get("web").unwrap();
    assert_eq!(used(pool), ["10.0.0.3:80", "10.0.0.5:80"]);
    let told = pool.snapshot().endpoints;
    assert_eq!(told[0].healthy, Some(false));
    assert_eq!(told[1].ejected, Some("failures"));
    assert!(told[3].since.is_none());

    // Without checks what they said doesn't count any more.
    other.health = None;
    let third = build(other, Some(&second));
    let pool = third.get("web").unwrap();
    assert_eq!(used(pool), ["10.0.0.1:80", "10.0.0.3:80", "10.0.0.5:80"]);
    assert_eq!(pool.snapshot().endpoints[0].healthy, None);
}

#[test]
fn slow_ones_are_found_by_their_latency() {
    let targets: Vec<String> = (1..=6).map(|n| format!("10.0.0.{n}:80")).collect();
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    let limits = Ejection {
        latency_factor: Thousandths(3000),
        ..quick()
    };
    let pool = pool(ejecting(&targets, limits));
    assert!(pool.compares_latencies());
    let now = Instant::now();
    let answer = |answers: usize| {
        for endpoint in pool.endpoints().iter() {
            let slow = endpoint.address() == targets[2];
            let time = millis(if slow { 40 } else { 10 });
            for _ in 0..answers {
                pool.report_on(endpoint.standing(), Outcome::Answered(200), Some(time));
            }
        }
    };
    answer(99);
    assert!(pool.review(now, true).events.is_empty());
    answer(100);
    // Not before the interval is over.
    assert!(pool.review(now, false).events.is_empty());
    let events = pool.review(now, true).events;
    let [Event::Ejected(endpoint, EjectionReason::Latency, _)] = &*events else {
        panic!("{events:?}");
    };
    assert_eq!(endpoint.address(), targets[2]);
}
