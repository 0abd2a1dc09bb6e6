//! The result of a run, as tables and as JSON.

use std::fmt::Write;

use serde::Serialize;

use crate::environment::Environment;
use crate::peers::FLOOR;
use crate::stats::Spread;
use crate::turn::Turn;

/// How the run was set up.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Settings {
    /// Rounds.
    pub(crate) rounds: usize,
    /// Seconds of measured closed loop in a turn.
    pub(crate) seconds: u64,
    /// Seconds of closed loop before it.
    pub(crate) warmup: u64,
    /// Seconds at a constant rate in a turn.
    pub(crate) rate_seconds: u64,
    /// Connections of wrk.
    pub(crate) connections: usize,
    /// Worker threads of each proxy.
    pub(crate) threads: usize,
    /// Idle upstream connections that each proxy keeps.
    pub(crate) pool: usize,
    /// Whether proxy and the rest ran on CPUs of their own.
    pub(crate) pinned: bool,
}

/// A contestant's turns.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it is.
    pub(crate) what: &'static str,
    /// One a round.
    pub(crate) turns: Vec<Turn>,
}

/// A contestant that wasn't run.
#[derive(Debug, Serialize)]
pub(crate) struct Skipped {
    /// Its name.
    pub(crate) name: &'static str,
    /// Why.
    pub(crate) why: String,
}

/// A whole run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Where.
    pub(crate) environment: Environment,
    /// How.
    pub(crate) settings: Settings,
    /// Requests in a second without any proxy: what backend and wrk can do.
    pub(crate) direct_per_second: f64,
    /// Requests in a second of the constant-rate load.
    pub(crate) rate: Option<u64>,
    /// The contestants.
    pub(crate) rows: Vec<Row>,
    /// Those left out.
    pub(crate) skipped: Vec<Skipped>,
    /// What speaks against the numbers.
    pub(crate) warnings: Vec<String>,
}

type Measure = fn(&Turn) -> Option<f64>;

impl Row {
    fn spread(&self, measure: Measure) -> Option<Spread> {
        Spread::of(self.turns.iter().filter_map(measure))
    }

    /// Everything that went wrong in all turns.
    pub(crate) fn errors(&self) -> u64 {
        self.turns.iter().map(Turn::errors).sum()
    }
}

fn closed_cost(turn: &Turn) -> Option<f64> {
    Some(turn.closed.cpu.total_us())
}

fn open_cost(turn: &Turn) -> Option<f64> {
    turn.open.as_ref().map(|open| open.cpu.total_us())
}

impl Report {
    /// Own cost over the floor's in the same round, then the middle of the rounds: what a noisy
    /// machine does to a round it does to both.
    fn ratio(&self, row: &Row, cost: Measure) -> Option<Spread> {
        let floor = self.rows.iter().find(|row| row.name == FLOOR)?;
        Spread::of(row.turns.iter().filter_map(|turn| {
            let same_round = floor.turns.iter().find(|other| other.round == turn.round)?;
            Some(cost(turn)? / cost(same_round)?)
        }))
    }

    /// The tables for people.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = self.write_head(&mut text);
        let _ = self.write_closed(&mut text);
        if self.rate.is_some() {
            let _ = self.write_open(&mut text);
        }
        let _ = self.write_resources(&mut text);
        let _ = self.write_notes(&mut text);
        text
    }

    fn write_head(&self, text: &mut String) -> std::fmt::Result {
        let Settings {
            rounds,
            seconds,
            warmup,
            connections,
            threads,
            pool,
            pinned,
            ..
        } = self.settings;
        let environment = &self.environment;
        writeln!(
            text,
            "{}; {}; {}\n",
            environment.machine(),
            environment.nginx,
            environment.wrk
        )?;
        writeln!(
            text,
            "{rounds} rounds of {seconds} s after {warmup} s of warm-up; {connections} connections, \
             {threads} proxy thread(s), pool {pool}, {}; {} bytes a body. Without a proxy: {:.0} requests/s.",
            if pinned { "pinned CPUs" } else { "no pinning" },
            crate::load::BODY_LENGTH,
            self.direct_per_second
        )?;
        writeln!(
            text,
            "Median (min..max) of the rounds; × floor is the median of the ratios within a round.\n"
        )
    }

    fn write_closed(&self, text: &mut String) -> std::fmt::Result {
        writeln!(
            text,
            "### CPU per request at full speed (closed loop, wrk)\n"
        )?;
        writeln!(
            text,
            "| contestant | CPU µs/request | user | sys | × floor | requests/s | p50 ms | p99 ms | errors |"
        )?;
        writeln!(text, "|---|---:|---:|---:|---:|---:|---:|---:|---:|")?;
        for row in &self.rows {
            writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                row.name,
                cell(row.spread(closed_cost), 1),
                middle(row.spread(|turn| Some(turn.closed.cpu.user_us)), 1),
                middle(row.spread(|turn| Some(turn.closed.cpu.system_us)), 1),
                cell(self.ratio(row, closed_cost), 3),
                cell(row.spread(|turn| Some(turn.closed.load.per_second())), 0),
                middle(
                    row.spread(|turn| Some(turn.closed.load.p50_us as f64 / 1e3)),
                    2
                ),
                middle(
                    row.spread(|turn| Some(turn.closed.load.p99_us as f64 / 1e3)),
                    2
                ),
                row.turns
                    .iter()
                    .map(|turn| turn.closed.load.errors())
                    .sum::<u64>(),
            )?;
        }
        writeln!(text)
    }

    fn write_open(&self, text: &mut String) -> std::fmt::Result {
        writeln!(
            text,
            "### Latency at {} requests/s (open loop, edgewright-bench's own load, corrected for \
             coordinated omission)\n",
            self.rate.unwrap_or_default()
        )?;
        writeln!(
            text,
            "| contestant | p50 ms | p99 ms | p99.9 ms | CPU µs/request | user | sys | × floor | errors | unsent |"
        )?;
        writeln!(text, "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")?;
        for row in &self.rows {
            let loads = || row.turns.iter().filter_map(|turn| turn.open.as_ref());
            let milliseconds = |value: fn(&crate::rate::RateResult) -> u64| {
                Spread::of(loads().map(|open| value(&open.load) as f64 / 1e3))
            };
            writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                row.name,
                cell(milliseconds(|load| load.p50_us), 2),
                cell(milliseconds(|load| load.p99_us), 2),
                cell(milliseconds(|load| load.p999_us), 2),
                cell(row.spread(open_cost), 1),
                middle(Spread::of(loads().map(|open| open.cpu.user_us)), 1),
                middle(Spread::of(loads().map(|open| open.cpu.system_us)), 1),
                cell(self.ratio(row, open_cost), 3),
                loads().map(|open| open.load.errors).sum::<u64>(),
                loads().map(|open| open.load.unsent).sum::<u64>(),
            )?;
        }
        writeln!(text)
    }

    fn write_resources(&self, text: &mut String) -> std::fmt::Result {
        writeln!(
            text,
            "### Connections and descriptors (median of the rounds)\n"
        )?;
        writeln!(
            text,
            "| contestant | new upstream connections | open files before → after | TIME_WAIT before → after |"
        )?;
        writeln!(text, "|---|---:|---:|---:|")?;
        for row in &self.rows {
            let [
                connections,
                files_before,
                files_after,
                wait_before,
                wait_after,
            ] = [
                (|turn| Some(turn.upstream_connections as f64)) as Measure,
                |turn| Some(turn.open_files_before as f64),
                |turn| Some(turn.open_files_after as f64),
                |turn| Some(turn.time_wait_before as f64),
                |turn| Some(turn.time_wait_after as f64),
            ]
            .map(|measure| middle(row.spread(measure), 0));
            writeln!(
                text,
                "| {} | {connections} | {files_before} → {files_after} | {wait_before} → {wait_after} |",
                row.name
            )?;
        }
        writeln!(text)
    }

    fn write_notes(&self, text: &mut String) -> std::fmt::Result {
        for row in &self.rows {
            writeln!(text, "- {}: {}", row.name, row.what)?;
        }
        for skipped in &self.skipped {
            writeln!(text, "- {}: not run, {}", skipped.name, skipped.why)?;
        }
        for warning in &self.warnings {
            writeln!(text, "- **Warning**: {warning}")?;
        }
        Ok(())
    }
}

/// Median and spread, for a table.
pub(crate) fn cell(spread: Option<Spread>, digits: usize) -> String {
    match spread {
        Some(Spread { median, min, max }) => {
            format!("{median:.digits$} ({min:.digits$}..{max:.digits$})")
        }
        None => "–".to_owned(),
    }
}

/// The median alone, for a table.
pub(crate) fn middle(spread: Option<Spread>, digits: usize) -> String {
    spread.map_or_else(
        || "–".to_owned(),
        |spread| format!("{:.digits$}", spread.median),
    )
}

#[cfg(test)]
#[path = "report_tests.rs"]
pub(crate) mod tests;
