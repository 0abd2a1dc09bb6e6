//! Instructions of a call in this process: it runs itself under callgrind.

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use super::job::{Job, Way};
use super::time::{calls_of, repeat};
use super::{cases, work};
use crate::hooks::{WARMUP, argument, bound_hooks, count_own};
use crate::interrupt::Interrupt;

/// The command that [`count`] runs under callgrind.
#[derive(Args)]
pub(crate) struct LoopOptions {
    #[arg(long, value_enum)]
    job: Job,
    #[arg(long, value_enum)]
    way: Way,
    #[arg(long)]
    calls: u64,
}

/// Does a job so many times, after a warm-up.
pub(crate) fn run_loop(options: &LoopOptions) -> Result<()> {
    bound_hooks();
    let mut work = work(options.job, options.way, &cases::measured(options.job))?;
    repeat(&mut *work, calls_of(options.job, WARMUP) + options.calls)
}

/// What one call does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Counted {
    /// The job.
    pub(crate) job: Job,
    /// How it is done.
    pub(crate) way: Way,
    /// Instructions in user space.
    pub(crate) instructions: f64,
    /// Blocks of memory taken from the allocator.
    pub(crate) allocations: f64,
}

/// Counts the calls of each way to do each of the jobs.
pub(super) fn count(jobs: &[Job], calls: u64, interrupt: &Interrupt) -> Result<Vec<Counted>> {
    let mut found = Vec::new();
    for &job in jobs {
        for way in Way::of(job) {
            eprintln!("counting: {}, {}", job.name(), way.name());
            let arguments = [
                "job-loop".to_owned(),
                format!("--job={}", argument(job)),
                format!("--way={}", argument(way)),
            ];
            let (instructions, allocations) =
                count_own(&arguments, calls_of(job, calls), interrupt)
                    .with_context(|| format!("{}, {}", job.name(), way.name()))?;
            found.push(Counted {
                job,
                way,
                instructions,
                allocations,
            });
        }
    }
    Ok(found)
}
