//! How many hooks are suspended in the whole process, and what they hold.
//!
//! Written only when a hook is suspended: hooks that run through share nothing.

use std::sync::atomic::{AtomicUsize, Ordering};

static ALL: Counts = Counts::new();

/// Hooks that are suspended now, and the bytes of heap memory that they hold together.
pub fn suspended_hooks() -> (usize, usize) {
    let now = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    (now(&ALL.hooks), now(&ALL.bytes))
}

struct Counts {
    hooks: AtomicUsize,
    bytes: AtomicUsize,
}

impl Counts {
    const fn new() -> Self {
        Self {
            hooks: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        }
    }

    fn count(&'static self, bytes: usize, most: (usize, usize)) -> Option<Suspended> {
        let counted = Suspended { all: self, bytes };
        let hooks = self.hooks.fetch_add(1, Ordering::Relaxed) + 1;
        let held = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let held = held.saturating_add(bytes);
        (hooks <= most.0 && held <= most.1).then_some(counted)
    }
}

/// One suspended hook; counted as long as it lives.
pub(super) struct Suspended {
    all: &'static Counts,
    bytes: usize,
}

impl Suspended {
    /// Counts a hook that holds `bytes`. `None` when with it there would be more hooks, or they
    /// would hold more bytes, than `most` says.
    pub(super) fn count(bytes: usize, most: (usize, usize)) -> Option<Self> {
        ALL.count(bytes, most)
    }
}

impl Drop for Suspended {
    fn drop(&mut self) {
        self.all.hooks.fetch_sub(1, Ordering::Relaxed);
        self.all.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_lives_and_refuses_what_is_too_much() {
        static MINE: Counts = Counts::new();
        let one = MINE.count(100, (1, 100));
        assert!(one.is_some());
        assert!(MINE.count(0, (1, 100)).is_none());
        assert!(MINE.count(1, (2, 100)).is_none());
        assert_eq!(MINE.hooks.load(Ordering::Relaxed), 1);
        assert_eq!(MINE.bytes.load(Ordering::Relaxed), 100);
        drop(one);
        assert!(MINE.count(100, (1, 100)).is_some());
    }
}
