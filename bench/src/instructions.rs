//! User-space instructions per request: two run lengths, and the difference between them.
//!
//! A contestant is started under a counter, answers its readiness request and `WARMUP` more, then
//! N requests over one connection one after the other, and is ended. The same again with 2N. The
//! difference is N requests and nothing else: start, warm-up, connection and end are in both.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use crate::callgrind::{
    callgrind_inclusive, callgrind_total, perf_total, perf_works, valgrind_works,
};
use crate::client::Client;
use crate::load;
use crate::peers::{FLOOR, Field, Peer};
use crate::start::{Running, Wrapper};
use crate::stats::Spread;

/// Requests before those that count, in both runs: pools are filled, script is compiled.
const WARMUP: u64 = 200;
/// Counting makes a program some fifty times slower.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
/// And its end too.
pub(crate) const STOP_PATIENCE: Duration = Duration::from_secs(60);

/// What counts the instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Counter {
    /// `perf` where the hardware's counter can be used, else `callgrind`.
    Auto,
    /// `perf stat -e instructions:u`.
    Perf,
    /// `valgrind --tool=callgrind`.
    Callgrind,
}

impl Counter {
    /// Never `Auto`; an error if there is none.
    pub(crate) fn resolve(self) -> Result<Counter> {
        match self {
            Counter::Auto | Counter::Perf if perf_works() => Ok(Counter::Perf),
            Counter::Perf => bail!("perf can't count instructions:u here"),
            _ if valgrind_works() => Ok(Counter::Callgrind),
            _ => bail!("valgrind is not installed"),
        }
    }
}

/// A contestant's instructions.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    /// Its name.
    pub(crate) name: &'static str,
    what: &'static str,
    /// Of each round.
    pub(crate) instructions_per_request: Vec<f64>,
    spread: Option<Spread>,
    /// Of the functions that were asked for, with all that they call, in the last round.
    functions: BTreeMap<String, f64>,
}

/// What the counter has found.
struct Total {
    instructions: u64,
    functions: BTreeMap<String, u64>,
}

/// The whole count.
#[derive(Debug, Serialize)]
pub(crate) struct Count {
    counter: String,
    requests: u64,
    /// The contestants.
    pub(crate) rows: Vec<Row>,
}

/// Counts `requests` requests of each contestant, `rounds` times, and what functions take of it whose names contain one of
/// `parts`.
pub(crate) fn count(
    field: &Field,
    peers: &[Peer],
    counter: Counter,
    requests: u64,
    rounds: usize,
    parts: &[String],
) -> Result<Count> {
    ensure!(
        parts.is_empty() || counter == Counter::Callgrind,
        "only callgrind tells of functions: --counter callgrind"
    );
    let mut rows: Vec<Row> = Vec::new();
    for peer in peers {
        let mut values = Vec::new();
        let mut functions = BTreeMap::new();
        for round in 1..=rounds {
            eprintln!("round {round}/{rounds}: {}", peer.name);
            let short = total(field, peer, counter, requests, parts)?;
            let long = total(field, peer, counter, requests * 2, parts)?;
            let (less, more) = (short.instructions, long.instructions);
            ensure!(
                more > less,
                "{}: {more} instructions for twice the requests, {less} for once",
                peer.name
            );
            values.push((more - less) as f64 / requests as f64);
            let of_short = |name: &String| short.functions.get(name).copied().unwrap_or(0);
            let each = |(name, long): (&String, &u64)| {
                let more = long.saturating_sub(of_short(name));
                (name.clone(), more as f64 / requests as f64)
            };
            functions = long.functions.iter().map(each).collect();
        }
        rows.push(Row {
            name: peer.name,
            what: peer.what,
            spread: Spread::of(values.iter().copied()),
            instructions_per_request: values,
            functions,
        });
    }
    Ok(Count {
        counter: format!("{counter:?}").to_lowercase(),
        requests,
        rows,
    })
}

fn total(
    field: &Field,
    peer: &Peer,
    counter: Counter,
    requests: u64,
    parts: &[String],
) -> Result<Total> {
    let dir = tempfile::tempdir().context("cannot create a folder")?;
    let file = dir.path().join("counts");
    let wrapper = match counter {
        Counter::Perf => Wrapper::Perf(&file),
        Counter::Auto | Counter::Callgrind => Wrapper::Callgrind(&file),
    };
    let running = Running::start(peer, field, wrapper)?;
    let mut client = Client::connect(running.address(), TIMEOUT)?;
    let request = load::measured_request();
    for number in 0..WARMUP + requests {
        field.interrupt.check()?;
        let answer = client
            .exchange(&request)
            .with_context(|| format!("{}, request {number}", peer.name))?;
        ensure!(
            answer.status == 200 && answer.body.len() == load::BODY_LENGTH,
            "{}, request {number}: status {} with {} bytes",
            peer.name,
            answer.status,
            answer.body.len()
        );
    }
    drop(client);
    running.stop(STOP_PATIENCE)?;
    read_total(&file, counter, parts)
}

fn read_total(file: &Path, counter: Counter, parts: &[String]) -> Result<Total> {
    let text = fs::read_to_string(file)
        .with_context(|| format!("the counter left no {}", file.display()))?;
    Ok(Total {
        instructions: match counter {
            Counter::Perf => perf_total(&text),
            Counter::Auto | Counter::Callgrind => callgrind_total(&text),
        }?,
        functions: callgrind_inclusive(&text, |name| parts.iter().any(|part| name.contains(part))),
    })
}

impl Count {
    /// The table for people.
    pub(crate) fn markdown(&self) -> String {
        let floor = self
            .rows
            .iter()
            .find(|row| row.name == FLOOR)
            .and_then(|row| row.spread);
        let mut text = format!(
            "User-space instructions per request ({}, difference of {} and {} requests)\n\n\
             | contestant | instructions | min..max | more than the floor | × floor |\n\
             |---|---:|---:|---:|---:|\n",
            self.counter,
            self.requests,
            self.requests * 2
        );
        for row in &self.rows {
            let Some(own) = row.spread else { continue };
            let (more, ratio) = match floor {
                Some(floor) => (
                    format!("{:+.0}", own.median - floor.median),
                    format!("{:.3}", own.median / floor.median),
                ),
                None => ("–".to_owned(), "–".to_owned()),
            };
            text += &format!(
                "| {} ({}) | {:.0} | {:.0}..{:.0} | {more} | {ratio} |\n",
                row.name, row.what, own.median, own.min, own.max
            );
        }
        for row in self.rows.iter().filter(|row| !row.functions.is_empty()) {
            text += &format!(
                "\n| functions of {}, with all that they call | instructions |\n|---|---:|\n",
                row.name
            );
            // Less than that is no part of a request.
            let mut functions: Vec<_> = row
                .functions
                .iter()
                .filter(|(_, each)| **each >= 1.0)
                .collect();
            functions.sort_by(|one, other| other.1.total_cmp(one.1));
            for (name, each) in functions {
                text += &format!("| `{name}` | {each:.0} |\n");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_compares_with_the_floor() {
        let row = |name, values: Vec<f64>| Row {
            name,
            what: "x",
            spread: Spread::of(values.iter().copied()),
            instructions_per_request: values,
            functions: BTreeMap::from([("f".to_owned(), 12.4)]),
        };
        let count = Count {
            counter: "callgrind".to_owned(),
            requests: 1000,
            rows: vec![
                row(FLOOR, vec![70_000.0]),
                row("edgewright", vec![77_000.0, 76_000.0, 78_000.0]),
            ],
        };
        let text = count.markdown();
        assert!(
            text.contains("| edgewright (x) | 77000 | 76000..78000 | +7000 | 1.100 |"),
            "{text}"
        );
        assert!(
            text.contains("functions of edgewright, with all that they call | instructions |\n|---|---:|\n| `f` | 12 |\n"),
            "{text}"
        );
    }
}
