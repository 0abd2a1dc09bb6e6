//! The result, as tables and as JSON.

use std::fmt::Write;

use serde::Serialize;

use super::schedule::Phase;
use super::summary::{self, AfterEvent, EVENTS, Summary};
use super::turn::Turn;
use super::windows::WINDOW;
use crate::environment::Environment;
use crate::pace::Pace;
use crate::report::Skipped;
use crate::stats::Spread;

/// Windows after an event that have a column of their own: five seconds.
const COLUMNS: usize = 10;

/// How the run was set up.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Settings {
    #[serde(flatten)]
    pub(super) pace: Pace,
    /// Most requests that wait at once.
    pub(super) connections: usize,
    /// Milliseconds that a target takes.
    pub(super) delay_ms: u64,
    /// How many times longer the slow one takes.
    pub(super) slow_factor: u32,
}

/// A contestant's turns.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    /// Its name.
    pub(super) name: &'static str,
    /// How it was set up.
    pub(super) what: &'static str,
    /// One a round.
    pub(super) turns: Vec<Turn>,
}

/// A whole run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    environment: Environment,
    haproxy: String,
    settings: Settings,
    /// Up to where a 99th percentile is normal; `None` when nobody gave an answer.
    normal_up_to_ms: Option<f64>,
    summaries: Vec<Summary>,
    rows: Vec<Row>,
    skipped: Vec<Skipped>,
    warnings: Vec<String>,
}

impl Report {
    /// Sums the turns up.
    pub(super) fn new(
        environment: Environment,
        haproxy: String,
        settings: Settings,
        rows: Vec<Row>,
        skipped: Vec<Skipped>,
        warnings: Vec<String>,
    ) -> Self {
        let limit_us = summary::limit_us(&rows);
        Self {
            environment,
            haproxy,
            settings,
            normal_up_to_ms: limit_us.map(|limit| limit as f64 / 1e3),
            summaries: rows
                .iter()
                .map(|row| Summary::of(row, limit_us.unwrap_or_default()))
                .collect(),
            rows,
            skipped,
            warnings,
        }
    }

    /// The tables for people.
    pub(super) fn markdown(&self) -> String {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = self.write_head(&mut text);
        let _ = self.write_summary(&mut text);
        let _ = self.write_recovery(&mut text);
        for (position, phase) in EVENTS.into_iter().enumerate() {
            let _ = self.write_windows(&mut text, position, phase);
        }
        let _ = self.write_reached(&mut text);
        let _ = self.write_notes(&mut text);
        text
    }

    fn write_head(&self, text: &mut String) -> std::fmt::Result {
        let environment = &self.environment;
        let Settings {
            pace,
            connections,
            delay_ms,
            slow_factor,
        } = self.settings;
        let Pace {
            rounds,
            seconds,
            rate,
            threads,
        } = pace;
        writeln!(
            text,
            "{}; {}; {}\n",
            environment.machine(),
            environment.nginx,
            self.haproxy
        )?;
        writeln!(
            text,
            "{rounds} round(s) of {seconds} s at {rate} requests/s (open loop, at most {connections} waiting); \
             {threads} proxy thread(s); three targets that take {delay_ms} ms, the slow one {} ms.",
            delay_ms * u64::from(slow_factor)
        )?;
        writeln!(
            text,
            "Median (min..max) of the rounds. A failed request counts as one that was never answered. \
             Normal is a p99 of half a second up to {}: twice the median of all turns before the first event.\n",
            self.normal_up_to_ms.map_or_else(
                || "nothing (nobody answered)".to_owned(),
                |limit| format!("{limit:.1} ms")
            )
        )
    }

    fn write_summary(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "### Errors, and latency before anything was harmed\n")?;
        writeln!(
            text,
            "| contestant | requests | errors | error rate % | after {} | p50 ms | p99 ms | health checks/s |",
            EVENTS.map(Phase::event).join(" | after ")
        )?;
        writeln!(text, "|---|{}", "---:|".repeat(10))?;
        for summary in &self.summaries {
            let errors: Vec<_> = summary
                .events
                .iter()
                .map(|event| event.errors.to_string())
                .collect();
            writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {} |",
                summary.name,
                summary.requests,
                summary.errors,
                cell(summary.error_percent, 3, "–"),
                errors.join(" | "),
                cell(summary.p50_before_ms, 1, "∞"),
                cell(summary.p99_before_ms, 1, "∞"),
                cell(summary.checks_per_second, 1, "–"),
            )?;
        }
        writeln!(text)
    }

    fn write_recovery(&self, text: &mut String) -> std::fmt::Result {
        writeln!(
            text,
            "### Seconds until the p99 is normal for two seconds; half seconds that weren't after that\n"
        )?;
        writeln!(
            text,
            "| contestant | {} |",
            EVENTS.map(Phase::event).join(" | ")
        )?;
        writeln!(text, "|---|{}", "---:|".repeat(EVENTS.len()))?;
        for summary in &self.summaries {
            let cells: Vec<_> = summary.events.iter().map(recovery_cell).collect();
            writeln!(text, "| {} | {} |", summary.name, cells.join(" | "))?;
        }
        writeln!(text)
    }

    fn write_windows(&self, text: &mut String, position: usize, phase: Phase) -> std::fmt::Result {
        let events: Vec<(&str, &AfterEvent)> = self
            .summaries
            .iter()
            .filter_map(|summary| Some((summary.name, summary.events.get(position)?)))
            .collect();
        let count = events
            .iter()
            .map(|(_, event)| event.windows.min(COLUMNS))
            .max()
            .unwrap_or_default();
        let ends: Vec<String> = (1..=count)
            .map(|number| format!("{:.1}", (WINDOW * number as u32).as_secs_f64()))
            .collect();
        writeln!(
            text,
            "### p99 ms of each half second: {} (the column is its end, in seconds after the event)\n",
            phase.event()
        )?;
        writeln!(text, "| contestant | {} | worst later |", ends.join(" | "))?;
        writeln!(text, "|---|{}", "---:|".repeat(count + 1))?;
        for (name, event) in events {
            let (shown, later) = event.p99_ms.split_at(count.min(event.p99_ms.len()));
            let cells: Vec<_> = shown.iter().map(|one| median(*one, 1)).collect();
            let worst = later.iter().flatten().map(|spread| spread.median);
            let worst = worst.max_by(f64::total_cmp);
            writeln!(
                text,
                "| {name} | {} | {} |",
                cells.join(" | "),
                worst.map_or_else(|| "–".to_owned(), |value| number(value, 1, "∞"))
            )?;
        }
        writeln!(text)
    }

    fn write_reached(&self, text: &mut String) -> std::fmt::Result {
        writeln!(
            text,
            "### Requests that the targets got, retries included: the killed / the slowed / the third (medians)\n"
        )?;
        writeln!(
            text,
            "| contestant | {} |",
            Phase::ALL.map(Phase::event).join(" | ")
        )?;
        writeln!(text, "|---|{}", "---:|".repeat(Phase::ALL.len()))?;
        for summary in &self.summaries {
            let cells: Vec<_> = summary
                .reached
                .iter()
                .map(|one| format!("{:.0} / {:.0} / {:.0}", one.killed, one.slowed, one.other))
                .collect();
            writeln!(text, "| {} | {} |", summary.name, cells.join(" | "))?;
        }
        writeln!(text)
    }

    fn write_notes(&self, text: &mut String) -> std::fmt::Result {
        for row in &self.rows {
            writeln!(text, "- {}: {}", row.name, row.what)?;
        }
        for summary in self.summaries.iter().filter(|one| one.errors > 0) {
            let failures: Vec<_> = summary
                .failures
                .iter()
                .map(|(name, count)| format!("{count} × {name}"))
                .collect();
            writeln!(text, "- {} failed: {}", summary.name, failures.join(", "))?;
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

fn recovery_cell(event: &AfterEvent) -> String {
    format!(
        "{}; {} of {}",
        cell(event.normal_after_s, 1, "never"),
        median(event.relapses, 0),
        event.windows
    )
}

/// A number, or the word for one that is infinite.
fn number(value: f64, digits: usize, infinite: &str) -> String {
    if value.is_finite() {
        format!("{value:.digits$}")
    } else {
        infinite.to_owned()
    }
}

fn cell(spread: Option<Spread>, digits: usize, infinite: &str) -> String {
    match spread {
        Some(Spread { median, min, max }) => {
            let [median, min, max] =
                [median, min, max].map(|value| number(value, digits, infinite));
            format!("{median} ({min}..{max})")
        }
        None => "–".to_owned(),
    }
}

fn median(spread: Option<Spread>, digits: usize) -> String {
    spread.map_or_else(
        || "–".to_owned(),
        |spread| number(spread.median, digits, "∞"),
    )
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
