//! How many hooks are suspended in the whole process, and what they hold.
//!
//! Written only when a hook is suspended: hooks that run through share nothing.

use std::sync::atomic::{AtomicUsize, Ordering};

static HOOKS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Hooks that are suspended now, and the bytes of heap memory that they hold together.
pub fn suspended_hooks() -> (usize, usize) {
    (HOOKS.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed))
}

/// One suspended hook; counted as long as it lives.
pub(super) struct Suspended {
    bytes: usize,
}

impl Suspended {
    /// Counts a hook that holds `bytes`. `None` when with it there would be more hooks, or they
    /// would hold more bytes, than `most` says.
    pub(super) fn count(bytes: usize, most: (usize, usize)) -> Option<Self> {
        let counted = Self { bytes };
        let hooks = HOOKS.fetch_add(1, Ordering::Relaxed) + 1;
        let all = BYTES
            .fetch_add(bytes, Ordering::Relaxed)
            .saturating_add(bytes);
        (hooks <= most.0 && all <= most.1).then_some(counted)
    }
}

impl Drop for Suspended {
    fn drop(&mut self) {
        HOOKS.fetch_sub(1, Ordering::Relaxed);
        BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Hooks are counted for the whole process, so tests that suspend some run one after the other.
#[cfg(test)]
pub(super) fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_lives_and_refuses_what_is_too_much() {
        let _alone = alone();
        let one = Suspended::count(100, (1, 100));
        assert!(one.is_some());
        assert!(Suspended::count(0, (1, 100)).is_none());
        assert!(Suspended::count(1, (2, 100)).is_none());
        assert_eq!(suspended_hooks(), (1, 100));
        drop(one);
        assert_eq!(suspended_hooks(), (0, 0));
    }
}
