//! `concurrency(n)`: how many may do something at a time, for each key.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use ahash::RandomState;
use hashbrown::HashMap;

use super::{
    handle::{Handle, NotBound},
    key::Key,
    sharded::Sharded,
    store::{Identity, Shared, StateStore},
};

/// Keys that hold slots at a time, unless it says otherwise.
const MAX_KEYS: usize = 100_000;

/// Slots as a program says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConcurrencyRule {
    limit: u32,
    max_keys: usize,
}

impl ConcurrencyRule {
    /// `limit` slots for each key, at least 1.
    pub fn new(limit: u32) -> Self {
        Self {
            limit: limit.max(1),
            max_keys: MAX_KEYS,
        }
    }

    /// Keys that hold slots at a time, at least 1. Default 100,000.
    #[must_use]
    pub fn max_keys(self, max_keys: usize) -> Self {
        Self {
            max_keys: max_keys.max(1),
            ..self
        }
    }
}

/// A bound on what happens at a time. Cloning shares it.
#[derive(Clone)]
pub struct Concurrency(Arc<Handle<ConcurrencyRule, ConcurrencyState>>);

impl Concurrency {
    /// Slots by this rule, not bound yet.
    pub fn new(rule: ConcurrencyRule) -> Self {
        Self(Arc::new(Handle::new(rule)))
    }

    /// Binds it to the slots of that name. How many there are is the handle's own, so a reload that
    /// changes it counts those that requests of the program before still hold.
    pub(super) fn bind(&self, store: &StateStore, identity: &Identity) {
        let rule = self.0.rule();
        self.0.bind(|| {
            let all = store.concurrencies();
            all.find(identity, |_| true, || ConcurrencyState::new(rule))
        });
    }

    /// Takes a slot of `key`; dropping it gives it back. `None` when all are taken, or when so many
    /// other keys hold slots that there is no room for one more.
    ///
    /// # Errors
    /// When it is not bound.
    pub fn acquire(&self, key: &Key<'_>) -> Result<Option<Slot>, NotBound> {
        let (rule, state) = self.0.share()?;
        let key = key.as_bytes();
        Ok(state.take(rule, key).then(|| Slot {
            state: state.clone(),
            key: key.into(),
        }))
    }

    /// How many slots of `key` are taken.
    ///
    /// # Errors
    /// When it is not bound.
    pub fn in_use(&self, key: &Key<'_>) -> Result<u32, NotBound> {
        let (_, state) = self.0.get()?;
        let key = key.as_bytes();
        Ok(state.taken.lock(key).get(key).copied().unwrap_or(0))
    }
}

impl fmt::Debug for Concurrency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.rule().fmt(f)
    }
}

impl PartialEq for Concurrency {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A slot that is taken; dropping it gives it back, whatever happens.
#[must_use = "a slot that is dropped is given back"]
pub struct Slot {
    state: Arc<ConcurrencyState>,
    key: Box<[u8]>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.state.give_back(&self.key);
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

/// Slots that are taken, by key; a key without any is not in it.
pub(super) struct ConcurrencyState {
    taken: Sharded<HashMap<Box<[u8]>, u32, RandomState>>,
    /// How often there was no room for a new key.
    refused: AtomicU64,
}

impl ConcurrencyState {
    fn new(rule: &ConcurrencyRule) -> Self {
        Self {
            taken: Sharded::for_entries(rule.max_keys, HashMap::default),
            refused: AtomicU64::new(0),
        }
    }

    fn take(&self, rule: &ConcurrencyRule, key: &[u8]) -> bool {
        let mut taken = self.taken.lock(key);
        if let Some(count) = taken.get_mut(key) {
            let is_free = *count < rule.limit;
            *count += u32::from(is_free);
            return is_free;
        }
        if taken.len() >= self.taken.share(rule.max_keys) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        taken.insert(key.into(), 1);
        true
    }

    fn give_back(&self, key: &[u8]) {
        let mut taken = self.taken.lock(key);
        match taken.get_mut(key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                taken.remove(key);
            }
        }
    }
}

impl Shared for ConcurrencyState {
    const KIND: &'static str = "concurrency";

    fn keys(&self) -> usize {
        self.taken.each().map(|taken| taken.len()).sum()
    }

    fn full(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::thread;

    use super::*;

    fn bound(rule: ConcurrencyRule, store: &StateStore) -> Concurrency {
        let slots = Concurrency::new(rule);
        slots.bind(store, &Identity::Name("s".to_owned()));
        slots
    }

    fn take(slots: &Concurrency, key: &str) -> Option<Slot> {
        slots.acquire(&Key::from(key)).unwrap()
    }

    fn in_use(slots: &Concurrency, key: &str) -> u32 {
        slots.in_use(&Key::from(key)).unwrap()
    }

    #[test]
    fn gives_out_as_many_as_there_are_and_takes_them_back() {
        let store = StateStore::default();
        let slots = bound(ConcurrencyRule::new(2), &store);
        let (one, two) = (take(&slots, "a").unwrap(), take(&slots, "a").unwrap());
        assert!(take(&slots, "a").is_none());
        assert_eq!((in_use(&slots, "a"), in_use(&slots, "b")), (2, 0));
        let other = take(&slots, "b").unwrap();
        drop(one);
        assert_eq!(in_use(&slots, "a"), 1);
        let again = take(&slots, "a").unwrap();
        drop((two, other, again));
        assert_eq!(in_use(&slots, "a"), 0);
        assert_eq!(store.samples()[0].keys, 0, "a key without slots is kept");
    }

    #[test]
    fn programs_with_other_bounds_share_what_is_taken() {
        let store = StateStore::default();
        let before = bound(ConcurrencyRule::new(1), &store);
        let held = take(&before, "").unwrap();
        let after = bound(ConcurrencyRule::new(2), &store);
        drop(before);
        let more = take(&after, "").unwrap();
        assert!(take(&after, "").is_none());
        drop(held);
        assert_eq!(in_use(&after, ""), 1);
        drop(more);
    }

    #[test]
    fn many_keys_find_it_full_and_room_comes_back() {
        let store = StateStore::default();
        let slots = bound(ConcurrencyRule::new(1).max_keys(2), &store);
        let held: Vec<_> = ["a", "b"].map(|key| take(&slots, key).unwrap()).into();
        assert!(take(&slots, "c").is_none());
        assert_eq!(store.samples()[0].full, 1);
        drop(held);
        assert!(take(&slots, "c").is_some());
    }

    #[test]
    fn never_more_than_the_bound_from_many_threads() {
        let store = StateStore::default();
        let slots = bound(ConcurrencyRule::new(3), &store);
        let most = AtomicU64::new(0);
        let now = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        if let Some(slot) = take(&slots, "k") {
                            let held = now.fetch_add(1, Ordering::SeqCst) + 1;
                            most.fetch_max(held, Ordering::SeqCst);
                            now.fetch_sub(1, Ordering::SeqCst);
                            drop(slot);
                        }
                    }
                });
            }
        });
        assert!((1..=3).contains(&most.into_inner()));
        assert_eq!(in_use(&slots, "k"), 0);
    }

    #[test]
    fn is_of_no_use_before_it_is_bound() {
        let slots = Concurrency::new(ConcurrencyRule::new(1));
        assert!(slots.acquire(&Key::from("a")).is_err());
    }
}
