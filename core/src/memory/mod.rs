//! What a thread holds of memory, for the budget of hooks, and the allocator.

mod kept;

use edgewright_script::engine::count_memory_with;
use tikv_jemalloc_ctl::thread::{ThreadLocal, allocatedp, deallocatedp};

pub use kept::Allocator;
pub(crate) use kept::keep_buffers;

thread_local! {
    /// Where jemalloc counts what this thread allocates and frees.
    static COUNTERS: Option<(ThreadLocal<u64>, ThreadLocal<u64>)> = counters();
}

fn counters() -> Option<(ThreadLocal<u64>, ThreadLocal<u64>)> {
    Some((allocatedp::read().ok()?, deallocatedp::read().ok()?))
}

/// Makes the budget of hooks count memory by jemalloc's counters, which cost two loads. In a program
/// with another allocator they stand still, and nothing is bounded by them.
pub(crate) fn bound_hooks() {
    count_memory_with(|| {
        COUNTERS.with(|counters| match counters {
            Some((allocated, freed)) => {
                let held = allocated.get().wrapping_sub(freed.get());
                held.wrapping_sub(kept::unused())
            }
            None => 0,
        })
    });
}
