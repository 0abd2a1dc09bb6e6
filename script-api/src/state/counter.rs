//! `counter()`: a number for each key.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use ahash::RandomState;
use hashbrown::HashMap;
use thiserror::Error;

use super::{
    handle::{Handle, NotBound},
    key::Key,
    sharded::Sharded,
    store::{Identity, Shared, StateStore},
};

/// Keys that a counter holds at a time, unless it says otherwise.
const MAX_KEYS: usize = 100_000;

/// A counter as a program says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterRule {
    max_keys: usize,
}

impl CounterRule {
    /// Keys that it holds at a time, at least 1. Default 100,000.
    #[must_use]
    pub fn max_keys(max_keys: usize) -> Self {
        Self {
            max_keys: max_keys.max(1),
        }
    }
}

impl Default for CounterRule {
    fn default() -> Self {
        Self::max_keys(MAX_KEYS)
    }
}

/// It holds as many keys as it may. Counts are never forgotten on their own, so a new key is
/// refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the counter is full: remove keys, or let it hold more with `max_keys`")]
pub struct Full;

/// Numbers by key. Cloning shares it.
#[derive(Clone)]
pub struct Counter(Arc<Handle<CounterRule, CounterState>>);

impl Counter {
    /// A counter by this rule, not bound yet.
    pub fn new(rule: CounterRule) -> Self {
        Self(Arc::new(Handle::new(rule)))
    }

    /// Binds it to the counter of that name.
    pub(super) fn bind(&self, store: &StateStore, identity: &Identity) {
        let rule = self.0.rule();
        self.0.bind(|| {
            let counters = store.counters();
            counters.find(identity, |_| true, || CounterState::new(rule))
        });
    }

    /// Adds `n` to the number of `key` and gives the new one; it stays within 64 bits.
    ///
    /// # Errors
    /// When it is not bound; the inner one when there is no room for a new key.
    pub fn add(&self, key: &Key<'_>, n: i64) -> Result<Result<i64, Full>, NotBound> {
        let (rule, state) = self.0.get()?;
        Ok(state.add(rule, key.as_bytes(), n))
    }

    /// The number of `key`, 0 when there is none.
    ///
    /// # Errors
    /// When it is not bound.
    pub fn get(&self, key: &Key<'_>) -> Result<i64, NotBound> {
        let (_, state) = self.0.get()?;
        let key = key.as_bytes();
        Ok(state.counts.lock(key).get(key).copied().unwrap_or(0))
    }

    /// Forgets `key`.
    ///
    /// # Errors
    /// When it is not bound.
    pub fn remove(&self, key: &Key<'_>) -> Result<(), NotBound> {
        let (_, state) = self.0.get()?;
        let key = key.as_bytes();
        state.counts.lock(key).remove(key);
        Ok(())
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.rule().fmt(f)
    }
}

impl PartialEq for Counter {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

pub(super) struct CounterState {
    counts: Sharded<HashMap<Box<[u8]>, i64, RandomState>>,
    refused: AtomicU64,
}

impl CounterState {
    fn new(rule: &CounterRule) -> Self {
        Self {
            counts: Sharded::for_entries(rule.max_keys, HashMap::default),
            refused: AtomicU64::new(0),
        }
    }

    fn add(&self, rule: &CounterRule, key: &[u8], n: i64) -> Result<i64, Full> {
        let mut counts = self.counts.lock(key);
        if let Some(count) = counts.get_mut(key) {
            *count = count.saturating_add(n);
            return Ok(*count);
        }
        if counts.len() >= self.counts.share(rule.max_keys) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Full);
        }
        counts.insert(key.into(), n);
        Ok(n)
    }
}

impl Shared for CounterState {
    const KIND: &'static str = "counter";

    fn keys(&self) -> usize {
        self.counts.each().map(|counts| counts.len()).sum()
    }

    fn full(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}
