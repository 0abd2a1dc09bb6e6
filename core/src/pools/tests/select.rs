//! Which endpoint a request gets, and what its peer is like.

use std::collections::BTreeMap as Map;

use pingora_core::connectors::TransportConnector;
use pingora_core::upstreams::peer::Peer;

use super::*;
use crate::config::Timeouts;
use crate::metrics::ConnectFailure;

fn round_robin(targets: &[&str]) -> Arc<Pool> {
    pool(PoolConfig {
        balance: Balance::RoundRobin,
        ..config(targets)
    })
}

fn in_flight(pool: &Pool) -> Vec<usize> {
    let endpoints = pool.snapshot().endpoints;
    endpoints
        .iter()
        .map(|endpoint| endpoint.in_flight)
        .collect()
}

#[test]
fn targets_merge_and_duplicates_collapse() {
    let pool = pool(config(&[
        "unix:/run/app.sock",
        "10.0.0.2:80",
        "10.0.0.1:80",
        "10.0.0.2:80",
        "10.0.0.1:81",
    ]));
    let expected = [
        "10.0.0.1:80",
        "10.0.0.1:81",
        "10.0.0.2:80",
        "unix:/run/app.sock",
    ];
    assert_eq!(addresses(&pool), expected);
    assert_eq!(pool.readiness(), Readiness::Ready);
}

#[test]
fn round_robin_is_even() {
    let pool = round_robin(&["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"]);
    let mut counts: Map<String, usize> = Map::new();
    for _ in 0..300 {
        let picked = pool.select(&Wish::default()).unwrap();
        *counts.entry(picked.address().to_owned()).or_default() += 1;
    }
    assert_eq!(counts.into_values().collect::<Vec<_>>(), [100, 100, 100]);
}

#[test]
fn the_less_loaded_of_two_gets_the_request() {
    let pool = pool(config(&["10.0.0.1:80", "10.0.0.2:80"]));
    let held: Vec<_> = (0..10)
        .map(|_| pool.select(&Wish::default()).unwrap())
        .collect();
    // Each pick goes to the one with fewer, so both end with the same number.
    assert_eq!(in_flight(&pool), [5, 5]);
    let (one, two): (Vec<_>, Vec<_>) = held
        .into_iter()
        .partition(|picked| picked.address() == "10.0.0.1:80");
    drop(two);
    assert_eq!(in_flight(&pool), [5, 0]);
    let held: Vec<_> = (0..5)
        .map(|_| pool.select(&Wish::default()).unwrap())
        .collect();
    assert!(held.iter().all(|picked| picked.address() == "10.0.0.2:80"));
    drop((one, held));
    assert_eq!(in_flight(&pool), [0, 0]);
}

#[test]
fn a_slow_endpoint_gets_less() {
    let targets: Vec<String> = (1..=8).map(|n| format!("10.0.0.{n}:80")).collect();
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    let pool = pool(config(&targets));
    let slow = pool.snapshot().endpoints[0].address.clone();
    let mut stuck = Vec::new();
    for _ in 0..1000 {
        let picked = pool.select(&Wish::default()).unwrap();
        if picked.address() == slow {
            stuck.push(picked);
        }
    }
    // The others are always free, so it only ever gets the first request.
    assert_eq!(stuck.len(), 1);
}

#[test]
fn the_one_that_failed_is_avoided_when_there_is_another() {
    for pool in [
        pool(config(&["10.0.0.1:80", "10.0.0.2:80"])),
        round_robin(&["10.0.0.1:80", "10.0.0.2:80"]),
    ] {
        for _ in 0..50 {
            let failed = pool.select(&Wish::default()).unwrap();
            let next = pool
                .select(&Wish {
                    avoid: &[failed.endpoint()],
                    ..Wish::default()
                })
                .unwrap();
            assert_ne!(failed.address(), next.address());
        }
    }
    let alone = pool(config(&["10.0.0.1:80"]));
    let failed = alone.select(&Wish::default()).unwrap().endpoint();
    assert_eq!(
        alone
            .select(&Wish {
                avoid: &[failed],
                ..Wish::default()
            })
            .unwrap()
            .address(),
        "10.0.0.1:80"
    );
}

#[test]
fn the_peer_has_all_timeouts() {
    let timeouts = Timeouts {
        connect: millis(100),
        read: millis(200),
        write: millis(300),
        idle: millis(400),
        tunnel: Duration::from_secs(5),
    };
    for target in ["10.0.0.1:80", "[fd00::1]:80", "unix:/run/app.sock"] {
        let pool = pool(PoolConfig {
            timeouts,
            ..config(&[target])
        });
        let picked = pool.select(&Wish::default()).unwrap();
        assert_eq!(picked.address(), target);
        let peer = picked.peer();
        assert!(!peer.tls());
        assert_eq!(peer.connection_timeout(), Some(millis(100)));
        assert_eq!(peer.total_connection_timeout(), Some(millis(100)));
        assert_eq!(peer.options.read_timeout, Some(millis(200)));
        assert_eq!(peer.options.write_timeout, Some(millis(300)));
        assert_eq!(peer.options.idle_timeout, Some(millis(400)));
        assert!(peer.tcp_keepalive().is_some());
    }
}

#[test]
fn pingoras_own_errors_are_classified() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let open = listener.local_addr().unwrap().to_string();
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let connect = |target: &str| {
        let pool = pool(config(&[target]));
        let picked = pool.select(&Wish::default()).unwrap();
        let connector = TransportConnector::new(None);
        let result = runtime.block_on(connector.new_stream(picked.peer()));
        result
            .map(drop)
            .map_err(|error| classify_connect_error(&error))
    };
    assert_eq!(connect(&open), Ok(()));
    assert_eq!(connect(&closed), Err(ConnectFailure::Refused));
    assert_eq!(
        connect("unix:/nonexistent/app.sock"),
        Err(ConnectFailure::Other)
    );
}
