//! `edgewright-bench reload`: what requests notice of reloads, how long a reload takes, and whether memory stays.

mod edge;
mod latency;
mod program;
mod report;
mod size;

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::cli::{at_least_one, ensure_writable, write_json};
use crate::environment::{Environment, other_profile, throttled};
use crate::interrupt::Interrupt;
use crate::pace::Pace;
use report::{Report, Settings};

/// What `reload` takes.
#[derive(Args)]
pub(crate) struct Options {
    /// Rounds; in each, one turn without reloads and one with them.
    #[arg(long, default_value_t = 6, value_parser = at_least_one)]
    rounds: usize,
    /// Seconds of a turn.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(2..=3600))]
    seconds: u64,
    /// Requests in a second.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(50..=5000))]
    rate: u64,
    /// Milliseconds from one reload to the next.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    every: u64,
    /// Routes of the programs that are loaded in turn while latency is measured.
    #[arg(long, default_value_t = 200, value_parser = at_least_one)]
    routes: usize,
    /// Reloads over which memory is looked at.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(200..=100_000))]
    reloads: u64,
    /// Reloads of each size whose time is taken.
    #[arg(long, default_value_t = 10, value_parser = at_least_one)]
    timed: usize,
    /// Worker threads.
    #[arg(long, default_value_t = 1, value_parser = at_least_one)]
    threads: usize,
    /// The `edgewright` binary [default: beside this program].
    #[arg(long, value_name = "PATH")]
    edgewright: Option<PathBuf>,
    /// File for the result as JSON.
    #[arg(long, default_value = "reload.json")]
    json: PathBuf,
}

/// The sizes whose reload is timed, in routes.
const SIZES: [usize; 2] = [10, 10_000];

/// Measures, prints the tables and writes the file.
///
/// # Errors
/// When the proxy can't be run, when a reload is refused, when a request failed, and after a signal.
pub(crate) fn run(options: &Options, interrupt: &Interrupt) -> Result<()> {
    ensure_writable(&options.json)?;
    let binary = match &options.edgewright {
        Some(binary) => binary.clone(),
        None => env::current_exe()
            .context("cannot find out where this program is")?
            .with_file_name("edgewright"),
    };
    ensure!(binary.is_file(), "{} does not exist", binary.display());
    // Of the other programs that it looks for, none takes part.
    let environment = Environment::capture(Path::new("nginx"), Path::new("wrk"));
    let mut warnings: Vec<String> = environment.busy().into_iter().collect();
    if environment.cpus < 2 {
        warnings.push("one CPU for proxy, reloads, target and load together".to_owned());
    }
    warnings.extend(other_profile(&binary));
    let throttled_before = throttled();

    let threads = options.threads;
    let course = latency::Course {
        rounds: options.rounds,
        turn: Duration::from_secs(options.seconds),
        rate: options.rate,
        every: Duration::from_millis(options.every),
        routes: options.routes,
    };
    let turns = latency::measure(&binary, threads, course, interrupt)?;
    let mut sizes = Vec::new();
    for routes in SIZES {
        sizes.push(size::time(
            &binary,
            threads,
            routes,
            options.timed,
            interrupt,
        )?);
    }
    let memory = size::memory(&binary, threads, options.reloads, interrupt)?;

    if let (Some(before), Some(after)) = (throttled_before, throttled())
        && after > before
    {
        warnings.push(format!(
            "the CPU quota held this run up {} times",
            after - before
        ));
    }
    let settings = Settings {
        pace: Pace {
            rounds: options.rounds,
            seconds: options.seconds,
            rate: options.rate,
            threads,
        },
        every_ms: options.every,
        routes: options.routes,
    };
    let report = Report {
        environment,
        settings,
        turns,
        sizes,
        memory,
        warnings,
    };
    println!("{}", report.markdown());
    write_json(&options.json, &report)?;
    let errors = report.errors();
    ensure!(errors == 0, "{errors} requests failed");
    Ok(())
}
