//! CPU time of a call in this process.

use std::hint::black_box;

use anyhow::Result;
use serde::Serialize;

use super::job::{Job, Way, Work};
use super::{prepare, requests};
use crate::hooks::{WARMUP, per_call, thread_cpu_time};
use crate::interrupt::Interrupt;
use crate::run::turn_order;

/// The turns of one way to do one job.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Timed {
    /// The job.
    pub(crate) job: Job,
    /// How it is done.
    pub(crate) way: Way,
    /// Nanoseconds of this thread's CPU time for each call, one value a round.
    pub(crate) cpu_ns: Vec<f64>,
}

/// Times `calls` calls of each way to do each of the jobs, in turns, `rounds` times.
pub(super) fn time(
    jobs: &[Job],
    calls: u64,
    rounds: usize,
    interrupt: &Interrupt,
) -> Result<Vec<Timed>> {
    let mut rows = Vec::new();
    let mut works = Vec::new();
    for &job in jobs {
        for way in Way::of(job) {
            interrupt.check()?;
            works.push(prepare(job, way)?);
            let cpu_ns = Vec::new();
            rows.push(Timed { job, way, cpu_ns });
        }
    }
    for round in 1..=rounds {
        for position in 0..rows.len() {
            interrupt.check()?;
            let index = turn_order(position, round, rows.len());
            let calls = calls_of(rows[index].job, calls);
            let work = &mut *works[index];
            repeat(work, WARMUP.min(calls))?;
            let start = thread_cpu_time();
            repeat(work, calls)?;
            let taken = thread_cpu_time().saturating_sub(start);
            let cpu_ns = per_call(taken.as_nanos() as f64, calls);
            rows[index].cpu_ns.push(cpu_ns);
        }
    }
    Ok(rows)
}

/// A call of a thousand steps is as long as many of the others.
pub(super) fn calls_of(job: Job, calls: u64) -> u64 {
    match job {
        Job::Loop => calls.div_ceil(20),
        _ => calls,
    }
}

/// Does the job `calls` times, for all requests in turn.
pub(super) fn repeat(work: &mut dyn Work, calls: u64) -> Result<()> {
    for request in (0..requests()).cycle().take(calls as usize) {
        black_box(work.call(request)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_is_timed_in_each_round() {
        let rows = time(&[Job::Empty, Job::Loop], 10, 3, &Interrupt::never()).unwrap();
        let found: Vec<_> = rows.iter().map(|row| (row.job, row.way)).collect();
        assert_eq!(
            found,
            [
                (Job::Empty, Way::Compiled),
                (Job::Empty, Way::Interpreted),
                (Job::Loop, Way::Native),
                (Job::Loop, Way::Compiled),
                (Job::Loop, Way::Interpreted),
            ]
        );
        assert!(rows.iter().all(|row| row.cpu_ns.len() == 3));
    }
}
