//! How many hooks are suspended in the whole process, and what they and the answers on their way to
//! them hold.
//!
//! Written only when a hook is suspended: hooks that run through share nothing.

use std::sync::atomic::{AtomicUsize, Ordering};

static ALL: Counts = Counts::new();

/// Hooks that wait now, and the bytes that all suspended hooks hold together with the answers to
/// their calls.
pub fn suspended_hooks() -> (usize, usize) {
    let now = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    (now(&ALL.hooks), now(&ALL.bytes))
}

struct Counts {
    hooks: AtomicUsize,
    bytes: AtomicUsize,
    /// How many bytes there may be; the last program that was made ready says it.
    most_bytes: AtomicUsize,
}

/// Says how many bytes all suspended hooks and the answers to them may hold.
pub(super) fn allow_bytes(most: usize) {
    ALL.most_bytes.store(most, Ordering::Relaxed);
}

/// The bytes of an answer until the hook that waits for it has it; they count with those that
/// suspended hooks hold. A copy counts nothing.
#[derive(Debug, Default)]
pub struct Arriving {
    bytes: usize,
}

impl Clone for Arriving {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// What is counted says nothing about what an answer says.
impl PartialEq for Arriving {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Arriving {}

impl Arriving {
    /// Counts `bytes` more; false when there is no room for them, and they must not be kept.
    #[must_use]
    pub fn add(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        let held = ALL.bytes.fetch_add(bytes, Ordering::Relaxed);
        held.saturating_add(bytes) <= ALL.most_bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        ALL.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Counts {
    const fn new() -> Self {
        Self {
            hooks: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            most_bytes: AtomicUsize::new(usize::MAX),
        }
    }

    fn count(&'static self, hooks: usize, bytes: usize, most: (usize, usize)) -> Option<Suspended> {
        let counted = Suspended {
            all: self,
            hooks,
            bytes,
        };
        let waiting = self.hooks.fetch_add(hooks, Ordering::Relaxed) + hooks;
        let held = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let held = held.saturating_add(bytes);
        let fits = (hooks == 0 || waiting <= most.0) && held <= most.1;
        fits.then_some(counted)
    }
}

/// One suspended hook; counted as long as it lives.
pub(super) struct Suspended {
    all: &'static Counts,
    hooks: usize,
    bytes: usize,
}

impl Suspended {
    /// Counts a hook that holds `bytes`, as one that waits when `hooks` is 1. `None` when with it
    /// more hooks would wait, or all would hold more bytes, than `most` says.
    pub(super) fn count(hooks: usize, bytes: usize, most: (usize, usize)) -> Option<Self> {
        ALL.count(hooks, bytes, most)
    }
}

impl Drop for Suspended {
    fn drop(&mut self) {
        self.all.hooks.fetch_sub(self.hooks, Ordering::Relaxed);
        self.all.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_lives_and_refuses_what_is_too_much() {
        static MINE: Counts = Counts::new();
        let one = MINE.count(1, 100, (1, 100));
        assert!(one.is_some());
        assert!(MINE.count(1, 0, (1, 100)).is_none());
        assert!(MINE.count(1, 1, (2, 100)).is_none());
        // Who waits for nobody has room where those who wait have none, but not for more bytes.
        assert!(MINE.count(0, 0, (1, 100)).is_some());
        assert!(MINE.count(0, 1, (1, 100)).is_none());
        assert_eq!(MINE.hooks.load(Ordering::Relaxed), 1);
        assert_eq!(MINE.bytes.load(Ordering::Relaxed), 100);
        drop(one);
        assert!(MINE.count(1, 100, (1, 100)).is_some());
    }
}
