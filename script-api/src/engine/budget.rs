//! What one hook call may use. Counted in a thread-local, because Rhai's own operation counter is
//! lost in callbacks of `map`, `sort` and `reduce`.

use std::{
    cell::{Cell, RefCell},
    cmp::Ordering,
    sync::OnceLock,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

use super::limits::Limits;

/// What ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exhausted {
    /// The number of operations.
    Operations,
    /// CPU time or time on the clock.
    Time,
    /// Memory.
    Memory,
    /// The stack.
    Stack,
    /// Calls to other services.
    Fetches,
    /// Room for one more suspended hook.
    Waiting,
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

/// Everything is looked at once in so many operations. A hook that is shorter reads no clock.
const INTERVAL: u64 = 16;

/// In a hook that holds more than this part of what it may, memory is looked at in each operation: one
/// can copy all that it holds.
const MUCH: u64 = 32;

/// The CPU clock, which is dear, is read once in so many operations, or when so much time has passed
/// that they must have been dear too.
const CLOCK_INTERVAL: u64 = 256;
const CLOCK_AGE: Duration = Duration::from_millis(1);

/// Operations that only compute with numbers are looked at once in so many.
const NUMBERS_INTERVAL: u64 = 4096;

/// After so long others have a turn: a long hook delays the other requests of its worker by this
/// much at a time, and not by all that it may use.
const TURN: Duration = Duration::from_micros(25);

/// Lines that one call may log; what comes after them is dropped.
pub(super) const LOG_LINES: u32 = 100;

/// A stack that is used deeply is looked at again when it has grown by so many bytes.
const STACK_STEP: usize = 64 * 1024;

/// What follows from an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    /// Go on.
    On,
    /// Go on, after others have had a turn.
    TurnOver,
    /// Something ran out.
    Exhausted,
}

/// What is not looked at in each operation.
#[derive(Clone, Copy)]
struct Rest {
    operations: u64,
    /// The operation from which on the clocks are read again.
    next_clock: u64,
    memory_limit: u64,
    held_before: u64,
    cpu_limit: Duration,
    wall_limit: Duration,
    /// CPU time and clock when they were first read in this call, moved by what it was suspended.
    started: Option<(Duration, Instant)>,
    /// When the CPU clock was last read, or, before that, when the call was first looked at.
    clock_read: Option<Duration>,
    /// When this turn began, as far as the clock has been read in it.
    turn: Option<Instant>,
    /// Where the stack begins; it grows downwards.
    stack_base: usize,
    /// Below this address it is used deeply.
    stack_deep: usize,
    /// Below this address too little is left of it.
    stack_end: usize,
    /// The lowest address at which it was seen used, when that was deep.
    stack_lowest: Option<usize>,
    fetches_left: u32,
    log_lines: u32,
    waiting: usize,
    waiting_memory: usize,
    exhausted: Option<Exhausted>,
}

struct Budget {
    used: Cell<u64>,
    /// The operation at which memory, and now and then the clocks, are looked at again.
    next_look: Cell<u64>,
    /// The address below which the depth of the stack is looked at.
    stack_mark: Cell<usize>,
    rest: RefCell<Rest>,
}

const NO_LIMIT: Rest = Rest {
    operations: u64::MAX,
    next_clock: u64::MAX,
    memory_limit: u64::MAX,
    held_before: 0,
    cpu_limit: Duration::MAX,
    wall_limit: Duration::MAX,
    started: None,
    clock_read: None,
    turn: None,
    stack_base: 0,
    stack_deep: 0,
    stack_end: 0,
    stack_lowest: None,
    fetches_left: 0,
    log_lines: 0,
    waiting: 0,
    waiting_memory: 0,
    exhausted: None,
};

thread_local! {
    static BUDGET: Budget = const {
        Budget {
            used: Cell::new(0),
            next_look: Cell::new(u64::MAX),
            stack_mark: Cell::new(0),
            rest: RefCell::new(NO_LIMIT),
        }
    };
}

/// Nothing is counted on this thread until the next call begins.
pub(super) fn stop() {
    BUDGET.with(|budget| {
        budget.used.set(0);
        budget.next_look.set(u64::MAX);
        budget.stack_mark.set(0);
        budget.rest.replace(NO_LIMIT);
    });
}

/// Starts the count of one call on this thread.
pub(crate) fn start(limits: &Limits) {
    BUDGET.with(|budget| {
        budget.used.set(0);
        budget
            .next_look
            .set(INTERVAL.min(limits.operations.saturating_add(1)));
        budget.stack_mark.set(0);
        budget.rest.replace(Rest {
            operations: limits.operations,
            next_clock: CLOCK_INTERVAL,
            memory_limit: limits.memory as u64,
            held_before: held(),
            cpu_limit: limits.time,
            wall_limit: limits.wall_time,
            fetches_left: limits.fetches,
            waiting: limits.waiting,
            waiting_memory: limits.waiting_memory,
            ..NO_LIMIT
        });
    });
}

/// The stack of this call, which grows downwards from `base`: it is used deeply below the address
/// `deep`, and used up below `end`.
pub(super) fn watch_stack(base: usize, deep: usize, end: usize) {
    BUDGET.with(|budget| {
        budget.stack_mark.set(deep);
        budget.change(|rest| {
            (rest.stack_base, rest.stack_deep, rest.stack_end) = (base, deep, end);
        });
    });
}

/// Whether the call that just ended on this thread can't have touched much of its stack: it was
/// never seen deep, and it was too short to nest values deeply, which are freed by recursion.
pub(super) fn used_little_stack() -> bool {
    BUDGET.with(|budget| budget.rest.borrow().stack_lowest.is_none() && budget.used.get() < 4096)
}

/// What ran out in the call that just ended on this thread.
pub(crate) fn exhausted() -> Option<Exhausted> {
    BUDGET.with(|budget| budget.rest.borrow().exhausted)
}

/// Ends the call: `what` has run out.
pub(super) fn exhaust(what: Exhausted) {
    BUDGET.with(|budget| {
        budget.change(|rest| rest.exhausted = Some(what));
        budget.next_look.set(0);
    });
}

/// Takes `calls` off the calls to other services that are left; false when they are not.
pub(super) fn take_fetches(calls: usize) -> bool {
    BUDGET.with(|budget| {
        let left = budget.rest.borrow().fetches_left;
        let left = u32::try_from(calls)
            .ok()
            .and_then(|calls| left.checked_sub(calls));
        budget.change(|rest| rest.fetches_left = left.unwrap_or(rest.fetches_left));
        left.is_some()
    })
}

/// What remains of the lines that the running call may log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogRoom {
    /// There is room for this one.
    Room,
    /// This is the first for which there is none.
    Full,
    /// There was none for others before.
    Over,
}

/// Takes one off the lines that the running call may log.
pub(super) fn take_log_line() -> LogRoom {
    BUDGET.with(|budget| {
        let before = budget.rest.borrow().log_lines;
        budget.change(|rest| rest.log_lines = before.saturating_add(1));
        match before.cmp(&LOG_LINES) {
            Ordering::Less => LogRoom::Room,
            Ordering::Equal => LogRoom::Full,
            Ordering::Greater => LogRoom::Over,
        }
    })
}

/// The clocks are read with the next operation, for natives that take long themselves: hundreds of
/// them would else run between two looks.
pub(super) fn look_at_clocks() {
    BUDGET.with(|budget| {
        budget.next_look.set(budget.used.get().saturating_add(1));
        budget.change(|rest| rest.next_clock = 0);
    });
}

/// Whether the running call holds more memory than it may. For natives that build large values.
pub(crate) fn is_out_of_memory() -> bool {
    BUDGET.with(|budget| budget.rest.borrow().is_out_of_memory())
}

/// Runs something that counts so many operations more than the hook does, and before all others.
pub(super) fn without<R>(operations: u64, run: impl FnOnce() -> R) -> R {
    BUDGET.with(|budget| {
        budget.change(|rest| rest.operations = rest.operations.saturating_add(operations));
    });
    let result = run();
    BUDGET.with(|budget| {
        let used = budget.used.get().saturating_sub(operations);
        budget.used.set(used);
        let next = budget.next_look.get();
        budget.next_look.set(next.min(used.saturating_add(1)));
        budget.change(|rest| rest.operations = rest.operations.saturating_sub(operations));
    });
    result
}

/// Counts an operation.
#[inline]
pub(super) fn count() -> Count {
    BUDGET.with(Budget::count)
}

/// Counts so many operations at once if nothing has to be looked at in any of them; else it counts none.
#[inline]
pub(super) fn count_at_once(operations: u64) -> bool {
    BUDGET.with(|budget| budget.count_at_once(operations))
}

/// Operations that may be counted before anything is looked at, if they only compute with numbers: they take
/// about a nanosecond each and no memory.
pub(super) fn room() -> u64 {
    BUDGET.with(|budget| {
        let rest = budget.rest.borrow();
        if rest.exhausted.is_some() {
            return 0;
        }
        let left = rest.operations.saturating_sub(budget.used.get());
        left.min(NUMBERS_INTERVAL)
    })
}

/// Counts so many operations of those that [`room`] gave.
pub(super) fn add(operations: u64) {
    BUDGET.with(|budget| budget.used.set(budget.used.get() + operations));
}

/// The count of a call that is suspended: neither time nor what others allocate counts meanwhile.
pub(super) struct Paused {
    used: u64,
    next_look: u64,
    stack_mark: usize,
    rest: Rest,
    cpu: Duration,
    wall: Duration,
    grown: u64,
}

impl Paused {
    /// Bytes that the call holds: of the heap, and of its stack when that is much.
    pub(super) fn held(&self) -> usize {
        let grown = self.grown.cast_signed().max(0);
        let heap = usize::try_from(grown).unwrap_or(usize::MAX);
        let lowest = self.rest.stack_lowest;
        let stack = lowest.map_or(0, |lowest| self.rest.stack_base - lowest);
        heap.saturating_add(stack)
    }

    /// Suspended hooks that there may be, and bytes that they may hold.
    pub(super) fn room(&self) -> (usize, usize) {
        (self.rest.waiting, self.rest.waiting_memory)
    }
}

/// Takes the count of the running call aside.
pub(super) fn pause() -> Paused {
    BUDGET.with(|budget| {
        let rest = *budget.rest.borrow();
        let (cpu, wall) = rest.started.map_or_else(Default::default, |started| {
            let (cpu, now) = (thread_cpu_time(), Instant::now());
            (cpu.saturating_sub(started.0), now.duration_since(started.1))
        });
        Paused {
            used: budget.used.get(),
            next_look: budget.next_look.get(),
            stack_mark: budget.stack_mark.get(),
            rest,
            cpu,
            wall,
            grown: held().wrapping_sub(rest.held_before),
        }
    })
}

/// Goes on with a count that was taken aside, on the same thread, in a turn of its own. `left` bytes
/// of what the call held are gone, and `came` are new to it.
pub(super) fn resume(paused: &Paused, left: usize, came: usize) {
    let grown = paused.grown.wrapping_sub(left as u64);
    let grown = grown.wrapping_add(came as u64);
    BUDGET.with(|budget| {
        budget.used.set(paused.used);
        budget.next_look.set(paused.next_look);
        budget.stack_mark.set(paused.stack_mark);
        let mut rest = paused.rest;
        rest.held_before = held().wrapping_sub(grown);
        rest.turn = None;
        rest.clock_read = None;
        if rest.started.is_some() {
            let now = Instant::now();
            rest.turn = Some(now);
            rest.started = now
                .checked_sub(paused.wall)
                .map(|wall| (thread_cpu_time().saturating_sub(paused.cpu), wall));
        }
        budget.rest.replace(rest);
    });
}

impl Budget {
    #[inline]
    fn count(&self) -> Count {
        let used = self.used.get() + 1;
        self.used.set(used);
        let here = stack_address();
        if used < self.next_look.get() && here >= self.stack_mark.get() {
            return Count::On;
        }
        self.look(used, here)
    }

    #[inline]
    fn count_at_once(&self, operations: u64) -> bool {
        let used = self.used.get() + operations;
        let has_room = used < self.next_look.get() && stack_address() >= self.stack_mark.get();
        if has_room {
            self.used.set(used);
        }
        has_room
    }

    fn change(&self, change: impl FnOnce(&mut Rest)) {
        change(&mut self.rest.borrow_mut());
    }

    /// Looks at everything that is counted.
    #[cold]
    fn look(&self, used: u64, here: usize) -> Count {
        let mut rest = self.rest.borrow_mut();
        let count = rest.look(used, here);
        // One beyond the last operation that is allowed is looked at, wherever it falls.
        let next = used.saturating_add(if rest.holds_much() { 1 } else { INTERVAL });
        let last = rest.operations.saturating_add(1);
        let next = if used < last { next.min(last) } else { next };
        // An error that comes through a native can be caught: the next operation ends the hook again.
        self.next_look
            .set(if rest.exhausted.is_some() { 0 } else { next });
        if let Some(lowest) = rest.stack_lowest {
            let mark = lowest.saturating_sub(STACK_STEP);
            self.stack_mark.set(mark.max(rest.stack_end));
        }
        count
    }
}

impl Rest {
    fn look(&mut self, used: u64, here: usize) -> Count {
        if self.exhausted.is_some() {
            return Count::Exhausted;
        }
        if used > self.operations {
            return self.exhaust(Exhausted::Operations);
        }
        if here < self.stack_end {
            return self.exhaust(Exhausted::Stack);
        }
        if here < self.stack_lowest.unwrap_or(self.stack_deep) {
            self.stack_lowest = Some(here);
        }
        if self.is_out_of_memory() {
            return self.exhaust(Exhausted::Memory);
        }
        let about_now = coarse_clock();
        let read = *self.clock_read.get_or_insert(about_now);
        if used < self.next_clock && about_now.saturating_sub(read) < CLOCK_AGE {
            return Count::On;
        }
        self.next_clock = used.saturating_add(CLOCK_INTERVAL);
        self.clock_read = Some(about_now);
        let now = Instant::now();
        if self.is_out_of_time(now) {
            return self.exhaust(Exhausted::Time);
        }
        let turn = *self.turn.get_or_insert(now);
        if now.duration_since(turn) > TURN {
            self.turn = Some(now);
            return Count::TurnOver;
        }
        Count::On
    }

    fn exhaust(&mut self, what: Exhausted) -> Count {
        self.exhausted = Some(what);
        Count::Exhausted
    }

    fn is_out_of_memory(&self) -> bool {
        self.grown() > self.memory_limit
    }

    fn holds_much(&self) -> bool {
        self.grown() > self.memory_limit / MUCH
    }

    /// Bytes that are held beyond what was held before.
    fn grown(&self) -> u64 {
        let grown = held().wrapping_sub(self.held_before).cast_signed();
        grown.max(0).unsigned_abs()
    }

    fn is_out_of_time(&mut self, now: Instant) -> bool {
        let cpu = thread_cpu_time();
        let (cpu_start, wall_start) = *self.started.get_or_insert((cpu, now));
        cpu.saturating_sub(cpu_start) > self.cpu_limit
            || now.duration_since(wall_start) > self.wall_limit
    }
}

/// About where the stack is used now.
#[inline(always)]
fn stack_address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(&here).addr()
}

/// The CPU time that this thread has used. A system call.
fn thread_cpu_time() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// A clock that costs next to nothing to read, and goes in steps of some milliseconds.
fn coarse_clock() -> Duration {
    read(ClockId::MonotonicCoarse)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}
