//! The result, as tables and as JSON.

use std::fmt::Write;

use serde::Serialize;

use super::latency::Turn;
use super::size::{Memory, Size};
use crate::environment::Environment;
use crate::pace::Pace;
use crate::report::cell;
use crate::stats::Spread;

/// How the run was set up.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Settings {
    /// A round has two turns.
    #[serde(flatten)]
    pub(super) pace: Pace,
    /// Milliseconds from one reload to the next.
    pub(super) every_ms: u64,
    /// Routes of the programs while latency is measured.
    pub(super) routes: usize,
}

/// A whole run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) environment: Environment,
    pub(super) settings: Settings,
    pub(super) turns: Vec<Turn>,
    pub(super) sizes: Vec<Size>,
    pub(super) memory: Memory,
    pub(super) warnings: Vec<String>,
}

impl Report {
    /// Requests that failed in all turns.
    pub(super) fn errors(&self) -> u64 {
        self.turns.iter().map(|turn| turn.whole.errors).sum()
    }

    /// p99 with reloads over p99 without, in each round that has both.
    fn ratios(&self) -> impl Iterator<Item = f64> {
        let p99 = |round: usize, reloading: bool| {
            let mut turns = self.turns.iter();
            let turn = turns.find(|turn| (turn.round, turn.reloading) == (round, reloading))?;
            Some(turn.whole.p99_us? as f64)
        };
        (1..=self.settings.pace.rounds)
            .filter_map(move |round| Some(p99(round, true)? / p99(round, false)?.max(1.0)))
    }

    /// The tables for people.
    pub(super) fn markdown(&self) -> String {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = self.write_head(&mut text);
        let _ = self.write_latency(&mut text);
        let _ = self.write_sizes(&mut text);
        let _ = self.write_memory(&mut text);
        for warning in &self.warnings {
            let _ = writeln!(text, "- Warning: {warning}");
        }
        text
    }

    fn write_head(&self, text: &mut String) -> std::fmt::Result {
        let Settings {
            pace,
            every_ms,
            routes,
        } = self.settings;
        let Pace {
            rounds,
            seconds,
            rate,
            threads,
        } = pace;
        writeln!(
            text,
            "{}; {threads} proxy thread(s)\n",
            self.environment.machine()
        )?;
        writeln!(
            text,
            "{rounds} round(s) of two turns of {seconds} s at {rate} requests/s (open loop) against one process; in one of them a \
             program of {routes} routes is put in the place of another every {every_ms} ms. Median (min..max) of the rounds. A failed \
             request counts as one that was never answered.\n"
        )
    }

    fn write_latency(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "### Latency\n")?;
        writeln!(
            text,
            "| | requests | errors | reloads | p50 ms | p99 ms | p99 × without |"
        )?;
        writeln!(text, "|---|{}", "---:|".repeat(6))?;
        for reloading in [false, true] {
            let turns = || self.turns.iter().filter(|turn| turn.reloading == reloading);
            let milliseconds = |percentile: fn(&Turn) -> Option<u64>| {
                let values = turns().filter_map(percentile).map(|us| us as f64 / 1e3);
                cell(Spread::of(values), 2)
            };
            let ratio = if reloading {
                cell(Spread::of(self.ratios()), 2)
            } else {
                "1".to_owned()
            };
            writeln!(
                text,
                "| {} reloads | {} | {} | {} | {} | {} | {ratio} |",
                if reloading { "with" } else { "without" },
                turns().map(|turn| turn.whole.requests).sum::<u64>(),
                turns().map(|turn| turn.whole.errors).sum::<u64>(),
                turns().map(|turn| turn.reloads).sum::<usize>(),
                milliseconds(|turn| turn.whole.p50_us),
                milliseconds(|turn| turn.whole.p99_us),
            )?;
        }
        for turn in &self.turns {
            for (failure, count) in &turn.failures {
                let Turn {
                    round, reloading, ..
                } = turn;
                writeln!(
                    text,
                    "- round {round}, reloads {reloading}: {count} × {failure}"
                )?;
            }
        }
        writeln!(text)
    }

    fn write_sizes(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "### A reload by itself\n")?;
        writeln!(text, "| routes | reloads | ms | resident MiB afterwards |")?;
        writeln!(text, "|---:|---:|---:|---:|")?;
        for size in &self.sizes {
            writeln!(
                text,
                "| {} | {} | {} | {:.1} |",
                size.routes,
                size.each_ms.len(),
                cell(size.ms, 1),
                size.resident_kib as f64 / 1024.0
            )?;
        }
        writeln!(text)
    }

    fn write_memory(&self, text: &mut String) -> std::fmt::Result {
        let Memory {
            reloads,
            start_kib,
            first_kib,
            last_kib,
        } = self.memory;
        writeln!(text, "### Memory\n")?;
        writeln!(
            text,
            "Resident: {:.1} MiB at the start, {:.1} MiB after 100 reloads, {:.1} MiB after {reloads} ({:+.1} %).\n",
            start_kib as f64 / 1024.0,
            first_kib as f64 / 1024.0,
            last_kib as f64 / 1024.0,
            (last_kib as f64 / first_kib.max(1) as f64 - 1.0) * 100.0
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use crate::outage::windows::Stretch;

    fn turn(round: usize, reloading: bool, p99_ms: u64) -> Turn {
        Turn {
            round,
            reloading,
            reloads: if reloading { 50 } else { 0 },
            whole: Stretch {
                requests: 5000,
                errors: 0,
                p50_us: Some(500),
                p99_us: Some(p99_ms * 1000),
            },
            failures: BTreeMap::new(),
        }
    }

    fn report() -> Report {
        Report {
            environment: Environment::capture(Path::new("nginx"), Path::new("wrk")),
            settings: Settings {
                pace: Pace {
                    rounds: 2,
                    seconds: 10,
                    rate: 500,
                    threads: 1,
                },
                every_ms: 200,
                routes: 200,
            },
            turns: vec![
                turn(1, false, 2),
                turn(1, true, 3),
                turn(2, true, 8),
                turn(2, false, 4),
            ],
            sizes: vec![Size {
                routes: 10,
                each_ms: vec![1.0, 2.0, 4.0],
                ms: Spread::of([1.0, 2.0, 4.0]),
                resident_kib: 10_240,
            }],
            memory: Memory {
                reloads: 1000,
                start_kib: 10_240,
                first_kib: 20_480,
                last_kib: 21_504,
            },
            warnings: vec!["of the test".to_owned()],
        }
    }

    #[test]
    fn turns_are_compared_within_their_round() {
        let text = report().markdown();
        let line = "| with reloads | 10000 | 0 | 100 | 0.50 (0.50..0.50) | 5.50 (3.00..8.00) | 1.75 (1.50..2.00) |";
        assert!(text.contains(line), "{text}");
        assert!(
            text.contains("| 10 | 3 | 2.0 (1.0..4.0) | 10.0 |"),
            "{text}"
        );
        let line =
            "10.0 MiB at the start, 20.0 MiB after 100 reloads, 21.0 MiB after 1000 (+5.0 %)";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("Warning: of the test"), "{text}");
    }

    #[test]
    fn what_failed_is_named() {
        let mut report = report();
        report.turns[1].whole.errors = 3;
        report.turns[1].failures = BTreeMap::from([("status 502".to_owned(), 3)]);
        assert_eq!(report.errors(), 3);
        let text = report.markdown();
        assert!(
            text.contains("round 1, reloads true: 3 × status 502"),
            "{text}"
        );
    }
}
