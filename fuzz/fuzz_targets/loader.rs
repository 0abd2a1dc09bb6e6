//! The memory of hooks is counted, which bounds it, as jemalloc does it in the proxy.

#![no_main]

use std::sync::Once;

use edgewright_script::engine::count_memory_with;

#[path = "../../script-api/tests/support/counting.rs"]
mod counting;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

static COUNTS: Once = Once::new();

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    COUNTS.call_once(|| count_memory_with(counting::held));
    edgewright_script::fuzzing::loader(input);
});
