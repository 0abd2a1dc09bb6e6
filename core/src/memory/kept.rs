//! The buffers that each answer of an upstream takes.
//!
//! Pingora allocates 64 KiB for the body of a response, whatever its length is, and frees them with the request. That is
//! more than jemalloc keeps at hand for a thread (`tcache_max` ends at 32 KiB): each of them would be cut out of what is
//! free in an arena, under its locks, and joined with it again, which is some 3,000 instructions for each request. So the
//! workers keep a few.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::{Cell, UnsafeCell};
use std::ptr;

use tikv_jemallocator::Jemalloc;

/// Bytes of a buffer.
const SIZE: usize = 64 * 1024;

/// Buffers that a worker keeps at most. A request gives its buffer back before the next one needs it, unless it has to wait.
const MOST: usize = 8;

/// jemalloc, and beside it a few buffers that [`keep_buffers`] has the thread keep.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allocator;

/// Buffers of one thread. It is dropped by nobody: a worker lives as long as the process.
struct Kept {
    /// How many there may be: none before [`keep_buffers`].
    most: Cell<usize>,
    count: Cell<usize>,
    buffers: UnsafeCell<[*mut u8; MOST]>,
}

thread_local! {
    // Without an initializer that runs or anything to drop, so that the allocator can use it at any time.
    static KEPT: Kept = const {
        Kept {
            most: Cell::new(0),
            count: Cell::new(0),
            buffers: UnsafeCell::new([ptr::null_mut(); MOST]),
        }
    };
}

/// Has this thread keep a few buffers from now on, half a MiB at most.
pub(crate) fn keep_buffers() {
    KEPT.with(|kept| kept.most.set(MOST));
}

/// Bytes that this thread keeps and nobody uses, which jemalloc counts as allocated.
pub(super) fn unused() -> u64 {
    (KEPT.with(|kept| kept.count.get()) * SIZE) as u64
}

#[inline]
fn is_buffer(layout: Layout) -> bool {
    // jemalloc aligns so large a piece to a cache line at least.
    layout.size() == SIZE && layout.align() <= 16
}

#[inline]
fn take() -> Option<*mut u8> {
    KEPT.with(|kept| {
        let left = kept.count.get().checked_sub(1)?;
        kept.count.set(left);
        // SAFETY: only this thread has access, and nothing else is called meanwhile. `left` was below `count`, which
        // never exceeds `MOST`.
        Some(unsafe { (*kept.buffers.get())[left] })
    })
}

/// Whether it is kept.
#[inline]
fn put(buffer: *mut u8) -> bool {
    KEPT.with(|kept| {
        let count = kept.count.get();
        if count >= kept.most.get() {
            return false;
        }
        // SAFETY: as in `take`; `most` never exceeds `MOST`.
        unsafe { (*kept.buffers.get())[count] = buffer };
        kept.count.set(count + 1);
        true
    })
}

// SAFETY: all memory is jemalloc's, by the same layout for taking and for giving back: what is kept was allocated with the
// size and (at least) the alignment of what is asked for, is given to one at a time, and was given back by the one before.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_buffer(layout)
            && let Some(buffer) = take()
        {
            return buffer;
        }
        // SAFETY: the caller's.
        unsafe { Jemalloc.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // Fresh pages are zero already, those kept are not.
        // SAFETY: the caller's.
        unsafe { Jemalloc.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, buffer: *mut u8, layout: Layout) {
        if is_buffer(layout) && put(buffer) {
            return;
        }
        // SAFETY: the caller's; the size is what jemalloc was asked for, and alignments up to 16 are the same to it.
        unsafe { Jemalloc.dealloc(buffer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, buffer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's; what was kept is jemalloc's as all else.
        unsafe { Jemalloc.realloc(buffer, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Allocates, and writes to both ends.
    fn allocate(layout: Layout) -> *mut u8 {
        // SAFETY: the size is not zero, and what is written lies within it.
        unsafe {
            let buffer = Allocator.alloc(layout);
            assert!(!buffer.is_null());
            buffer.write(1);
            buffer.add(layout.size() - 1).write(2);
            buffer
        }
    }

    fn free(buffer: *mut u8, layout: Layout) {
        // SAFETY: it comes from `allocate` with this layout, and is freed once.
        unsafe { Allocator.dealloc(buffer, layout) }
    }

    #[test]
    fn a_few_buffers_of_one_size_are_kept_and_counted() {
        // A thread of its own: what it keeps is of nobody else's.
        let test = std::thread::spawn(|| {
            let layout = Layout::from_size_align(SIZE, 1).expect("a layout");
            free(allocate(layout), layout);
            assert_eq!(unused(), 0, "it was not asked to");
            keep_buffers();
            let buffers: Vec<_> = (0..MOST + 3).map(|_| allocate(layout)).collect();
            for (index, buffer) in buffers.iter().enumerate() {
                assert!(!buffers[..index].contains(buffer));
            }
            for buffer in &buffers {
                free(*buffer, layout);
            }
            assert_eq!(unused(), (MOST * SIZE) as u64);
            let again = allocate(layout);
            assert!(buffers.contains(&again));
            assert_eq!(unused(), ((MOST - 1) * SIZE) as u64);
            free(again, layout);

            for other in [
                Layout::from_size_align(SIZE - 1, 1),
                Layout::from_size_align(SIZE + 1, 1),
                Layout::from_size_align(SIZE, 4096),
            ] {
                let other = other.expect("a layout");
                let buffer = allocate(other);
                assert_eq!(unused(), (MOST * SIZE) as u64);
                free(buffer, other);
            }
            while take().is_some_and(|buffer| {
                // SAFETY: it was kept with this layout and is nobody's.
                unsafe { Jemalloc.dealloc(buffer, layout) };
                true
            }) {}
        });
        assert!(test.join().is_ok());
    }
}
