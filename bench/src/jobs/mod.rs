//! `edgewright-bench jobs`: what the jobs of scripts cost, each by itself: in this process without sockets,
//! and through proxies beside nginx with Lua.

mod cases;
mod checks;
mod counted;
mod end_to_end;
mod hooked;
mod job;
mod lua;
mod native;
mod program;
mod report;
mod time;
mod wire;

use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;

pub(crate) use counted::{LoopOptions, run_loop};
pub use job::{Job, Said, Way, Work};

use crate::callgrind::valgrind_works;
use crate::cli::{at_least_one, ensure_writable, write_json};
use crate::environment::{Environment, other_profile, throttled};
use crate::hooks::bound_hooks;
use crate::interrupt::Interrupt;
use crate::nginx::PROXYING;
use cases::Case;
use end_to_end::Plan;
use report::Report;

/// What `jobs` takes.
#[derive(Args)]
pub(crate) struct Options {
    /// Through edgewright and nginx with Lua instead of in this process: what a request costs more with the
    /// job (needs nginx with the Lua module, wrk, and `edgewright` beside this program).
    #[arg(long)]
    end_to_end: bool,
    /// With `--end-to-end`: also user-space instructions, by callgrind.
    #[arg(long, requires = "end_to_end")]
    instructions: bool,
    /// With `--end-to-end`: the `edgewright` binary [default: beside this program].
    #[arg(long, value_name = "PATH", requires = "end_to_end")]
    edgewright: Option<PathBuf>,
    /// Only this job; may be repeated.
    #[arg(long = "job", value_enum, value_name = "JOB")]
    jobs: Vec<Job>,
    /// Rounds; in each, everything that is compared has one turn [default: 9, end to end 5].
    #[arg(long, value_parser = at_least_one)]
    rounds: Option<usize>,
    /// Calls in a turn in this process; of the longest job a twentieth.
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    calls: u64,
    /// Calls or requests whose instructions are counted [default: 10000, end to end 1500].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    counted: Option<u64>,
    /// Without valgrind: no instructions.
    #[arg(long, conflicts_with = "instructions")]
    no_valgrind: bool,
    /// Pairs of loads in a turn end to end, each one with the hook and one without.
    #[arg(long, default_value_t = 4, value_parser = at_least_one)]
    pairs: usize,
    /// Seconds of such a load.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// File for the result as JSON.
    #[arg(long, default_value = "jobs.json")]
    json: PathBuf,
}

/// Measures, prints the table and writes the file.
pub(crate) fn run(options: &Options, interrupt: Interrupt) -> Result<()> {
    ensure_writable(&options.json)?;
    let environment = Environment::capture(Path::new("nginx"), Path::new("wrk"));
    let own = env::current_exe().context("cannot find out where this program is")?;
    let mut warnings: Vec<String> = environment.busy().into_iter().collect();
    let throttled_before = throttled();
    let jobs = match options.jobs.as_slice() {
        [] => &Job::ALL,
        named => named,
    };
    let mut report = Report {
        environment,
        how: String::new(),
        timed: Vec::new(),
        counted: Vec::new(),
        end_to_end: Vec::new(),
        skipped: Vec::new(),
        warnings: Vec::new(),
    };
    if options.end_to_end {
        ensure!(
            !options.instructions || valgrind_works(),
            "valgrind is not installed"
        );
        let beside = own.with_file_name("edgewright");
        let edgewright = options.edgewright.as_ref().unwrap_or(&beside);
        warnings.extend(other_profile(edgewright));
        let plan = Plan {
            rounds: options.rounds.unwrap_or(5),
            pairs: options.pairs,
            seconds: options.seconds,
            counted: options
                .instructions
                .then_some(options.counted.unwrap_or(1500)),
            edgewright: options.edgewright.clone(),
        };
        let which = options
            .edgewright
            .as_ref()
            .map_or_else(String::new, |path| {
                format!(" edgewright is `{}`.", path.display())
            });
        report.how = format!(
            "{} rounds of {} pairs of loads of {} s, 50 connections, one thread or process each. What a \
             request costs more with the job than without, the median (min..max) of the rounds.{which}",
            plan.rounds, plan.pairs, plan.seconds
        );
        (report.end_to_end, report.skipped) = end_to_end::compare(jobs, &plan, interrupt)?;
    } else {
        warnings.extend(other_profile(&own));
        let rounds = options.rounds.unwrap_or(9);
        report.how = format!(
            "{rounds} rounds of {} calls, over {} requests with 8 header fields or more. CPU time of a call, \
             the median (min..max) of the rounds.",
            options.calls,
            requests()
        );
        report.timed = time::time(jobs, options.calls, rounds, &interrupt)?;
        if options.no_valgrind || !valgrind_works() {
            warnings.push("without valgrind: no instructions".to_owned());
        } else {
            let calls = options.counted.unwrap_or(10_000);
            report.counted = counted::count(jobs, calls, &interrupt)?;
        }
    }
    if let (Some(before), Some(after)) = (throttled_before, throttled())
        && after > before
    {
        warnings.push(format!(
            "the CPU quota held this run up {} times",
            after - before
        ));
    }
    report.warnings = warnings;
    println!("{}", report.markdown());
    write_json(&options.json, &report)
}

/// What edgewright serves: a site without a hook and one with the job.
pub(crate) fn edgewright_files(job: Job) -> Result<Vec<(&'static str, String)>> {
    let mut files = program::files(job)?;
    files.push(("routes.rhai", program::routes(job)));
    Ok(files)
}

/// What nginx needs beside its configuration.
pub(crate) fn nginx_files(job: Job) -> Result<Vec<(&'static str, String)>> {
    let mut files = program::files(job)?;
    files.extend(lua::files(job));
    Ok(files)
}

/// nginx's servers: one without Lua and one with the job.
pub(crate) fn nginx_servers(job: Job, listen: SocketAddr) -> String {
    let servers = lua::servers(job, &listen.to_string(), PROXYING);
    format!("{}{servers}", lua::settings(job))
}

/// A job done in one way, for the requests that are measured. Their numbers are those below
/// [`requests`].
///
/// # Errors
/// When it does not do what it has to: a fast wrong answer is no result.
pub fn prepare(job: Job, way: Way) -> Result<Box<dyn Work>> {
    bound_hooks();
    checks::in_memory(job, way)?;
    work(job, way, &cases::measured(job))
}

/// How many requests there are.
pub fn requests() -> usize {
    cases::COUNT
}

fn work(job: Job, way: Way, cases: &[Case]) -> Result<Box<dyn Work>> {
    let requests = cases.iter().map(|case| cases::in_memory(&case.request));
    let requests = requests.collect::<Result<Vec<_>>>()?;
    Ok(match way {
        Way::Native => Box::new(native::Native::new(job, requests)?),
        Way::Compiled => Box::new(hooked::Hooked::new(job, true, requests)?),
        Way::Interpreted => Box::new(hooked::Hooked::new(job, false, requests)?),
    })
}
