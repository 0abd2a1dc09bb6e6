//! Keys spread over locks, so that workers seldom wait for each other.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ahash::RandomState;

/// The most locks for one value.
const MOST: usize = 64;

/// Parts of one value, each behind a lock of its own; a key belongs to one part. A lock is held for
/// one look-up and never while a script runs.
pub(super) struct Sharded<S> {
    parts: Box<[Padded<S>]>,
    /// Its seeds are random: no client can choose keys that fall on one part.
    hasher: RandomState,
}

/// On cache lines of its own.
#[repr(align(128))]
struct Padded<S>(Mutex<S>);

impl<S> Sharded<S> {
    /// As many parts as are worth it when all of them together hold `entries`: a part that holds few
    /// would be full long before the others.
    pub(super) fn for_entries(entries: usize, make: impl Fn() -> S) -> Self {
        Self::new((entries / 1024).min(MOST), make)
    }

    /// `parts` parts, and at least one.
    pub(super) fn new(parts: usize, make: impl Fn() -> S) -> Self {
        let parts = parts.max(1);
        Self {
            parts: (0..parts).map(|_| Padded(Mutex::new(make()))).collect(),
            hasher: RandomState::new(),
        }
    }

    /// The share of each part in a `whole`, at least 1.
    pub(super) fn share(&self, whole: usize) -> usize {
        (whole / self.parts.len()).max(1)
    }

    /// The part of `key`.
    pub(super) fn lock(&self, key: &[u8]) -> MutexGuard<'_, S> {
        // The upper half of the hash: maps take the lower one.
        let hash = self.hasher.hash_one(key) >> 32;
        let index = usize::try_from(hash).unwrap_or_default() % self.parts.len();
        lock(&self.parts[index])
    }

    /// One part after the other.
    pub(super) fn each(&self) -> impl Iterator<Item = MutexGuard<'_, S>> {
        self.parts.iter().map(lock)
    }
}

/// Nothing panics while it holds a lock; should it, what is there is still whole.
fn lock<S>(part: &Padded<S>) -> MutexGuard<'_, S> {
    part.0.lock().unwrap_or_else(PoisonError::into_inner)
}
