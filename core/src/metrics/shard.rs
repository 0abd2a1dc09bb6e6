//! Counters that each worker thread writes alone.
//!
//! A counter shared by all workers costs one cache-line transfer per request and worker. Here each
//! thread has a number, the number picks a shard, and a shard fills whole cache lines of its own.
//! All additions are relaxed read-modify-writes, so that sums stay exact even when two threads
//! have to share a shard (more threads than shards).

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most shards that one counter has. More worker threads than this share shards.
pub const MAX_SHARDS: usize = 64;

/// How many shards serve `workers` threads: a power of two, so that picking one is a mask.
pub fn shards_for(workers: usize) -> usize {
    workers.clamp(1, MAX_SHARDS).next_power_of_two()
}

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// This thread's number: threads are numbered from 0 in the order in which they first count
/// something, so that the workers of one proxy get neighbouring numbers and no shard in common.
#[inline]
pub fn thread_number() -> usize {
    let number = NUMBER.get();
    if number == usize::MAX {
        next_number()
    } else {
        number
    }
}

#[cold]
fn next_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    NUMBER.set(number);
    number
}

/// A value alone on its cache lines. 128 bytes, not 64: x86_64 prefetches lines in pairs, and some
/// AArch64 cores have 128-byte lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

/// One `T` per worker thread, each allocated when its worker first uses it.
#[derive(Debug)]
pub struct Sharded<T> {
    /// The length is a power of two.
    slots: Box<[OnceLock<Box<Padded<T>>>]>,
}

impl<T: Default> Sharded<T> {
    /// Empty shards: 16 bytes each until used. `shards` comes from [`shards_for`].
    pub fn new(shards: usize) -> Self {
        let shards = shards.clamp(1, MAX_SHARDS).next_power_of_two();
        Self {
            slots: (0..shards).map(|_| OnceLock::new()).collect(),
        }
    }

    /// The calling thread's shard.
    #[inline]
    pub fn mine(&self) -> &T {
        let slot = &self.slots[thread_number() & (self.slots.len() - 1)];
        match slot.get() {
            Some(shard) => &shard.0,
            None => Self::first_use(slot),
        }
    }

    #[cold]
    fn first_use(slot: &OnceLock<Box<Padded<T>>>) -> &T {
        &slot.get_or_init(Box::default).0
    }

    /// The shards used so far.
    pub fn used(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(OnceLock::get).map(|s| &s.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn shard_count_is_a_power_of_two_within_bounds() {
        for (workers, shards) in [(0, 1), (1, 1), (2, 2), (3, 4), (8, 8), (63, 64), (1000, 64)] {
            assert_eq!(shards_for(workers), shards, "{workers} workers");
        }
    }

    #[test]
    fn neighbouring_shards_share_no_cache_line() {
        assert_eq!(align_of::<Padded<AtomicU64>>(), 128);
        assert_eq!(size_of::<Padded<AtomicU64>>(), 128);
    }

    #[test]
    fn a_thread_keeps_its_number_and_others_get_another() {
        let mine = thread_number();
        assert_eq!(thread_number(), mine);
        let other = std::thread::spawn(thread_number).join().ok();
        assert!(other.is_some_and(|other| other != mine));
    }

    #[test]
    fn shards_are_allocated_at_first_use() {
        let sharded = Sharded::<AtomicU64>::new(4);
        assert_eq!(sharded.used().count(), 0);
        sharded.mine().fetch_add(1, Ordering::Relaxed);
        sharded.mine().fetch_add(1, Ordering::Relaxed);
        assert_eq!(sharded.used().count(), 1);
        let sum: u64 = sharded.used().map(|n| n.load(Ordering::Relaxed)).sum();
        assert_eq!(sum, 2);
    }
}
