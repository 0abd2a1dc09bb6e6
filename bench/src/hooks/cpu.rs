//! CPU time and allocated bytes of a call, in this thread.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::interpreted::{Hooked, Interpreted};
use super::job::{Hooks, Job, Way};
use super::memory;
use super::native::Native;
use super::plain::Plain;
use super::requests;
use crate::interrupt::Interrupt;
use crate::run::turn_order;

/// Calls before those that count: caches are filled, names are resolved.
pub(crate) const WARMUP: u64 = 1000;

/// What calls cost in one turn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Turn {
    /// The round, from 1.
    pub(crate) round: usize,
    /// Nanoseconds of this thread's CPU time for each call.
    pub(crate) cpu_ns: f64,
    /// Bytes that each call allocates.
    pub(crate) bytes: f64,
}

/// The turns of one way to do one job.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Timed {
    /// The job.
    pub(crate) job: Job,
    /// How it is done.
    pub(crate) way: Way,
    /// One a round.
    pub(crate) turns: Vec<Turn>,
}

/// Times `calls` calls of each way to do each of `jobs`, in turns, `rounds` times.
pub(super) fn time(
    jobs: &[Job],
    calls: u64,
    rounds: usize,
    interrupt: &Interrupt,
) -> Result<Vec<Timed>> {
    let mut rows = Vec::new();
    let mut hooks = Vec::new();
    for &job in jobs {
        for way in Way::ALL {
            let turns = Vec::new();
            rows.push(Timed { job, way, turns });
            let mut prepared = prepare(job, way)?;
            compare(&mut *prepared, job)
                .with_context(|| format!("{}, {}", job.name(), way.name()))?;
            hooks.push(prepared);
        }
    }
    for round in 1..=rounds {
        for position in 0..rows.len() {
            interrupt.check()?;
            let index = turn_order(position, round, rows.len());
            let (row, hooks) = (&mut rows[index], &mut *hooks[index]);
            repeat(hooks, row.job, WARMUP)?;
            let (allocated, start) = (memory::allocated(), thread_cpu_time());
            repeat(hooks, row.job, calls)?;
            let (end, allocated_after) = (thread_cpu_time(), memory::allocated());
            row.turns.push(Turn {
                round,
                cpu_ns: per_call(end.saturating_sub(start).as_nanos() as f64, calls),
                bytes: per_call(allocated_after.wrapping_sub(allocated) as f64, calls),
            });
        }
    }
    Ok(rows)
}

/// The hooks of one way, with requests of their own.
pub(super) fn prepare(job: Job, way: Way) -> Result<Box<dyn Hooks>> {
    let requests = requests::measured();
    Ok(match way {
        Way::Native => Box::new(Native::new(requests)),
        Way::Edgewright => Box::new(Interpreted::new(Hooked::load(job)?, requests)?),
        Way::CallFn => Box::new(Plain::new(true, requests)?),
        Way::CallFnBare => Box::new(Plain::new(false, requests)?),
    })
}

/// An error when the hooks don't do with every request what the native ones do: a fast wrong answer is
/// no result.
fn compare(hooks: &mut dyn Hooks, job: Job) -> Result<()> {
    let mut native = prepare(job, Way::Native)?;
    for request in 0..requests::COUNT {
        let expected = (native.call(job, request)?, native.client(request));
        let found = (hooks.call(job, request)?, hooks.client(request));
        ensure!(
            found == expected,
            "request {request}: {found:?}, not {expected:?}"
        );
    }
    Ok(())
}

/// Runs the hook `calls` times, over all requests in turn.
pub(super) fn repeat(hooks: &mut dyn Hooks, job: Job, calls: u64) -> Result<()> {
    for request in (0..requests::COUNT).cycle().take(calls as usize) {
        black_box(hooks.call(job, request)?);
    }
    Ok(())
}

/// The CPU time that this thread has used.
pub(crate) fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}

/// The share of one call in what `calls` took.
pub(crate) fn per_call(total: f64, calls: u64) -> f64 {
    total / calls.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::job::{Outcome, Pool};

    #[test]
    fn a_turn_of_each_way_is_timed_in_each_round() {
        let rows = time(&[Job::Routing], 10, 3, &Interrupt::never()).unwrap();
        let ways: Vec<_> = rows.iter().map(|row| row.way).collect();
        assert_eq!(ways, Way::ALL);
        for row in rows {
            let rounds: Vec<_> = row.turns.iter().map(|turn| turn.round).collect();
            assert_eq!(rounds, [1, 2, 3]);
        }
    }

    #[test]
    fn hooks_that_do_something_else_are_no_result() {
        struct AlwaysBlue;
        impl Hooks for AlwaysBlue {
            fn call(&mut self, _: Job, _: usize) -> Result<Outcome> {
                Ok(Outcome::Pool(Pool::Blue))
            }
            fn client(&self, _: usize) -> Option<String> {
                None
            }
        }
        let error = compare(&mut AlwaysBlue, Job::Routing).unwrap_err();
        assert!(error.to_string().contains("request 1:"), "{error}");
    }

    #[test]
    fn a_call_has_its_share() {
        assert_eq!(per_call(300.0, 200), 1.5);
        assert_eq!(per_call(0.0, 0), 0.0);
    }
}
