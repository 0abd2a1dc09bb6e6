//! `rate(n, window)`: how often something may happen, for each key.

mod fixed;
mod known;
mod rule;
mod sliding;
#[cfg(test)]
mod tests;
mod token_bucket;

pub use rule::{Algorithm, RateRule};

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use fixed::Fixed;
use known::{Known, Usage};
use sliding::Sliding;
use token_bucket::TokenBucket;

use super::{
    clock::Clock,
    handle::{Handle, NotBound},
    key::Key,
    sharded::Sharded,
    store::{Identity, Shared, StateStore},
};

/// A limit on how often something may happen. Cloning shares it.
#[derive(Clone)]
pub struct Rate(Arc<Handle<RateRule, RateState>>);

impl Rate {
    /// A limit by this rule, not bound yet.
    pub fn new(rule: RateRule) -> Self {
        Self(Arc::new(Handle::new(rule)))
    }

    /// Its rule.
    pub fn rule(&self) -> &RateRule {
        self.0.rule()
    }

    /// Binds it to the state of that name that counts in the same way over the same window. The
    /// limit is the handle's own, so programs with different limits share what has been used.
    pub(super) fn bind(&self, store: &StateStore, identity: &Identity) {
        let rule = self.0.rule();
        self.0.bind(|| {
            store.rates().find(
                identity,
                |state| state.window == rule.window && state.usages.algorithm() == rule.algorithm,
                || RateState::new(rule, store.clock()),
            )
        });
    }

    /// Takes one of what `key` has left. False when nothing is left, and nothing is taken then.
    ///
    /// # Errors
    /// When it is not bound.
    pub fn allow(&self, key: &Key<'_>) -> Result<bool, NotBound> {
        Ok(self.hit(key)?.allowed)
    }

    /// As [`Rate::allow`], and tells how long to wait, at the same moment.
    ///
    /// # Errors
    /// When it is not bound.
    pub fn hit(&self, key: &Key<'_>) -> Result<Hit, NotBound> {
        let (rule, state) = self.0.get()?;
        Ok(state.hit(rule, key.as_bytes()))
    }

    /// How often `key` is allowed from now on, if it happened all at once.
    ///
    /// # Errors
    /// When it is not bound.
    pub fn remaining(&self, key: &Key<'_>) -> Result<u64, NotBound> {
        let (rule, state) = self.0.get()?;
        Ok(state.look(rule, key.as_bytes()).0)
    }

    /// How long until `key` is allowed once more; zero when it is now.
    ///
    /// # Errors
    /// When it is not bound.
    pub fn retry_after(&self, key: &Key<'_>) -> Result<Duration, NotBound> {
        let (rule, state) = self.0.get()?;
        let wait = state.look(rule, key.as_bytes()).1;
        Ok(Duration::from_nanos(wait))
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.rule().fmt(f)
    }
}

impl PartialEq for Rate {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What became of one hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// Whether there was one left, which is taken now.
    pub allowed: bool,
    /// When there was none: how long until there is one.
    pub wait: Duration,
}

/// What all keys have used.
pub(super) struct RateState {
    /// Nanoseconds.
    window: u64,
    clock: Clock,
    usages: Usages,
    /// How often a key was forgotten before its time.
    forgotten: AtomicU64,
}

enum Usages {
    Fixed(Sharded<Known<Fixed>>),
    Sliding(Sharded<Known<Sliding>>),
    TokenBucket(Sharded<Known<TokenBucket>>),
}

impl Usages {
    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Fixed(_) => Algorithm::Fixed,
            Self::Sliding(_) => Algorithm::Sliding,
            Self::TokenBucket(_) => Algorithm::TokenBucket,
        }
    }
}

/// Does the same with the usages of each algorithm.
macro_rules! each_algorithm {
    ($usages:expr, $keys:ident => $run:expr) => {
        match $usages {
            Usages::Fixed($keys) => $run,
            Usages::Sliding($keys) => $run,
            Usages::TokenBucket($keys) => $run,
        }
    };
}

impl RateState {
    fn new(rule: &RateRule, clock: &Clock) -> Self {
        let keys = rule.max_keys;
        Self {
            window: rule.window,
            clock: clock.clone(),
            usages: match rule.algorithm {
                Algorithm::Fixed => Usages::Fixed(Sharded::for_entries(keys, Known::default)),
                Algorithm::Sliding => Usages::Sliding(Sharded::for_entries(keys, Known::default)),
                Algorithm::TokenBucket => {
                    Usages::TokenBucket(Sharded::for_entries(keys, Known::default))
                }
            },
            forgotten: AtomicU64::new(0),
        }
    }

    fn hit(&self, rule: &RateRule, key: &[u8]) -> Hit {
        let now = self.clock.now();
        each_algorithm!(&self.usages, keys => {
            let room = keys.share(rule.max_keys);
            let mut known = keys.lock(key);
            let taken = known.take(key, rule, now, room);
            let wait = match taken.allowed {
                true => 0,
                false => known.usage(key, rule, now).wait(rule, now),
            };
            drop(known);
            if taken.forgotten > 0 {
                self.forgotten.fetch_add(taken.forgotten, Ordering::Relaxed);
            }
            Hit { allowed: taken.allowed, wait: Duration::from_nanos(wait) }
        })
    }

    /// What `key` has left, and the nanoseconds until it is allowed once more.
    fn look(&self, rule: &RateRule, key: &[u8]) -> (u64, u64) {
        let now = self.clock.now();
        each_algorithm!(&self.usages, keys => {
            let usage = keys.lock(key).usage(key, rule, now);
            (usage.remaining(rule, now), usage.wait(rule, now))
        })
    }
}

impl Shared for RateState {
    const KIND: &'static str = "rate";

    fn keys(&self) -> usize {
        each_algorithm!(&self.usages, keys => keys.each().map(|known| known.len()).sum())
    }

    fn full(&self) -> u64 {
        self.forgotten.load(Ordering::Relaxed)
    }
}
