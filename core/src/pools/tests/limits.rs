//! Places in a pool with bounds, and the line before them.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use tokio::task::{JoinSet, yield_now};

use super::*;
use crate::config::PoolLimits;

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(300);

fn bounded(targets: &[&str], limits: PoolLimits) -> Arc<Pool> {
    pool(PoolConfig {
        limits,
        ..config(targets)
    })
}

fn places(requests: usize, queue: usize) -> PoolLimits {
    PoolLimits {
        requests: Some(requests),
        queue,
        queue_timeout: LONG,
        ..PoolLimits::default()
    }
}

fn per_target(requests: usize, queue: usize) -> PoolLimits {
    PoolLimits {
        requests_per_target: Some(requests),
        queue,
        queue_timeout: LONG,
        ..PoolLimits::default()
    }
}

async fn enter(pool: &Pool) -> Result<Admitted, Busy> {
    let entered = pool
        .enter(false, false, |pool| pool.select(&Wish::default()))
        .await;
    entered.map(Result::unwrap)
}

/// What a future comes to at once, if it does.
async fn at_once<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
    std::future::poll_fn(|context| {
        Poll::Ready(match std::pin::Pin::new(&mut *future).poll(context) {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        })
    })
    .await
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}

fn numbers(pool: &Pool) -> (Option<usize>, usize) {
    let status = pool.snapshot();
    (status.places_taken, status.requests_waiting)
}

#[test]
fn no_more_than_the_bound_get_a_place() {
    let pool = bounded(&["10.0.0.1:80"], places(2, 0));
    run(async {
        let one = enter(&pool).await.unwrap();
        let two = enter(&pool).await.unwrap();
        assert_eq!(enter(&pool).await.unwrap_err(), Busy::Full);
        assert_eq!(numbers(&pool), (Some(2), 0));
        assert_eq!(pool.in_flight(), 2);
        drop(one);
        let three = enter(&pool).await.unwrap();
        assert_eq!(enter(&pool).await.unwrap_err(), Busy::Full);
        drop((two, three));
    });
    assert_eq!(numbers(&pool), (Some(0), 0));
    assert_eq!(pool.in_flight(), 0);
}

#[test]
fn a_target_gets_no_more_than_its_bound_and_others_get_the_rest() {
    let pool = bounded(
        &["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"],
        per_target(2, 0),
    );
    run(async {
        let mut held = Vec::new();
        for _ in 0..6 {
            held.push(enter(&pool).await.unwrap());
        }
        let loads: Vec<_> = pool.snapshot().endpoints;
        assert!(loads.iter().all(|endpoint| endpoint.in_flight == 2));
        assert_eq!(enter(&pool).await.unwrap_err(), Busy::Full);
        // One that has a place only needs a target; it doesn't wait for one.
        let again = pool
            .enter(true, false, |pool| pool.select(&Wish::default()))
            .await;
        assert_eq!(again.unwrap_err(), Busy::Full);
        let left = held.pop().unwrap();
        drop(left.picked);
        let again = pool
            .enter(true, false, |pool| pool.select(&Wish::default()))
            .await
            .unwrap();
        assert!(again.unwrap().place.is_none());
        drop(held);
    });
}

#[test]
fn a_pool_without_endpoints_has_nothing_to_wait_for() {
    let pool = bounded(&["nobody.invalid:80"], places(1, 5));
    run(async {
        let entered = pool
            .enter(false, false, |pool| pool.select(&Wish::default()))
            .await
            .unwrap();
        assert_eq!(entered.unwrap_err(), Unavailable::Unresolved);
    });
    assert_eq!(numbers(&pool), (Some(0), 0));
}

#[test]
fn who_waits_first_is_served_first() {
    let pool = bounded(&["10.0.0.1:80"], places(1, 100));
    let order = run(async {
        let held = enter(&pool).await.unwrap();
        let mut waiting = JoinSet::new();
        let served = Arc::new(std::sync::Mutex::new(Vec::new()));
        for number in 0..100 {
            let (own, served) = (pool.clone(), served.clone());
            waiting.spawn(async move {
                let admitted = enter(&own).await.unwrap();
                served.lock().unwrap().push(number);
                yield_now().await;
                drop(admitted);
            });
            // It takes its place in the line.
            yield_now().await;
            assert_eq!(pool.snapshot().requests_waiting, number + 1);
        }
        assert_eq!(enter(&pool).await.unwrap_err(), Busy::QueueFull);
        drop(held);
        while let Some(done) = waiting.join_next().await {
            done.unwrap();
        }
        std::mem::take(&mut *served.lock().unwrap())
    });
    assert_eq!(order, (0..100).collect::<Vec<_>>());
    assert_eq!(numbers(&pool), (Some(0), 0));
}

#[test]
fn whoever_comes_does_not_pass_those_who_wait() {
    let pool = bounded(&["10.0.0.1:80"], places(1, 2));
    run(async {
        let held = enter(&pool).await.unwrap();
        let mut first = Box::pin(enter(&pool));
        assert!(at_once(&mut first).await.is_none());
        drop(held);
        // The place is free, and the one that waits has not looked yet.
        let mut second = Box::pin(enter(&pool));
        assert!(at_once(&mut second).await.is_none());
        let held = first.await.unwrap();
        assert!(at_once(&mut second).await.is_none());
        drop(held);
        second.await.unwrap();
    });
}

#[test]
fn one_that_leaves_the_line_gives_its_turn_up() {
    let pool = bounded(&["10.0.0.1:80"], places(1, 2));
    run(async {
        let held = enter(&pool).await.unwrap();
        let mut first = Box::pin(enter(&pool));
        let mut second = Box::pin(enter(&pool));
        assert!(at_once(&mut first).await.is_none());
        assert!(at_once(&mut second).await.is_none());
        // It has been told of the free place already, and leaves all the same.
        drop(held);
        drop(first);
        let held = second.await.unwrap();
        assert_eq!(numbers(&pool), (Some(1), 0));
        drop(held);
    });
}

#[test]
fn a_wait_ends_after_its_time() {
    let limits = PoolLimits {
        queue_timeout: millis(20),
        ..places(1, 1)
    };
    let pool = bounded(&["10.0.0.1:80"], limits);
    run(async {
        let held = enter(&pool).await.unwrap();
        assert_eq!(enter(&pool).await.unwrap_err(), Busy::QueueTimeout);
        assert_eq!(numbers(&pool), (Some(1), 0));
        drop(held);
        enter(&pool).await.unwrap();
    });
}

#[test]
fn a_target_that_becomes_free_wakes_who_waits() {
    let pool = bounded(&["10.0.0.1:80"], per_target(1, 1));
    run(async {
        let Admitted { picked, place } = enter(&pool).await.unwrap();
        let mut waiting = Box::pin(enter(&pool));
        assert!(at_once(&mut waiting).await.is_none());
        // A request that goes elsewhere keeps its place in the pool.
        drop(picked);
        place.as_ref().unwrap().left_target();
        waiting.await.unwrap();
    });
}

#[test]
fn places_are_counted_over_a_reload_with_other_bounds() {
    let server = DnsServer::start();
    let resolver = resolver(&server);
    let with = |limits| {
        let config = PoolConfig {
            limits,
            ..config(&["10.0.0.1:80"])
        };
        BTreeMap::from([("web".to_owned(), config)])
    };
    let old = Pools::build(&with(places(3, 0)), &resolver, None);
    let old_web = old.get("web").unwrap();
    run(async {
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(enter(old_web).await.unwrap());
        }
        let smaller = Pools::build(&with(places(2, 0)), &resolver, Some(&old));
        let web = smaller.get("web").unwrap();
        assert!(held[0].place.as_ref().unwrap().is_of(web));
        held.pop();
        assert_eq!(enter(web).await.unwrap_err(), Busy::Full);
        held.pop();
        enter(web).await.unwrap();
        let larger = Pools::build(&with(places(5, 0)), &resolver, Some(&smaller));
        let web = larger.get("web").unwrap();
        for _ in 0..4 {
            held.push(enter(web).await.unwrap());
        }
        assert_eq!(enter(web).await.unwrap_err(), Busy::Full);
    });
}

/// Whatever the interleaving of workers: the bounds hold, nobody waits for ever, and nothing is lost.
#[test]
fn threads_never_exceed_the_bounds() {
    const REQUESTS: usize = 5;
    const PER_TARGET: usize = 2;
    const ROUNDS: usize = 400;
    let limits = PoolLimits {
        requests_per_target: Some(PER_TARGET),
        ..places(REQUESTS, 40)
    };
    let pool = bounded(&["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"], limits);
    let [high, holding, done] = [const { AtomicUsize::new(0) }; 3];
    let request = async |round: usize| {
        let mut entering = Box::pin(enter(&pool));
        let entered = match at_once(&mut entering).await {
            Some(entered) => entered,
            // This client leaves.
            None if round.is_multiple_of(7) => return,
            None => entering.await,
        };
        let Ok(admitted) = entered else { return };
        let now = holding.fetch_add(1, Ordering::SeqCst) + 1;
        high.fetch_max(now, Ordering::SeqCst);
        yield_now().await;
        holding.fetch_sub(1, Ordering::SeqCst);
        drop(admitted);
        done.fetch_add(1, Ordering::SeqCst);
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                run(async {
                    for round in 0..ROUNDS {
                        let four = (0..4).map(|n| request(round + n));
                        let mut four: Vec<_> = four.map(Box::pin).collect();
                        std::future::poll_fn(|context| {
                            four.retain_mut(|one| one.as_mut().poll(context).is_pending());
                            match four.is_empty() {
                                true => Poll::Ready(()),
                                false => Poll::Pending,
                            }
                        })
                        .await;
                    }
                });
            });
        }
    });
    let high = high.into_inner();
    assert!((1..=REQUESTS).contains(&high), "{high} at a time");
    // 32 come at a time and 40 may wait: only those that left have not been served.
    let least = 8 * ROUNDS * 4 * 5 / 7;
    assert!(done.into_inner() >= least);
    assert_eq!(numbers(&pool), (Some(0), 0));
    assert_eq!(pool.in_flight(), 0);
}
