//! The same jobs through sockets: what a request costs more with a script than without, in nginx with
//! Lua and in edgewright.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::checks;
use crate::cli::Common;
use crate::instructions::{self, Counter};
use crate::interrupt::Interrupt;
use crate::peers::{ALL, Field, NGINX_LUA_ALONE, Peer, Programs};
use crate::report::Skipped;
use crate::run::{STOP_PATIENCE, turn_order};
use crate::start::{Running, Wrapper};
use crate::stats::Spread;
use crate::turn::{self, Plan, Turn};
use crate::wrk::Wrk;

const CONNECTIONS: usize = 50;
/// Seconds of load in a turn, before it counts and while it does.
const WARMUP: u64 = 1;
const SECONDS: u64 = 4;
/// Requests whose instructions are counted (N of two run lengths).
const COUNTED_REQUESTS: u64 = 1000;

/// Who does the jobs, who does the same without, and what the difference is.
const PAIRS: [(&str, &str, &str); 6] = [
    ("nginx-lua-routing", "nginx", "routing"),
    ("nginx-lua-auth", "nginx", "auth"),
    ("nginx-lua", "nginx", "both"),
    ("edgewright-routing", "edgewright", "routing"),
    ("edgewright-auth", "edgewright", "auth"),
    ("edgewright-script", "edgewright", "both"),
];

/// What a job costs a request.
#[derive(Debug, Serialize)]
pub(crate) struct Extra {
    /// The contestant with the script.
    pub(crate) with: &'static str,
    /// The one without.
    pub(crate) without: &'static str,
    /// What the script does.
    pub(crate) job: &'static str,
    /// Microseconds of CPU time for each request, with less without in the same round.
    pub(crate) cpu_us: Option<Spread>,
    /// Instructions in user space for each request, with less without.
    pub(crate) instructions: Option<f64>,
}

/// A contestant's turns.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    name: &'static str,
    turns: Vec<Turn>,
}

/// The whole comparison.
#[derive(Debug, Serialize)]
pub(crate) struct EndToEnd {
    /// What the jobs cost.
    pub(crate) extras: Vec<Extra>,
    /// The contestants.
    pub(crate) rows: Vec<Row>,
    /// Those left out.
    pub(crate) skipped: Vec<Skipped>,
    /// Answers that were errors.
    pub(crate) errors: u64,
}

/// Measures whatever of the pairs is there, `rounds` times in turns, and with `valgrind` counts its
/// instructions too.
pub(super) fn compare(rounds: usize, valgrind: bool, interrupt: Interrupt) -> Result<EndToEnd> {
    let field = Common::default().field(CONNECTIONS, interrupt)?;
    let wrk = Wrk::new(Path::new("wrk"), 1, CONNECTIONS, None)?;
    let (peers, skipped) = peers(&field.programs);
    for peer in &peers {
        eprintln!("checking {}", peer.name);
        let running = Running::start(peer, &field, Wrapper::None)?;
        checks::job(peer, running.address())
            .with_context(|| format!("{} does not do its job", peer.name))?;
        running.stop(STOP_PATIENCE)?;
    }
    let rows = turns(&field, &wrk, &peers, rounds)?;
    let counts = if valgrind {
        instructions::count(&field, &peers, Counter::Callgrind, COUNTED_REQUESTS, 1, &[])?.rows
    } else {
        Vec::new()
    };
    let counts: Vec<(&str, f64)> = counts
        .iter()
        .filter_map(|row| Some((row.name, *row.instructions_per_request.first()?)))
        .collect();
    Ok(EndToEnd {
        errors: rows
            .iter()
            .flat_map(|row| &row.turns)
            .map(Turn::errors)
            .sum(),
        extras: extras(&rows, &counts),
        rows,
        skipped,
    })
}

/// Everyone in the pairs, and those that can't be run.
fn peers(programs: &Programs) -> (Vec<Peer>, Vec<Skipped>) {
    let named = |name| {
        PAIRS
            .iter()
            .any(|(with, without, _)| *with == name || *without == name)
    };
    let (mut there, mut skipped) = (Vec::new(), Vec::new());
    for peer in ALL
        .into_iter()
        .chain(NGINX_LUA_ALONE)
        .filter(|peer| named(peer.name))
    {
        match peer.missing(programs) {
            None => there.push(peer),
            Some(why) => skipped.push(Skipped {
                name: peer.name,
                why,
            }),
        }
    }
    (there, skipped)
}

fn turns(field: &Field, wrk: &Wrk, peers: &[Peer], rounds: usize) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = peers
        .iter()
        .map(|peer| Row {
            name: peer.name,
            turns: Vec::new(),
        })
        .collect();
    let plan = Plan {
        warmup: WARMUP,
        seconds: SECONDS,
        rate: None,
    };
    for round in 1..=rounds {
        for position in 0..peers.len() {
            let index = turn_order(position, round, peers.len());
            eprintln!("round {round}/{rounds}: {}", peers[index].name);
            let turn = turn::take(field, wrk, &peers[index], plan, round)?;
            rows[index].turns.push(turn);
        }
    }
    Ok(rows)
}

fn extras(rows: &[Row], counts: &[(&str, f64)]) -> Vec<Extra> {
    let row = |name| rows.iter().find(|row| row.name == name);
    let count = |name| {
        let found = counts.iter().find(|(known, _)| *known == name);
        found.map(|(_, instructions)| *instructions)
    };
    PAIRS
        .into_iter()
        .filter_map(|(with, without, job)| {
            let (own, other) = (row(with)?, row(without)?);
            let cpu_us = own.turns.iter().filter_map(|turn| {
                let same_round = other.turns.iter().find(|one| one.round == turn.round)?;
                Some(turn.closed.cpu.total_us() - same_round.closed.cpu.total_us())
            });
            Some(Extra {
                with,
                without,
                job,
                cpu_us: Spread::of(cpu_us),
                instructions: count(with)
                    .zip(count(without))
                    .map(|(own, other)| own - other),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::turn;

    #[test]
    fn a_job_costs_what_is_more_in_the_same_round() {
        let row = |name, turns| Row { name, turns };
        // The second round was twice as slow for everyone.
        let rows = [
            row("nginx", vec![turn(1, 10.0, 0), turn(2, 20.0, 0)]),
            row("nginx-lua-auth", vec![turn(2, 24.0, 0), turn(1, 12.0, 0)]),
            row("edgewright-auth", vec![turn(1, 30.0, 0)]),
        ];
        let found = extras(&rows, &[("nginx-lua-auth", 9000.0), ("nginx", 7500.0)]);
        let [auth] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!((auth.with, auth.job), ("nginx-lua-auth", "auth"));
        let cpu = auth.cpu_us.unwrap();
        assert_eq!((cpu.min, cpu.median, cpu.max), (2.0, 3.0, 4.0));
        assert_eq!(auth.instructions, Some(1500.0));
    }

    #[test]
    fn every_name_in_the_pairs_is_a_contestant() {
        let here = std::env::current_exe().unwrap();
        let programs = Programs {
            floor: here.clone(),
            edgewright: here.clone(),
            pgo: here.clone(),
            nginx: here,
            lua_modules: Some("/".into()),
        };
        let (there, skipped) = peers(&programs);
        assert!(skipped.is_empty());
        for (with, without, _) in PAIRS {
            for name in [with, without] {
                assert!(there.iter().any(|peer| peer.name == name), "{name}");
            }
        }
    }
}
