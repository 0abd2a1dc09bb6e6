//! `balance = "peak_ewma"`: who is slow gets nothing, as long as that is remembered.

use super::*;

const TARGETS: [&str; 3] = ["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"];

fn by_latency() -> Arc<Pool> {
    pool(PoolConfig {
        balance: Balance::PeakEwma,
        ..config(&TARGETS)
    })
}

/// Each target has come to this after so many milliseconds.
fn report(pool: &Pool, outcome: Outcome, latencies: [u64; 3]) {
    for (endpoint, latency) in pool.endpoints().iter().zip(latencies) {
        pool.report_on(endpoint.standing(), outcome, Some(millis(latency)));
    }
}

/// How often each is chosen while nobody is busy.
fn shares(pool: &Pool) -> [usize; 3] {
    let mut shares = [0; 3];
    for _ in 0..300 {
        let picked = pool.select(&Wish::default()).unwrap();
        let at = TARGETS.iter().position(|at| *at == picked.address());
        shares[at.unwrap()] += 1;
    }
    shares
}

#[test]
fn who_is_slow_gets_nothing() {
    let pool = by_latency();
    assert!(pool.wants_latencies() && !pool.compares_latencies());
    report(&pool, Outcome::Answered(200), [60_000; 3]);
    assert!(shares(&pool).iter().all(|&share| share > 0));
    // One of them becomes slower, and one request is enough to know.
    report(&pool, Outcome::Answered(200), [100, 100, 120_000]);
    assert_eq!(shares(&pool)[2], 0);
    // That it fails quickly helps nobody.
    for _ in 0..100 {
        report(&pool, Outcome::Answered(503), [100, 100, 1]);
    }
    assert_eq!(shares(&pool)[2], 0);
    let told = pool.snapshot().endpoints;
    let latencies: Vec<_> = told.iter().map(|told| told.latency_ms).collect();
    // Some of it may have faded.
    assert!(
        matches!(
            latencies[..],
            [Some(Some(..=60_000)), _, Some(Some(100_000..=120_000))]
        ),
        "{latencies:?}"
    );
}

#[test]
fn who_never_answers_in_time_is_slow() {
    let pool = by_latency();
    report(&pool, Outcome::Answered(200), [5_000; 3]);
    report(&pool, Outcome::Failed(Fault::Timeout), [1, 1, 60_000]);
    assert_eq!(shares(&pool)[2], 0);
}

#[test]
fn a_slow_one_is_taken_where_there_is_no_other() {
    let pool = by_latency();
    report(&pool, Outcome::Answered(200), [1, 1, 60_000]);
    let others: Vec<_> = pool.endpoints()[..2].iter().map(|e| e.id()).collect();
    let wish = Wish {
        avoid: &others,
        ..Wish::default()
    };
    assert_eq!(pool.select(&wish).unwrap().address(), TARGETS[2]);
}

#[test]
fn who_is_unknown_gets_one_request_at_first() {
    let pool = by_latency();
    let first: Vec<_> = (0..2)
        .map(|_| pool.select(&Wish::default()).unwrap())
        .collect();
    assert_ne!(first[0].address(), first[1].address());
    drop(first);
    let told = &pool.snapshot().endpoints[0];
    assert_eq!(told.latency_ms, Some(None));
    let plain = self::pool(config(&TARGETS));
    assert!(!plain.wants_latencies());
    assert_eq!(plain.snapshot().endpoints[0].latency_ms, None);
}
