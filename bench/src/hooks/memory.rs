//! What this thread allocates, counted by jemalloc as in `edgewright`.

use edgewright_script::engine::count_memory_with;
use tikv_jemalloc_ctl::thread::{ThreadLocal, allocatedp, deallocatedp};

thread_local! {
    static COUNTERS: Option<(ThreadLocal<u64>, ThreadLocal<u64>)> = counters();
}

fn counters() -> Option<(ThreadLocal<u64>, ThreadLocal<u64>)> {
    Some((allocatedp::read().ok()?, deallocatedp::read().ok()?))
}

/// Bytes that this thread has ever allocated. They stand still in a program with another allocator.
pub(super) fn allocated() -> u64 {
    COUNTERS.with(|counters| {
        counters
            .as_ref()
            .map_or(0, |(allocated, _)| allocated.get())
    })
}

/// Makes hooks keep their memory budget as they do in `edgewright`, so that its cost is in theirs.
pub(crate) fn bound_hooks() {
    count_memory_with(|| {
        COUNTERS.with(|counters| match counters {
            Some((allocated, freed)) => allocated.get().wrapping_sub(freed.get()),
            None => 0,
        })
    });
}
