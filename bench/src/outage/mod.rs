//! `edgewright-bench outage`: what clients notice while one of three targets dies and another becomes slow,
//! behind edgewright, nginx and HAProxy.

mod config;
mod contestant;
pub(crate) mod load;
mod report;
mod schedule;
mod summary;
pub(crate) mod target;
mod turn;
pub(crate) mod windows;

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::cli::{at_least_one, ensure_writable, find_program, write_json};
use crate::environment::{Environment, first_line, other_profile, throttled};
use crate::interrupt::Interrupt;
use crate::pace::Pace;
use crate::report::Skipped;
use crate::run::turn_order;
use contestant::{Contestant, Programs, Running};
use report::{Report, Row, Settings};
use schedule::Schedule;
use turn::{Course, Targets, Turn};

/// Load before a turn counts: connections are made, and active checks have had their first results.
const WARMUP: Duration = Duration::from_secs(3);
/// An event that comes later than this is told.
const LATE_MS: f64 = 50.0;

/// What `outage` takes.
#[derive(Args)]
pub(crate) struct Options {
    /// Rounds; in each, every contestant has one turn.
    #[arg(long, default_value_t = 3, value_parser = at_least_one)]
    rounds: usize,
    /// Seconds of a turn. One target is killed at 10/60 of it and back at 25/60, another one is slow
    /// from 35/60 to 50/60.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(12..=3600))]
    seconds: u64,
    /// Requests in a second; a window of half a second needs enough for a percentile.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(100..=5000))]
    rate: u64,
    /// Most requests that wait for an answer at once, each on a connection of its own.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(10..=1000))]
    connections: u64,
    /// Milliseconds that a target takes for an answer.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    delay: u64,
    /// How many times longer the slow one takes.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=40))]
    slow_factor: u32,
    /// Worker threads of each proxy.
    #[arg(long, default_value_t = 1, value_parser = at_least_one)]
    threads: usize,
    /// Only this contestant; may be repeated.
    #[arg(long = "only", value_name = "NAME")]
    only: Vec<String>,
    /// The `edgewright` binary [default: beside this program].
    #[arg(long, value_name = "PATH")]
    edgewright: Option<PathBuf>,
    /// The nginx binary [default: found in PATH or /usr/sbin].
    #[arg(long, value_name = "PATH")]
    nginx: Option<PathBuf>,
    /// The HAProxy binary [default: found in PATH or /usr/sbin].
    #[arg(long, value_name = "PATH")]
    haproxy: Option<PathBuf>,
    /// File for the result as JSON.
    #[arg(long, default_value = "outage.json")]
    json: PathBuf,
}

/// A contestant with its program.
type Runnable = (Contestant, PathBuf);

/// Measures, prints the tables and writes the file. That a contestant does badly is a result and no
/// error.
pub(crate) fn run(options: &Options, interrupt: &Interrupt) -> Result<()> {
    ensure_writable(&options.json)?;
    let programs = options.programs()?;
    let (contestants, skipped) = options.contestants(&programs)?;
    for Skipped { name, why } in &skipped {
        eprintln!("{name}: not run, {why}");
    }
    let environment = Environment::capture(
        programs.nginx.as_deref().unwrap_or(Path::new("nginx")),
        Path::new("wrk"),
    );
    let mut warnings: Vec<String> = environment.busy().into_iter().collect();
    if environment.cpus < 2 {
        warnings.push("one CPU for proxy, targets and load together".to_owned());
    }
    let mut all = contestants.iter();
    if let Some((_, program)) = all.find(|(contestant, _)| contestant.is_edgewright()) {
        warnings.extend(other_profile(program));
    }
    let throttled_before = throttled();

    let course = options.course();
    let rows = rounds(options, course, &contestants, interrupt)?;
    warnings.extend(warnings_after(&rows));
    if let (Some(before), Some(after)) = (throttled_before, throttled())
        && after > before
    {
        warnings.push(format!(
            "the CPU quota held this run up {} times",
            after - before
        ));
    }
    let report = Report::new(
        environment,
        programs
            .haproxy
            .map_or_else(|| "no HAProxy".to_owned(), |path| first_line(&path, "-v")),
        Settings {
            pace: Pace {
                rounds: options.rounds,
                seconds: options.seconds,
                rate: options.rate,
                threads: options.threads,
            },
            connections: course.connections,
            delay_ms: options.delay,
            slow_factor: options.slow_factor,
        },
        rows,
        skipped,
        warnings,
    );
    println!("{}", report.markdown());
    write_json(&options.json, &report)
}

impl Options {
    fn course(&self) -> Course {
        Course {
            schedule: Schedule::new(Duration::from_secs(self.seconds)),
            warmup: WARMUP,
            rate: self.rate,
            connections: self.connections as usize,
            delay: Duration::from_millis(self.delay),
            slow_factor: self.slow_factor,
        }
    }

    fn programs(&self) -> Result<Programs> {
        let own = env::current_exe().context("cannot find out where this program is")?;
        Ok(Programs {
            edgewright: self
                .edgewright
                .clone()
                .unwrap_or_else(|| own.with_file_name("edgewright")),
            nginx: self.nginx.clone().or_else(|| find_program("nginx")),
            haproxy: self.haproxy.clone().or_else(|| find_program("haproxy")),
        })
    }

    /// The contestants to run with their programs, and those that can't be. Asked for by name, that is
    /// an error.
    fn contestants(&self, programs: &Programs) -> Result<(Vec<Runnable>, Vec<Skipped>)> {
        let names = Contestant::ALL.map(Contestant::name);
        if let Some(unknown) = self
            .only
            .iter()
            .find(|name| !names.contains(&name.as_str()))
        {
            bail!("no contestant `{unknown}`; there are {}", names.join(", "));
        }
        let (mut found, mut skipped) = (Vec::new(), Vec::new());
        for contestant in Contestant::ALL {
            let name = contestant.name();
            let named = self.only.iter().any(|only| only == name);
            if !self.only.is_empty() && !named {
                continue;
            }
            match contestant.program(programs) {
                Ok(program) => found.push((contestant, program.to_owned())),
                Err(why) if named => bail!("{name}: {why}"),
                Err(why) => skipped.push(Skipped { name, why }),
            }
        }
        ensure!(!found.is_empty(), "no contestant can be run");
        Ok((found, skipped))
    }
}

fn rounds(
    options: &Options,
    course: Course,
    contestants: &[Runnable],
    interrupt: &Interrupt,
) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = contestants
        .iter()
        .map(|(contestant, _)| Row {
            name: contestant.name(),
            what: contestant.what(),
            turns: Vec::new(),
        })
        .collect();
    for round in 1..=options.rounds {
        for position in 0..contestants.len() {
            let index = turn_order(position, round, contestants.len());
            let (contestant, program) = &contestants[index];
            eprintln!("round {round}/{}: {}", options.rounds, contestant.name());
            let turn = take(
                *contestant,
                program,
                course,
                options.threads,
                round,
                interrupt,
            )
            .with_context(|| format!("{}, round {round}", contestant.name()))?;
            rows[index].turns.push(turn);
        }
    }
    Ok(rows)
}

fn take(
    contestant: Contestant,
    program: &Path,
    course: Course,
    threads: usize,
    round: usize,
    interrupt: &Interrupt,
) -> Result<Turn> {
    let mut targets = Targets::start(course, round)?;
    let addresses = targets.addresses();
    let running = Running::start(contestant, program, addresses, threads, interrupt)?;
    let turn = turn::play(running.address(), &mut targets, round, interrupt)?;
    // The targets live until it has ended, so that it ends in order.
    running.stop()?;
    Ok(turn)
}

fn warnings_after(rows: &[Row]) -> Vec<String> {
    let mut warnings = Vec::new();
    for row in rows {
        for turn in &row.turns {
            let (name, round) = (row.name, turn.round);
            if turn.warmup_errors > 0 {
                warnings.push(format!(
                    "{name}, round {round}: {} errors in the warm-up, when nothing was harmed",
                    turn.warmup_errors
                ));
            }
            if turn.latest_event_ms > LATE_MS {
                warnings.push(format!(
                    "{name}, round {round}: an event came {:.0} ms late",
                    turn.latest_event_ms
                ));
            }
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn options(arguments: &[&str]) -> Options {
        Line::parse_from([&["outage"], arguments].concat()).options
    }

    fn programs() -> Programs {
        Programs {
            edgewright: env::current_exe().unwrap(),
            nginx: None,
            haproxy: None,
        }
    }

    #[test]
    fn by_default_it_is_the_course_of_the_issue() {
        let options = options(&[]);
        let course = options.course();
        assert_eq!((course.rate, options.rounds), (300, 3));
        assert_eq!(course.schedule.length(), Duration::from_secs(60));
        assert_eq!(
            course.delay * course.slow_factor,
            Duration::from_millis(100)
        );
    }

    #[test]
    fn what_is_missing_is_left_out_unless_named() {
        let (found, skipped) = options(&[]).contestants(&programs()).unwrap();
        assert_eq!(found.len(), 2);
        let names: Vec<_> = skipped.iter().map(|one| one.name).collect();
        assert_eq!(names, ["nginx", "haproxy"]);
        let error = options(&["--only", "haproxy"])
            .contestants(&programs())
            .unwrap_err();
        assert!(
            error.to_string().contains("apt-get install haproxy"),
            "{error}"
        );
        let error = options(&["--only", "envoy"])
            .contestants(&programs())
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("edgewright, edgewright-peak-ewma, nginx, haproxy"),
            "{error}"
        );
    }
}
