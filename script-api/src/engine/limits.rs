//! The bounds of hooks.

use std::time::Duration;

/// Operations of the top level. A fuzzer tries thousands of programs, many of which are endless loops.
const LOADING_OPERATIONS: u64 = if cfg!(fuzzing) { 100_000 } else { 50_000_000 };

/// Bounds of one hook call, and of the sizes of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Operations: roughly one for each expression, statement and call. Default 50,000.
    pub operations: u64,
    /// CPU time of the thread, so that a throttled pod refuses no honest request. Default 20 ms.
    pub time: Duration,
    /// Time on the clock. Default 1 s.
    pub wall_time: Duration,
    /// Bytes that a call may hold at a time beyond what was held before it, as far as the process
    /// counts them (see [`super::count_memory_with`]). Default 16 MiB.
    pub memory: usize,
    /// Calls within calls. Default 16, which a stack of 512 KiB holds.
    pub call_depth: usize,
    /// Bytes of one string. Default 64 KiB.
    pub string: usize,
    /// Items of one array or map. Default 4,096.
    pub items: usize,
    /// Bytes of a body of a request or response that hooks get or make. Default 1 MiB.
    pub body: usize,
    /// Calls to other services (`fetch`) in one call of a hook. Default 8.
    pub fetches: u32,
    /// Time for a `fetch` that names none, until its whole answer is there. Default 5 s.
    pub fetch_timeout: Duration,
    /// Hooks that may be suspended at a time in the whole process. Default 1,000.
    pub waiting: usize,
    /// Bytes that all suspended hooks may hold together. Default 256 MiB.
    pub waiting_memory: usize,
    /// Whether hooks are compiled where they can be. No bound, but it decides what a call costs. Default
    /// true.
    pub compile: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            operations: 50_000,
            time: Duration::from_millis(20),
            wall_time: Duration::from_secs(1),
            memory: 16 * 1024 * 1024,
            call_depth: 16,
            string: 64 * 1024,
            items: 4096,
            body: 1024 * 1024,
            fetches: 8,
            fetch_timeout: Duration::from_secs(5),
            waiting: 1000,
            waiting_memory: 256 * 1024 * 1024,
            compile: true,
        }
    }
}

impl Limits {
    /// What the top level may use: it runs once, off the request path.
    pub fn for_loading(&self) -> Self {
        Self {
            operations: LOADING_OPERATIONS,
            time: Duration::from_secs(5),
            wall_time: Duration::from_secs(30),
            memory: self.memory.max(256 * 1024 * 1024),
            string: self.string.max(1024 * 1024),
            items: self.items.max(100_000),
            ..*self
        }
    }
}
