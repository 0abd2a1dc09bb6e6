//! `edgewright-bench hooks`: what a hook costs by itself, in this process, without sockets, and what
//! two threads share on its way.

mod counted;
mod cpu;
mod end_to_end;
mod interpreted;
mod job;
mod memory;
mod native;
mod places;
mod plain;
mod report;
mod requests;
mod sharing;
mod threads;
mod trace;
mod work;

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;

pub(crate) use counted::{LoopOptions, argument, count_own, run_loop};
pub(crate) use cpu::{WARMUP, per_call, thread_cpu_time};
pub(crate) use memory::bound_hooks;
pub(crate) use report::number;
pub(crate) use sharing::{TraceOptions, run_trace};

use crate::callgrind::valgrind_works;
use crate::cli::{at_least_one, ensure_writable, write_json};
use crate::environment::{Environment, other_profile, throttled};
use crate::interrupt::Interrupt;
use crate::placement;
use counted::Counted;
use job::{Job, Way};
use report::{Report, Settings};
use sharing::Sharing;
use work::Work;

/// The hooks whose cost is compared.
const JOBS: [Job; 2] = [Job::Routing, Job::Auth];
/// What is looked at for sharing: each hook by itself, and what must be found if anything is.
const SHARING: [Work; 5] = [
    Work::SharedCounter,
    Work::Routing,
    Work::Auth,
    Work::Networks,
    Work::Pattern,
];

/// What `hooks` takes.
#[derive(Args)]
pub(crate) struct Options {
    /// Rounds; in each, everything that is compared has one turn.
    #[arg(long, default_value_t = 9, value_parser = at_least_one)]
    rounds: usize,
    /// Calls in a turn.
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    calls: u64,
    /// Calls whose instructions are counted (N; a second run makes 2N).
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    counted: u64,
    /// Calls of each of two threads that are traced.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(16..=10_000))]
    traced: u64,
    /// Threads that run hooks at once, each on a CPU of its own; 1 leaves that out.
    #[arg(long, default_value_t = 2, value_parser = at_least_one)]
    threads: usize,
    /// Without valgrind: no instructions, no allocations, nothing about sharing.
    #[arg(long)]
    no_valgrind: bool,
    /// Also nginx with Lua and edgewright through sockets: what a request costs more with a script
    /// (needs nginx with the Lua module and wrk; about ten minutes more).
    #[arg(long)]
    end_to_end: bool,
    /// File for the result as JSON.
    #[arg(long, default_value = "hooks.json")]
    json: PathBuf,
}

/// Measures, prints the tables and writes the file.
pub(crate) fn run(options: &Options, interrupt: Interrupt) -> Result<()> {
    ensure_writable(&options.json)?;
    memory::bound_hooks();
    let environment = Environment::capture(Path::new("nginx"), Path::new("wrk"));
    let own = env::current_exe().context("cannot find out where this program is")?;
    let mut warnings: Vec<String> = environment
        .busy()
        .into_iter()
        .chain(other_profile(&own))
        .collect();
    let throttled_before = throttled();

    eprintln!("CPU time");
    let timed = cpu::time(&JOBS, options.calls, options.rounds, &interrupt)?;

    let cpus = placement::single_cpus()?;
    let scaled = match cpus.get(..options.threads) {
        Some(cpus) if options.threads > 1 => {
            eprintln!("{} threads", options.threads);
            threads::scale(cpus, options.calls, options.rounds, &interrupt)?
        }
        Some(_) => Vec::new(),
        None => {
            warnings.push(format!(
                "{} threads have only {} CPUs: no throughput factor",
                options.threads,
                cpus.len()
            ));
            Vec::new()
        }
    };
    let cores = placement::cores()?;
    if !scaled.is_empty() && cores < options.threads {
        warnings.push(format!("{} threads share {cores} core(s)", options.threads));
    }

    let valgrind = !options.no_valgrind && valgrind_works();
    if !valgrind {
        warnings.push("without valgrind: nothing is counted or traced".to_owned());
    }
    let (counted, sharing) = if valgrind {
        (count(options, &interrupt)?, look(options, &interrupt)?)
    } else {
        (Vec::new(), Vec::new())
    };
    let end_to_end = if options.end_to_end {
        Some(end_to_end::compare(options.rounds, valgrind, interrupt)?)
    } else {
        None
    };
    if let (Some(before), Some(after)) = (throttled_before, throttled())
        && after > before
    {
        warnings.push(format!(
            "the CPU quota held this run up {} times",
            after - before
        ));
    }

    let report = Report {
        environment,
        settings: Settings {
            rounds: options.rounds,
            calls: options.calls,
            counted: options.counted,
            traced: options.traced,
            threads: options.threads,
        },
        timed,
        counted,
        scaled,
        sharing,
        end_to_end,
        warnings,
    };
    println!("{}", report.markdown());
    write_json(&options.json, &report)?;
    let errors = report.end_to_end.as_ref().map_or(0, |found| found.errors);
    ensure!(
        errors == 0,
        "numbers with errors are no result: {errors} errors"
    );
    Ok(())
}

fn count(options: &Options, interrupt: &Interrupt) -> Result<Vec<Counted>> {
    let mut found = Vec::new();
    for job in JOBS {
        for way in Way::ALL {
            eprintln!("counting: {}, {}", job.name(), way.name());
            found.push(counted::count(job, way, options.counted, interrupt)?);
        }
    }
    Ok(found)
}

fn look(options: &Options, interrupt: &Interrupt) -> Result<Vec<Sharing>> {
    let mut found = Vec::new();
    for work in SHARING {
        eprintln!("tracing: {}", work.name());
        found.push(sharing::look(work, options.traced, interrupt)?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
