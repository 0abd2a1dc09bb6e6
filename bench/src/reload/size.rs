//! How long a reload takes by the size of the program, and what memory does over many reloads.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use super::edge::Edge;
use crate::interrupt::Interrupt;
use crate::stats::Spread;

/// jemalloc gives pages back that were not used for 5 s.
const SETTLE: Duration = Duration::from_secs(12);
const LOOK: Duration = Duration::from_millis(100);
/// After so many reloads memory is looked at first.
const FIRST: u64 = 100;
/// The sizes that take turns while memory is looked at, in routes.
const ALTERNATING: [usize; 2] = [10, 200];

/// Reloads of one size.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Size {
    /// Routes of the program.
    pub(super) routes: usize,
    /// Milliseconds of each, from the request to the answer.
    pub(super) each_ms: Vec<f64>,
    /// Their middle; `None` when each was noticed before it was asked for.
    pub(super) ms: Option<Spread>,
    /// Resident memory afterwards, in KiB.
    pub(super) resident_kib: u64,
}

/// Memory over many reloads.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Memory {
    /// How many reloads there were.
    pub(super) reloads: u64,
    /// Resident memory in KiB at the start.
    pub(super) start_kib: u64,
    /// After the first 100.
    pub(super) first_kib: u64,
    /// After all.
    pub(super) last_kib: u64,
}

/// Takes the time of `count` reloads of programs of so many routes, without load.
pub(super) fn time(
    binary: &Path,
    threads: usize,
    routes: usize,
    count: usize,
    interrupt: &Interrupt,
) -> Result<Size> {
    eprintln!("time: {count} reloads of {routes} routes");
    let mut edge = Edge::start(binary, threads, routes, interrupt)?;
    let mut each_ms = Vec::new();
    for _ in 0..count {
        interrupt.check()?;
        if let Some(took) = edge.reload(routes)? {
            each_ms.push(took.as_secs_f64() * 1e3);
        }
    }
    let resident_kib = settled(&edge, interrupt)?;
    edge.stop()?;
    Ok(Size {
        routes,
        ms: Spread::of(each_ms.iter().copied()),
        each_ms,
        resident_kib,
    })
}

/// Looks at the memory over `reloads` reloads of two sizes in turn.
pub(super) fn memory(
    binary: &Path,
    threads: usize,
    reloads: u64,
    interrupt: &Interrupt,
) -> Result<Memory> {
    eprintln!("memory: {reloads} reloads");
    let mut edge = Edge::start(binary, threads, ALTERNATING[0], interrupt)?;
    let start_kib = settled(&edge, interrupt)?;
    let mut first_kib = start_kib;
    for number in 1..=reloads {
        interrupt.check()?;
        edge.reload(ALTERNATING[usize::from(number % 2 == 1)])?;
        if number == FIRST {
            first_kib = settled(&edge, interrupt)?;
        }
    }
    let last_kib = settled(&edge, interrupt)?;
    edge.stop()?;
    Ok(Memory {
        reloads,
        start_kib,
        first_kib,
        last_kib,
    })
}

/// The smallest resident memory, in KiB, while the allocator gives back what it gives back.
fn settled(edge: &Edge, interrupt: &Interrupt) -> Result<u64> {
    let begin = Instant::now();
    let mut lowest = edge.resident_kib()?;
    while begin.elapsed() < SETTLE {
        interrupt.check()?;
        thread::sleep(LOOK);
        lowest = lowest.min(edge.resident_kib()?);
    }
    Ok(lowest)
}
