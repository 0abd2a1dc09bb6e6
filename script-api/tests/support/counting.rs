//! An allocator that counts, thread by thread, what is held and how much was held at most.

#![allow(dead_code)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

/// The system's allocator, with a count. A test binary makes it its `#[global_allocator]`.
pub struct Counting;

thread_local! {
    /// Bytes that this thread has allocated and not freed, modulo 2^64: another may free them.
    static HELD: Cell<u64> = const { Cell::new(0) };
    /// [`HELD`] when the peak was last forgotten.
    static BEFORE: Cell<u64> = const { Cell::new(0) };
    /// The most that was held since, beyond what was held then.
    static PEAK: Cell<u64> = const { Cell::new(0) };
}

fn allocated(bytes: usize) {
    // A thread that ends has no counters any more.
    let _ = HELD.try_with(|held| {
        held.set(held.get().wrapping_add(bytes as u64));
        let grown = held.get().wrapping_sub(BEFORE.get()).cast_signed();
        if grown > 0 {
            PEAK.set(PEAK.get().max(grown.unsigned_abs()));
        }
    });
}

fn freed(bytes: usize) {
    let _ = HELD.try_with(|held| held.set(held.get().wrapping_sub(bytes as u64)));
}

// SAFETY: every call goes on to the system's allocator as it came; counting allocates nothing, since
// the counters are constants at first and need no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        freed(layout.size());
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // While it moves, both blocks exist.
        allocated(size);
        freed(layout.size());
        unsafe { System.realloc(block, layout, size) }
    }
}

/// Bytes that this thread holds: what `count_memory_with` asks for.
pub fn held() -> u64 {
    HELD.get()
}

/// The value of `run`, and the most bytes that this thread held meanwhile beyond what it held before.
pub fn peak_of<T>(run: impl FnOnce() -> T) -> (T, u64) {
    BEFORE.set(HELD.get());
    PEAK.set(0);
    let value = run();
    (value, PEAK.get())
}
