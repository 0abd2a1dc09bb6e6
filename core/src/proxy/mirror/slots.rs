//! How many copies there are at a time, in the whole process.

use std::sync::atomic::{AtomicUsize, Ordering};

static IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);

/// The place of one copy, from its first byte to the last of its answer; dropping it gives it back.
#[derive(Debug)]
pub(super) struct Slot(&'static AtomicUsize);

impl Slot {
    /// `None` when all `most` are taken.
    pub(super) fn take(most: usize) -> Option<Self> {
        Self::take_of(&IN_FLIGHT, most)
    }

    fn take_of(taken: &'static AtomicUsize, most: usize) -> Option<Self> {
        let one_more = |taken| (taken < most).then_some(taken + 1);
        taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
            .ok()
            .map(|_| Self(taken))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Copies that are being put together or sent, or whose answer is awaited.
pub(crate) fn in_flight() -> usize {
    IN_FLIGHT.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_than_there_may_be() {
        static TAKEN: AtomicUsize = AtomicUsize::new(0);
        const MOST: usize = 5;
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| {
                    for _ in 0..2000 {
                        let slot = Slot::take_of(&TAKEN, MOST);
                        assert!(TAKEN.load(Ordering::Relaxed) <= MOST);
                        drop(slot);
                    }
                })
            })
            .collect();
        assert!(threads.into_iter().all(|thread| thread.join().is_ok()));
        let all: Vec<_> = std::iter::from_fn(|| Slot::take_of(&TAKEN, MOST)).collect();
        assert_eq!(all.len(), MOST);
        drop(all);
        assert_eq!(TAKEN.load(Ordering::Relaxed), 0);
        assert!(Slot::take_of(&TAKEN, 0).is_none());
    }
}
