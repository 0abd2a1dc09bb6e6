//! Latency with reloads and without them, in turns, against one process.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use serde::Serialize;

use super::edge::Edge;
use crate::interrupt::Interrupt;
use crate::outage::load::{self, Plan};
use crate::outage::windows::Stretch;

/// From starting the threads of the load to its first request.
const LEAD: Duration = Duration::from_millis(100);
/// Load before the first turn: connections are made.
const WARMUP: Duration = Duration::from_secs(2);
/// How many requests can wait at once.
const CONNECTIONS: usize = 64;

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Course {
    /// Rounds of two turns.
    pub(super) rounds: usize,
    /// Length of a turn.
    pub(super) turn: Duration,
    /// Requests in a second.
    pub(super) rate: u64,
    /// From one reload to the next.
    pub(super) every: Duration,
    /// Routes of the programs.
    pub(super) routes: usize,
}

/// A stretch of load.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Turn {
    /// Counts from 1.
    pub(super) round: usize,
    /// Whether there were reloads.
    pub(super) reloading: bool,
    /// How many.
    pub(super) reloads: usize,
    /// What became of the requests.
    pub(super) whole: Stretch,
    /// Failed requests by what went wrong.
    pub(super) failures: BTreeMap<String, u64>,
}

/// Takes all turns. In every other round the one with reloads comes first.
pub(super) fn measure(
    binary: &Path,
    threads: usize,
    course: Course,
    interrupt: &Interrupt,
) -> Result<Vec<Turn>> {
    let mut edge = Edge::start(binary, threads, course.routes, interrupt)?;
    load::run(plan(&edge, course.rate, WARMUP), interrupt)?;
    let mut turns = Vec::new();
    for round in 1..=course.rounds {
        let first = round.is_multiple_of(2);
        for reloading in [first, !first] {
            let what = if reloading { "with" } else { "without" };
            eprintln!("latency, round {round}/{}: {what} reloads", course.rounds);
            turns.push(take(&mut edge, course, round, reloading, interrupt)?);
        }
    }
    edge.stop()?;
    Ok(turns)
}

fn plan(edge: &Edge, rate: u64, duration: Duration) -> Plan {
    Plan {
        address: edge.address(),
        rate,
        start: Instant::now() + LEAD,
        duration,
        connections: CONNECTIONS,
    }
}

fn take(
    edge: &mut Edge,
    course: Course,
    round: usize,
    reloading: bool,
    interrupt: &Interrupt,
) -> Result<Turn> {
    let plan = plan(edge, course.rate, course.turn);
    thread::scope(|scope| {
        let load = scope.spawn(|| load::run(plan, interrupt));
        let reloads = if reloading {
            reload_until(edge, course, plan.start, interrupt)
        } else {
            Ok(0)
        };
        let samples = load
            .join()
            .unwrap_or_else(|_| Err(anyhow!("the load panicked")));
        let (reloads, samples) = (reloads?, samples?);
        Ok(Turn {
            round,
            reloading,
            reloads,
            whole: Stretch::of(samples.iter()),
            failures: load::failures(samples.iter()),
        })
    })
}

/// Reloads at a fixed pace, or as fast as it goes where that is slower, from `start` for one turn.
fn reload_until(
    edge: &mut Edge,
    course: Course,
    start: Instant,
    interrupt: &Interrupt,
) -> Result<usize> {
    let end = start + course.turn;
    let mut due = start;
    let mut reloads = 0;
    loop {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        interrupt.check()?;
        if Instant::now() >= end {
            return Ok(reloads);
        }
        edge.reload(course.routes)?;
        reloads += 1;
        due = (due + course.every).max(Instant::now());
    }
}
