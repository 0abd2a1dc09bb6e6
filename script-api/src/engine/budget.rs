//! What one hook call may use. Counted in a thread-local, because Rhai's own operation counter is
//! lost in callbacks of `map`, `sort` and `reduce`.

use std::{
    cell::Cell,
    sync::OnceLock,
    time::{Duration, Instant},
};

use rhai::{Dynamic, Engine};
use rustix::time::{ClockId, clock_gettime};

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
    /// counts them (see [`count_memory_with`]). Default 16 MiB.
    pub memory: usize,
    /// Calls within calls. Default 16, which a stack of 512 KiB holds.
    pub call_depth: usize,
    /// Bytes of one string. Default 64 KiB.
    pub string: usize,
    /// Items of one array or map. Default 4,096.
    pub items: usize,
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
        }
    }
}

impl Limits {
    /// What the top level may use: it runs once, off the request path.
    pub fn for_loading(&self) -> Self {
        Self {
            operations: 50_000_000,
            time: Duration::from_secs(5),
            wall_time: Duration::from_secs(30),
            memory: self.memory.max(256 * 1024 * 1024),
            string: self.string.max(1024 * 1024),
            items: self.items.max(100_000),
            ..*self
        }
    }
}

/// What ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exhausted {
    /// The number of operations.
    Operations,
    /// CPU time or time on the clock.
    Time,
    /// Memory.
    Memory,
}

/// Gives the bytes that the current thread has allocated and not freed, modulo 2^64: memory may
/// be freed by another thread than the one that allocated it.
pub type MemoryCounter = fn() -> u64;

static MEMORY: OnceLock<MemoryCounter> = OnceLock::new();

/// Makes hooks count the memory that they hold. Only the process knows its allocator, so without
/// this there is no bound on the sum of values, only on each. The first call counts.
pub fn count_memory_with(counter: MemoryCounter) {
    // Setting it twice changes nothing.
    let _ = MEMORY.set(counter);
}

fn held() -> u64 {
    MEMORY.get().map_or(0, |counter| counter())
}

/// Memory is looked at once in so many operations; each of them can add one value of bounded size.
const MEMORY_INTERVAL: u64 = 16;

/// The clocks are read once in so many operations. A hook that is shorter reads none.
const CLOCK_INTERVAL: u64 = 256;

struct Budget {
    used: Cell<u64>,
    operations: Cell<u64>,
    /// The operation at which memory, and now and then the clocks, are looked at again.
    next_look: Cell<u64>,
    /// The operation from which on the clocks are read again.
    next_clock: Cell<u64>,
    memory_limit: Cell<u64>,
    held_before: Cell<u64>,
    cpu_limit: Cell<Duration>,
    wall_limit: Cell<Duration>,
    /// CPU time and clock when they were first read in this call.
    started: Cell<Option<(Duration, Instant)>>,
    exhausted: Cell<Option<Exhausted>>,
}

thread_local! {
    static BUDGET: Budget = const {
        Budget {
            used: Cell::new(0),
            operations: Cell::new(u64::MAX),
            next_look: Cell::new(u64::MAX),
            next_clock: Cell::new(u64::MAX),
            memory_limit: Cell::new(u64::MAX),
            held_before: Cell::new(0),
            cpu_limit: Cell::new(Duration::MAX),
            wall_limit: Cell::new(Duration::MAX),
            started: Cell::new(None),
            exhausted: Cell::new(None),
        }
    };
}

/// Starts the count of one call on this thread.
pub(crate) fn start(limits: &Limits) {
    BUDGET.with(|budget| {
        budget.used.set(0);
        budget.operations.set(limits.operations);
        let first = MEMORY_INTERVAL.min(limits.operations.saturating_add(1));
        budget.next_look.set(first);
        budget.next_clock.set(CLOCK_INTERVAL);
        budget.memory_limit.set(limits.memory as u64);
        budget.held_before.set(held());
        budget.cpu_limit.set(limits.time);
        budget.wall_limit.set(limits.wall_time);
        budget.started.set(None);
        budget.exhausted.set(None);
    });
}

/// What ran out in the call that just ended on this thread.
pub(crate) fn exhausted() -> Option<Exhausted> {
    BUDGET.with(|budget| budget.exhausted.get())
}

/// Makes `engine` count each operation.
pub(super) fn install(engine: &mut Engine) {
    engine.on_progress(|_| BUDGET.with(Budget::count));
}

impl Budget {
    #[inline]
    fn count(&self) -> Option<Dynamic> {
        let used = self.used.get() + 1;
        self.used.set(used);
        if used < self.next_look.get() {
            return None;
        }
        self.look(used)
    }

    /// Looks at everything that is counted, once in [`MEMORY_INTERVAL`] operations.
    #[cold]
    fn look(&self, used: u64) -> Option<Dynamic> {
        if used > self.operations.get() {
            return self.exhaust(Exhausted::Operations);
        }
        // One beyond the last operation that is allowed is looked at, wherever it falls.
        let next = used.saturating_add(MEMORY_INTERVAL);
        let last = self.operations.get().saturating_add(1);
        self.next_look
            .set(if used < last { next.min(last) } else { next });
        if self.out_of_memory() {
            return self.exhaust(Exhausted::Memory);
        }
        if used >= self.next_clock.get() {
            self.next_clock.set(used.saturating_add(CLOCK_INTERVAL));
            if self.out_of_time() {
                return self.exhaust(Exhausted::Time);
            }
        }
        None
    }

    fn out_of_memory(&self) -> bool {
        let grown = held().wrapping_sub(self.held_before.get()).cast_signed();
        grown > 0 && grown.unsigned_abs() > self.memory_limit.get()
    }

    fn exhaust(&self, what: Exhausted) -> Option<Dynamic> {
        self.exhausted.set(Some(what));
        // The value ends the program with `ErrorTerminated`, which a script can't catch.
        Some(Dynamic::UNIT)
    }

    fn out_of_time(&self) -> bool {
        let cpu = thread_cpu_time();
        let now = Instant::now();
        match self.started.get() {
            None => {
                self.started.set(Some((cpu, now)));
                false
            }
            Some((cpu_start, wall_start)) => {
                cpu.saturating_sub(cpu_start) > self.cpu_limit.get()
                    || now.duration_since(wall_start) > self.wall_limit.get()
            }
        }
    }
}

/// The CPU time that this thread has used.
fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}
