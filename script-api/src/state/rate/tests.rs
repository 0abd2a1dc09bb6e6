#![allow(clippy::unwrap_used)]

use std::{
    collections::HashMap,
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use proptest::prelude::*;

use super::*;
use crate::state::{ManualClock, clock::nanoseconds};

const WINDOW: u64 = 1000;

/// Whether the rule allows one more hit at `now` after these that it allowed. As naive as can be:
/// from the list of all hits.
fn model(rule: &RateRule, hits: &[u64], now: u64) -> bool {
    match rule.algorithm {
        Algorithm::Fixed => {
            let mut window: Option<(u64, u64)> = None;
            for &hit in hits {
                window = Some(match window {
                    Some((begun, count)) if hit - begun < rule.window => (begun, count + 1),
                    _ => (hit, 1),
                });
            }
            window.is_none_or(|(begun, count)| now - begun >= rule.window || count < rule.limit)
        }
        Algorithm::Sliding => {
            let this = now / rule.window;
            let count = |wanted: u64| {
                let hits = hits.iter().filter(|&&hit| hit / rule.window == wanted);
                hits.count() as u64
            };
            let before = this.checked_sub(1).map_or(0, count);
            let left = rule.window - now % rule.window;
            before * left + count(this) * rule.window <= (rule.limit - 1) * rule.window
        }
        Algorithm::TokenBucket => {
            // Tokens are counted in parts of a window, so that they are whole numbers.
            let full = rule.burst * rule.window;
            let (mut tokens, mut last) = (full, 0);
            for &hit in hits {
                tokens = full.min(tokens + (hit - last) * rule.limit) - rule.window;
                last = hit;
            }
            full.min(tokens + (now - last) * rule.limit) >= rule.window
        }
    }
}

/// A rate, its clock, and what it allowed by key.
struct Tried {
    rate: Rate,
    clock: ManualClock,
    now: u64,
    allowed: HashMap<u8, Vec<u64>>,
    store: StateStore,
}

fn bound(rule: RateRule, clock: Clock) -> (Rate, StateStore) {
    let store = StateStore::with_clock(clock);
    let rate = Rate::new(rule);
    rate.bind(&store, &Identity::Constant(vec!["LIMIT".to_owned()]));
    (rate, store)
}

impl Tried {
    fn new(rule: RateRule) -> Self {
        let clock = ManualClock::default();
        let (rate, store) = bound(rule, Clock::from(&clock));
        Self {
            rate,
            clock,
            now: 0,
            allowed: HashMap::new(),
            store,
        }
    }

    fn advance(&mut self, by: u64) {
        self.clock.advance(Duration::from_nanos(by));
        self.now += by;
    }

    /// One hit; whether it was allowed, and whether the model allows it.
    fn hit(&mut self, key: u8) -> (bool, bool) {
        let text = key.to_string();
        let allowed = self.rate.allow(&Key::from(text.as_str())).unwrap();
        let hits = self.allowed.entry(key).or_default();
        let modelled = model(self.rate.rule(), hits, self.now);
        if allowed {
            hits.push(self.now);
        }
        (allowed, modelled)
    }
}

fn algorithms() -> impl Strategy<Value = Algorithm> {
    prop_oneof![
        Just(Algorithm::Fixed),
        Just(Algorithm::Sliding),
        Just(Algorithm::TokenBucket),
    ]
}

fn rules() -> impl Strategy<Value = RateRule> {
    (1..6_u32, 1..6_u32, algorithms()).prop_map(|(limit, burst, algorithm)| {
        RateRule::new(limit, Duration::from_nanos(WINDOW), algorithm).burst(burst)
    })
}

/// Pauses, mostly short, and keys.
fn hits(keys: u8) -> impl Strategy<Value = Vec<(u64, u8)>> {
    let pause = prop_oneof![
        3 => Just(0),
        3 => 0..WINDOW / 5,
        1 => 0..WINDOW * 3,
        1 => Just(WINDOW),
    ];
    proptest::collection::vec((pause, 0..keys), 1..120)
}

proptest! {
    #[test]
    fn counts_as_the_model_does(rule in rules(), hits in hits(3)) {
        let mut tried = Tried::new(rule);
        for (pause, key) in hits {
            tried.advance(pause);
            let text = key.to_string();
            let (remaining, wait) = {
                let key = Key::from(text.as_str());
                (tried.rate.remaining(&key).unwrap(), tried.rate.retry_after(&key).unwrap())
            };
            // What is said to be left is what could be taken now.
            let mut hits = tried.allowed.get(&key).cloned().unwrap_or_default();
            for _ in 0..remaining {
                prop_assert!(model(tried.rate.rule(), &hits, tried.now));
                hits.push(tried.now);
            }
            prop_assert!(!model(tried.rate.rule(), &hits, tried.now));
            // The wait is the shortest that is long enough.
            let hits = tried.allowed.get(&key).cloned().unwrap_or_default();
            let wait = nanoseconds(wait);
            prop_assert!(model(tried.rate.rule(), &hits, tried.now + wait));
            prop_assert!(wait == 0 || !model(tried.rate.rule(), &hits, tried.now + wait - 1));

            let (allowed, modelled) = tried.hit(key);
            prop_assert_eq!(allowed, modelled);
        }
    }

    #[test]
    fn no_key_gains_by_being_forgotten(rule in rules(), hits in hits(40)) {
        let mut tried = Tried::new(rule.max_keys(4));
        for (pause, key) in hits {
            tried.advance(pause);
            let (allowed, modelled) = tried.hit(key);
            let rule = tried.rate.rule();
            if rule.algorithm != Algorithm::Fixed {
                prop_assert!(!allowed || modelled);
                continue;
            }
            // An unknown key may begin in the window of a forgotten one, so its windows are not the
            // model's; but they are as long, and in any time as long as one it has two at most.
            let hits = &tried.allowed.get(&key).cloned().unwrap_or_default();
            let late = hits.iter().filter(|&&hit| hit + WINDOW > tried.now).count();
            prop_assert!(late as u64 <= 2 * rule.limit);
        }
    }
}

fn hourly(limit: u32, algorithm: Algorithm) -> RateRule {
    RateRule::new(limit, Duration::from_secs(3600), algorithm)
}

const ALGORITHMS: [Algorithm; 3] = [Algorithm::Fixed, Algorithm::Sliding, Algorithm::TokenBucket];

/// Case `first-hits`: all the first hits of a window come at once, on all workers.
#[test]
fn exactly_as_many_first_hits_pass_as_the_limit_says() {
    const THREADS: usize = 10;
    for algorithm in ALGORITHMS {
        let clock = ManualClock::default();
        let (rate, _store) = bound(hourly(10, algorithm), Clock::from(&clock));
        for window in 0..20 {
            let passed = AtomicU64::new(0);
            let start = Barrier::new(THREADS);
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        start.wait();
                        for _ in 0..10 {
                            if rate.allow(&Key::from("client")).unwrap() {
                                passed.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    });
                }
            });
            assert_eq!(passed.into_inner(), 10, "{algorithm:?}, window {window}");
            // Far enough for the sliding window to be empty too.
            clock.advance(Duration::from_secs(2 * 3600));
        }
    }
}

/// The same on the clock of the system, with many keys, so that threads meet in the middle of
/// everything.
#[test]
fn many_keys_on_many_threads_are_each_exact() {
    const KEYS: u64 = 500;
    for algorithm in ALGORITHMS {
        let (rate, store) = bound(hourly(3, algorithm), Clock::system());
        let passed: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
        thread::scope(|scope| {
            for thread in 0..4 {
                let (rate, passed) = (&rate, &passed);
                scope.spawn(move || {
                    for round in 0..4 * KEYS {
                        let key = (round * 7 + thread) % KEYS;
                        if rate.allow(&Key::from(key.to_string().as_str())).unwrap() {
                            passed[usize::try_from(key).unwrap()].fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        for passed in &passed {
            assert_eq!(passed.load(Ordering::Relaxed), 3, "{algorithm:?}");
        }
        let sample = &store.samples()[0];
        assert_eq!((sample.keys, sample.full), (500, 0));
    }
}

#[test]
fn a_flood_of_new_keys_frees_nobody_and_shuts_nobody_out() {
    for algorithm in ALGORITHMS {
        let mut tried = Tried::new(hourly(10, algorithm).max_keys(100));
        for _ in 0..15 {
            tried.hit(200);
        }
        for _ in 0..6 {
            tried.hit(201);
        }
        assert_eq!(tried.allowed[&200].len(), 10);
        for index in 0..200 {
            let key = format!("flood {index}");
            assert!(tried.rate.allow(&Key::from(key.as_str())).unwrap());
        }
        assert!(!tried.hit(200).0, "{algorithm:?}: it washed itself out");
        for _ in 0..4 {
            assert!(
                tried.hit(201).0,
                "{algorithm:?}: a known key lost something"
            );
        }
        assert!(!tried.hit(201).0);
        // Twice as many keys as there is room for take two or three hits of a new one.
        let left = tried.rate.remaining(&Key::from("new")).unwrap();
        assert!((6..10).contains(&left), "{algorithm:?}: {left}");
        let sample = tried.store.samples().remove(0);
        assert_eq!((sample.keys, sample.full), (100, 102), "{algorithm:?}");

        // When the time is over, so is all of it.
        tried.advance(nanoseconds(Duration::from_secs(2 * 3600)));
        assert_eq!(tried.rate.remaining(&Key::from("new")).unwrap(), 10);
        for index in 0..200 {
            let key = format!("later {index}");
            tried.rate.allow(&Key::from(key.as_str())).unwrap();
        }
        assert_eq!(
            tried.store.samples()[0].full,
            202,
            "the old ones were no loss"
        );
    }
}

#[test]
fn memory_follows_the_keys_that_are_in_use() {
    let mut tried = Tried::new(hourly(1, Algorithm::Fixed).max_keys(2000));
    for index in 0..1000 {
        let key = format!("old {index}");
        tried.rate.allow(&Key::from(key.as_str())).unwrap();
    }
    tried.advance(nanoseconds(Duration::from_secs(3600)));
    for index in 0..1000 {
        let key = format!("new {index}");
        tried.rate.allow(&Key::from(key.as_str())).unwrap();
    }
    let sample = &tried.store.samples()[0];
    assert_eq!((sample.keys, sample.full), (1000, 0));
}

#[test]
fn a_long_time_and_a_large_limit_overflow_nothing() {
    for algorithm in ALGORITHMS {
        let year = Duration::from_secs(366 * 24 * 3600);
        let rule = RateRule::new(1_000_000_000, year, algorithm);
        let mut tried = Tried::new(rule);
        assert!(tried.rate.allow(&Key::from("k")).unwrap());
        tried.advance(u64::MAX / 2);
        assert!(tried.rate.allow(&Key::from("k")).unwrap());
        let key = Key::from("k");
        assert_eq!(tried.rate.remaining(&key).unwrap(), 999_999_999);
        assert_eq!(tried.rate.retry_after(&key).unwrap(), Duration::ZERO);
    }
}
