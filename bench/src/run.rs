//! `edgewright-bench run`: the rounds.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::checks;
use crate::cli::{Common, at_least_one, ensure_writable, write_json};
use crate::environment::{Environment, other_profile, throttled};
use crate::interrupt::Interrupt;
use crate::peers::{Field, Peer};
use crate::rate;
use crate::report::{Report, Row, Settings};
use crate::start::{Running, Wrapper};
use crate::turn::{self, Plan};
use crate::wrk::Wrk;

/// Seconds of load in which the rate is found out and the proxyless speed measured.
const CALIBRATION_SECONDS: u64 = 2;
/// How long a contestant may take to end.
pub(crate) const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// How many times faster than the fastest proxy backend and load must be without one.
const HEADROOM: f64 = 2.0;

#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    common: Common,
    /// Rounds; in each, every contestant has one turn.
    #[arg(long, default_value_t = 5, value_parser = at_least_one)]
    rounds: usize,
    /// Seconds of measured closed loop in a turn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Seconds of closed loop before it.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=60))]
    warmup: u64,
    /// Seconds of the load at a constant rate.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    rate_seconds: u64,
    /// Requests in a second of that load: a number, `auto` (half of what the slowest contestant
    /// can do) or `off`.
    #[arg(long, default_value = "auto", value_parser = parse_rate)]
    rate: Rate,
    /// Connections of the load (the constant-rate load uses at most 128 of them).
    #[arg(long, default_value_t = 50, value_parser = at_least_one)]
    connections: usize,
    /// Threads of wrk.
    #[arg(long, default_value_t = 1, value_parser = at_least_one)]
    wrk_threads: usize,
    /// The wrk binary.
    #[arg(long, value_name = "PATH", default_value = "wrk")]
    wrk: PathBuf,
    /// File for the result as JSON.
    #[arg(long, default_value = "bench.json")]
    json: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rate {
    Auto,
    Off,
    Fixed(u64),
}

fn parse_rate(text: &str) -> Result<Rate, String> {
    match text {
        "auto" => Ok(Rate::Auto),
        "off" => Ok(Rate::Off),
        number => match number.parse() {
            Ok(rate @ 1..=1_000_000) => Ok(Rate::Fixed(rate)),
            _ => Err("a number from 1 to 1000000, `auto` or `off`".to_owned()),
        },
    }
}

/// Measures, prints the tables and writes the file.
pub(crate) fn run(options: &Options, interrupt: Interrupt) -> Result<()> {
    ensure_writable(&options.json)?;
    let field = options.common.field(options.connections, interrupt)?;
    let environment = Environment::capture(&field.programs.nginx, &options.wrk);
    let wrk = Wrk::new(
        &options.wrk,
        options.wrk_threads,
        options.connections,
        field.placement.others,
    )?;
    let (peers, skipped) = options.common.peers(&field.programs)?;
    let mut warnings = warnings_before(&environment, &field, &peers);
    let throttled_before = throttled();

    let direct = wrk.run(
        field.backend.addresses().blue,
        CALIBRATION_SECONDS,
        &field.interrupt,
    )?;
    let (slowest, fastest) = calibrate(&field, &wrk, &peers)?;
    if direct.per_second() < fastest * HEADROOM {
        warnings.push(format!(
            "without a proxy only {:.0} requests/s, less than {HEADROOM} times the fastest proxy: \
             backend or wrk may be what limits requests/s",
            direct.per_second()
        ));
    }
    let rate = match options.rate {
        Rate::Off => None,
        Rate::Fixed(rate) => Some(rate),
        Rate::Auto => Some(half_of(slowest)),
    };

    let plan = Plan {
        warmup: options.warmup,
        seconds: options.seconds,
        rate: rate.map(|rate| rate::Plan {
            rate,
            duration: Duration::from_secs(options.rate_seconds),
            connections: options.connections.min(rate::MAX_CONNECTIONS),
            cpus: field.placement.others,
        }),
    };
    let rows = rounds(&field, &wrk, &peers, plan, options.rounds)?;
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
            seconds: options.seconds,
            warmup: options.warmup,
            rate_seconds: options.rate_seconds,
            connections: options.connections,
            threads: options.common.threads,
            pool: options.common.pool,
            pinned: options.common.pin,
        },
        direct_per_second: direct.per_second(),
        rate,
        rows,
        skipped,
        warnings,
    };
    println!("{}", report.markdown());
    write_json(&options.json, &report)?;
    let faulty: Vec<String> = report
        .rows
        .iter()
        .filter(|row| row.errors() > 0)
        .map(|row| format!("{} ({} errors)", row.name, row.errors()))
        .collect();
    ensure!(
        faulty.is_empty(),
        "numbers with errors are no result: {}",
        faulty.join(", ")
    );
    Ok(())
}

fn warnings_before(environment: &Environment, field: &Field, peers: &[Peer]) -> Vec<String> {
    let mut warnings = Vec::from_iter(environment.busy());
    if environment.cpus < 2 {
        warnings.push("one CPU for proxy, backend and load together".to_owned());
    }
    let mut programs: Vec<_> = peers
        .iter()
        .filter_map(|peer| peer.own_program(&field.programs))
        .collect();
    programs.dedup();
    warnings.extend(programs.into_iter().filter_map(other_profile));
    warnings
}

/// Checks that every contestant does its job, and gives the requests in a second of the slowest
/// and of the fastest.
fn calibrate(field: &Field, wrk: &Wrk, peers: &[Peer]) -> Result<(f64, f64)> {
    let mut slowest = f64::INFINITY;
    let mut fastest = 0.0_f64;
    for peer in peers {
        eprintln!("checking {}", peer.name);
        let running = Running::start(peer, field, Wrapper::None)?;
        checks::job(peer, running.address())
            .with_context(|| format!("{} does not do its job", peer.name))?;
        let speed = wrk
            .run(running.address(), CALIBRATION_SECONDS, &field.interrupt)?
            .per_second();
        slowest = slowest.min(speed);
        fastest = fastest.max(speed);
        running.stop(STOP_PATIENCE)?;
    }
    Ok((slowest, fastest))
}

/// Half of a speed, rounded down to hundreds, at least 1 request in a second.
fn half_of(per_second: f64) -> u64 {
    match (per_second / 200.0).floor() as u64 * 100 {
        0 => (per_second / 2.0).max(1.0) as u64,
        rate => rate,
    }
}

fn rounds(field: &Field, wrk: &Wrk, peers: &[Peer], plan: Plan, rounds: usize) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = peers
        .iter()
        .map(|peer| Row {
            name: peer.name,
            what: peer.what,
            turns: Vec::new(),
        })
        .collect();
    for round in 1..=rounds {
        for position in 0..peers.len() {
            // Everyone starts a round once in a while, and has different neighbours in time.
            let index = turn_order(position, round, peers.len());
            eprintln!("round {round}/{rounds}: {}", peers[index].name);
            let turn = turn::take(field, wrk, &peers[index], plan, round)?;
            rows[index].turns.push(turn);
        }
    }
    Ok(rows)
}

/// Who has the turn at `position` of a round: shifted by one each round, backwards in every other.
pub(crate) fn turn_order(position: usize, round: usize, count: usize) -> usize {
    let shifted = (position + round) % count;
    if round.is_multiple_of(2) {
        count - 1 - shifted
    } else {
        shifted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_everyone_once() {
        for round in 1..=8 {
            let mut order: Vec<_> = (0..5)
                .map(|position| turn_order(position, round, 5))
                .collect();
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3, 4]);
        }
        assert_ne!(turn_order(0, 1, 5), turn_order(0, 2, 5));
    }

    #[test]
    fn rates_are_numbers_or_words() {
        assert_eq!(parse_rate("off"), Ok(Rate::Off));
        assert_eq!(parse_rate("5000"), Ok(Rate::Fixed(5000)));
        assert!(parse_rate("0").is_err() && parse_rate("fast").is_err());
        assert_eq!(
            (half_of(20_399.0), half_of(150.0), half_of(0.0)),
            (10_100, 75, 1)
        );
    }
}
