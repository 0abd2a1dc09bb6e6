//! Instructions and allocations of a call: this program runs itself under callgrind with two numbers
//! of calls. Their difference is calls and nothing else: start, loading and warm-up are in both.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::cpu::{WARMUP, per_call, prepare, repeat};
use super::job::{Job, Way};
use super::memory;
use crate::callgrind::{callgrind_calls, callgrind_total};
use crate::interrupt::Interrupt;
use crate::process::Process;
use crate::start::{Wrapper, wrap};

/// How long one run under valgrind may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// The functions of jemalloc that give memory; a reallocation counts as one.
const ALLOCATING: [&str; 6] = [
    "_rjem_malloc",
    "_rjem_mallocx",
    "_rjem_calloc",
    "_rjem_realloc",
    "_rjem_rallocx",
    "_rjem_aligned_alloc",
];

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

/// Runs a hook so many times, after the usual warm-up.
pub(crate) fn run_loop(options: &LoopOptions) -> Result<()> {
    memory::bound_hooks();
    let mut hooks = prepare(options.job, options.way)?;
    repeat(&mut *hooks, options.job, WARMUP + options.calls)
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

/// Totals of one run.
#[derive(Debug, Clone, Copy)]
struct Totals {
    instructions: u64,
    allocations: u64,
}

/// Counts `calls` calls of one way to do one job.
pub(super) fn count(job: Job, way: Way, calls: u64, interrupt: &Interrupt) -> Result<Counted> {
    let arguments = [
        "hook-loop".to_owned(),
        format!("--job={}", argument(job)),
        format!("--way={}", argument(way)),
    ];
    let (instructions, allocations) = count_own(&arguments, calls, interrupt)
        .with_context(|| format!("{}, {}", job.name(), way.name()))?;
    Ok(Counted {
        job,
        way,
        instructions,
        allocations,
    })
}

/// Instructions and allocations of each of `calls` calls, by running this program with these arguments and
/// `--calls` twice.
pub(crate) fn count_own(
    arguments: &[String],
    calls: u64,
    interrupt: &Interrupt,
) -> Result<(f64, f64)> {
    let short = totals(arguments, calls, interrupt)?;
    let long = totals(arguments, calls * 2, interrupt)?;
    between(short, long, calls)
}

fn between(short: Totals, long: Totals, calls: u64) -> Result<(f64, f64)> {
    // A job that allocates nothing leaves what the process does by itself, which differs by some blocks.
    let allocations_fit = long.allocations + calls / 100 >= short.allocations;
    ensure!(
        long.instructions > short.instructions && allocations_fit,
        "the run with twice the calls counted less: {long:?}, not more than {short:?}"
    );
    Ok((
        per_call((long.instructions - short.instructions) as f64, calls),
        per_call(
            long.allocations.saturating_sub(short.allocations) as f64,
            calls,
        ),
    ))
}

fn totals(arguments: &[String], calls: u64, interrupt: &Interrupt) -> Result<Totals> {
    let dir = tempfile::tempdir().context("cannot create a folder")?;
    let file = dir.path().join("counts");
    let mut command = Command::new(own_program()?);
    command.args(arguments).arg(format!("--calls={calls}"));
    let mut command = wrap(command, Wrapper::Callgrind(&file));
    let log = dir.path().join("output.log");
    Process::spawn("callgrind", &mut command, &log, None)?.finish(PATIENCE, interrupt)?;
    read(&file)
}

fn read(file: &Path) -> Result<Totals> {
    let text = fs::read_to_string(file)
        .with_context(|| format!("callgrind left no {}", file.display()))?;
    Ok(Totals {
        instructions: callgrind_total(&text)?,
        allocations: callgrind_calls(&text, |name| ALLOCATING.contains(&name)),
    })
}

/// This program.
pub(super) fn own_program() -> Result<std::path::PathBuf> {
    env::current_exe().context("cannot find out where this program is")
}

/// How the command line spells a value.
pub(crate) fn argument(value: impl ValueEnum) -> String {
    value
        .to_possible_value()
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(instructions: u64, allocations: u64) -> Totals {
        Totals {
            instructions,
            allocations,
        }
    }

    #[test]
    fn what_both_runs_have_falls_out() {
        let found = between(total(1_000_000, 50), total(1_500_000, 250), 100).unwrap();
        assert_eq!(found, (5000.0, 2.0));
    }

    #[test]
    fn counts_that_go_backwards_are_an_error() {
        assert!(between(total(5, 0), total(5, 0), 1).is_err());
        assert!(between(total(5, 9), total(6, 8), 1).is_err());
    }
}
