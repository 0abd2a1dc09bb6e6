//! `cache(ttl, entries)`: values for a while.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ahash::RandomState;
use lru::LruCache;
use thiserror::Error;

use super::{
    clock::{Clock, nanoseconds},
    handle::{Handle, NotBound},
    key::Key,
    sharded::Sharded,
    store::{Identity, Shared, StateStore},
};
use crate::frozen::Frozen;

/// Bytes that a cache holds at a time, unless it says otherwise.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Bytes of the largest value: taking it out makes a copy of it, and no native makes more at once.
const LARGEST: usize = 1024 * 1024;

/// The most parts of a cache. Each holds its share of the bytes, so more would leave less room for
/// large values.
const PARTS: usize = 16;

/// Values that are looked at for being too old when one is added.
const LOOKED_AT: usize = 2;

/// A cache as a program says it. What it says belongs to the cache itself: with another rule it
/// begins empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheRule {
    /// Nanoseconds.
    ttl: u64,
    entries: usize,
    bytes: usize,
}

impl CacheRule {
    /// Values that live for `ttl`, at most `entries` of them (at least 1).
    pub fn new(ttl: Duration, entries: usize) -> Self {
        Self {
            ttl: nanoseconds(ttl),
            entries: entries.max(1),
            bytes: MAX_BYTES,
        }
    }

    /// Bytes that all values with their keys take together. Default 64 MiB.
    #[must_use]
    pub fn max_bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    fn parts(&self) -> usize {
        (self.entries / 1024)
            .min(self.bytes / LARGEST)
            .clamp(1, PARTS)
    }

    fn largest(&self) -> usize {
        LARGEST.min(self.bytes)
    }
}

/// A value that is larger than a cache takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a value of {size} bytes is too large for the cache, which takes up to {largest}")]
pub struct TooLarge {
    size: usize,
    largest: usize,
}

/// Plain data by key, for a while. When there is no room the value goes that was not asked for
/// longest. Cloning shares it.
#[derive(Clone)]
pub struct Cache(Arc<Handle<CacheRule, CacheState>>);

impl Cache {
    /// A cache by this rule, not bound yet.
    pub fn new(rule: CacheRule) -> Self {
        Self(Arc::new(Handle::new(rule)))
    }

    /// Binds it to the cache of that name with the same rule.
    pub(super) fn bind(&self, store: &StateStore, identity: &Identity) {
        let rule = self.0.rule();
        self.0.bind(|| {
            store.caches().find(
                identity,
                |state| state.rule == *rule,
                || CacheState::new(rule, store.clock()),
            )
        });
    }

    /// A number that no other cache of the process has; handles on the same one have the same.
    ///
    /// # Errors
    /// When it is not bound.
    pub(crate) fn number(&self) -> Result<u64, NotBound> {
        self.0.get().map(|(_, state)| state.number)
    }

    /// The value of `key`, unless it is too old.
    ///
    /// # Errors
    /// When it is not bound.
    pub fn get(&self, key: &Key<'_>) -> Result<Option<Arc<Frozen>>, NotBound> {
        let (_, state) = self.0.get()?;
        Ok(state.get(key.as_bytes()))
    }

    /// Keeps a value.
    ///
    /// # Errors
    /// When it is not bound; the inner one when the value is too large.
    pub fn set(&self, key: &Key<'_>, value: Arc<Frozen>) -> Result<Result<(), TooLarge>, NotBound> {
        let (_, state) = self.0.get()?;
        Ok(state.set(key.as_bytes(), value))
    }

    /// Drops the value of `key`.
    ///
    /// # Errors
    /// When it is not bound.
    pub fn remove(&self, key: &Key<'_>) -> Result<(), NotBound> {
        let (_, state) = self.0.get()?;
        // Freed when the lock is not held any more.
        let removed = state.parts.lock(key.as_bytes()).take(key.as_bytes());
        drop(removed);
        Ok(())
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.rule().fmt(f)
    }
}

impl PartialEq for Cache {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

pub(super) struct CacheState {
    number: u64,
    rule: CacheRule,
    clock: Clock,
    parts: Sharded<Part>,
    evicted: AtomicU64,
}

struct Part {
    entries: LruCache<Box<[u8]>, Entry, RandomState>,
    bytes: usize,
}

struct Entry {
    value: Arc<Frozen>,
    /// With its key.
    size: usize,
    /// Nanoseconds of the clock.
    until: u64,
}

impl CacheState {
    fn new(rule: &CacheRule, clock: &Clock) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        Self {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            rule: rule.clone(),
            clock: clock.clone(),
            parts: Sharded::new(rule.parts(), || Part {
                entries: LruCache::unbounded_with_hasher(RandomState::new()),
                bytes: 0,
            }),
            evicted: AtomicU64::new(0),
        }
    }

    fn get(&self, key: &[u8]) -> Option<Arc<Frozen>> {
        let now = self.clock.now();
        let mut part = self.parts.lock(key);
        let entry = part.entries.get(key)?;
        if now < entry.until {
            return Some(entry.value.clone());
        }
        let old = part.take(key);
        drop(part);
        drop(old);
        None
    }

    fn set(&self, key: &[u8], value: Arc<Frozen>) -> Result<(), TooLarge> {
        let size = key.len() + value.size();
        let largest = self.rule.largest();
        if size > largest {
            return Err(TooLarge { size, largest });
        }
        let now = self.clock.now();
        let entry = Entry {
            value,
            size,
            until: now.saturating_add(self.rule.ttl),
        };
        let entries = self.parts.share(self.rule.entries);
        let bytes = self.parts.share(self.rule.bytes);
        // What goes is freed when the lock is not held any more.
        let mut gone = Vec::new();
        let mut evicted = 0;
        let mut part = self.parts.lock(key);
        gone.extend(part.take(key));
        for _ in 0..LOOKED_AT {
            let oldest = part.entries.peek_lru();
            if oldest.is_some_and(|(_, entry)| now >= entry.until) {
                gone.extend(part.take_oldest());
            }
        }
        while part.entries.len() >= entries || part.bytes + size > bytes {
            match part.take_oldest() {
                Some(entry) => {
                    evicted += u64::from(now < entry.until);
                    gone.push(entry);
                }
                None => break,
            }
        }
        part.bytes += size;
        part.entries.put(key.into(), entry);
        drop(part);
        drop(gone);
        if evicted > 0 {
            self.evicted.fetch_add(evicted, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Part {
    fn take(&mut self, key: &[u8]) -> Option<Entry> {
        let entry = self.entries.pop(key)?;
        self.bytes -= entry.size;
        Some(entry)
    }

    fn take_oldest(&mut self) -> Option<Entry> {
        let (_, entry) = self.entries.pop_lru()?;
        self.bytes -= entry.size;
        Some(entry)
    }
}

impl Shared for CacheState {
    const KIND: &'static str = "cache";

    fn keys(&self) -> usize {
        self.parts.each().map(|part| part.entries.len()).sum()
    }

    fn full(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::state::ManualClock;

    fn cache(rule: CacheRule) -> (Cache, ManualClock, StateStore) {
        let clock = ManualClock::default();
        let store = StateStore::with_clock(Clock::from(&clock));
        let cache = Cache::new(rule);
        cache.bind(&store, &Identity::Constant(vec!["C".to_owned()]));
        (cache, clock, store)
    }

    fn text(length: usize) -> Arc<Frozen> {
        Arc::new(Frozen::Text("x".repeat(length).into()))
    }

    fn set(cache: &Cache, key: &str, value: Arc<Frozen>) {
        cache.set(&Key::from(key), value).unwrap().unwrap();
    }

    fn has(cache: &Cache, key: &str) -> bool {
        cache.get(&Key::from(key)).unwrap().is_some()
    }

    #[test]
    fn values_end_with_their_time_and_no_earlier() {
        let (cache, clock, store) = cache(CacheRule::new(Duration::from_secs(10), 4));
        set(&cache, "a", text(1));
        clock.advance(Duration::from_nanos(9_999_999_999));
        assert!(has(&cache, "a"));
        clock.advance(Duration::from_nanos(1));
        assert!(!has(&cache, "a"));
        assert_eq!(store.samples()[0].keys, 0, "it was freed when it was found");
        // Setting it anew begins its time anew.
        set(&cache, "a", text(1));
        clock.advance(Duration::from_secs(9));
        set(&cache, "a", text(1));
        clock.advance(Duration::from_secs(9));
        assert!(has(&cache, "a"));
        assert_eq!(store.samples()[0].full, 0);
    }

    #[test]
    fn the_number_of_values_is_bounded_and_the_least_asked_for_goes() {
        let (cache, clock, store) = cache(CacheRule::new(Duration::from_secs(10), 3));
        for key in ["a", "b", "c"] {
            set(&cache, key, text(1));
        }
        assert!(has(&cache, "a"));
        set(&cache, "d", text(1));
        assert!(has(&cache, "a") && !has(&cache, "b") && has(&cache, "c") && has(&cache, "d"));
        // Replacing one needs no room.
        set(&cache, "c", text(2));
        assert!(has(&cache, "a") && has(&cache, "d"));
        assert_eq!((store.samples()[0].keys, store.samples()[0].full), (3, 1));
        // What is too old goes without being counted.
        clock.advance(Duration::from_secs(11));
        set(&cache, "e", text(1));
        assert_eq!((store.samples()[0].keys, store.samples()[0].full), (2, 1));
    }

    #[test]
    fn the_bytes_of_all_values_are_bounded() {
        let rule = CacheRule::new(Duration::from_secs(10), 1000).max_bytes(4096);
        let (cache, _, store) = cache(rule);
        for index in 0..20 {
            set(&cache, &format!("k{index}"), text(1000));
        }
        assert_eq!(store.samples()[0].keys, 3);
        assert!(has(&cache, "k19") && has(&cache, "k17") && !has(&cache, "k16"));
        let error = cache.set(&Key::from("k"), text(4096)).unwrap();
        assert!(error.unwrap_err().to_string().contains("4096"));
        assert!(has(&cache, "k19"), "what is refused takes nobody's place");
    }

    #[test]
    fn large_caches_keep_their_bounds_in_all_parts() {
        let (cache, _, store) = cache(CacheRule::new(Duration::from_secs(10), 20_000));
        for index in 0..40_000 {
            set(&cache, &format!("k{index}"), text(1));
        }
        let keys = store.samples()[0].keys;
        assert!((19_000..=20_000).contains(&keys), "{keys}");
    }
}
