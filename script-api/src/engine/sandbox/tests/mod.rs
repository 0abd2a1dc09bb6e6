mod bounded;
mod same;
mod samples;

#[path = "../../../../tests/support/counting.rs"]
mod counting;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// Runs `test` with the stack of a worker (`core/src/server.rs`).
fn on_a_workers_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(64 * 1024 * 1024)
        .spawn(test);
    if let Err(panic) = thread.unwrap().join() {
        std::panic::resume_unwind(panic);
    }
}
