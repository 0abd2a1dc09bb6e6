//! The result, as tables and as JSON.

use std::fmt::Write;

use serde::Serialize;

use super::counted::Counted;
use super::end_to_end::{Row, Turn};
use super::job::{Job, Way};
use super::time::Timed;
use crate::environment::Environment;
use crate::hooks::number;
use crate::peers::Side;
use crate::report::{Skipped, cell, middle};
use crate::stats::Spread;

/// A whole run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Where.
    pub(crate) environment: Environment,
    /// How, in words.
    pub(crate) how: String,
    /// CPU time of a call in this process; empty with `--end-to-end`.
    pub(crate) timed: Vec<Timed>,
    /// Instructions of a call in this process; empty without valgrind.
    pub(crate) counted: Vec<Counted>,
    /// Through proxies.
    pub(crate) end_to_end: Vec<Row>,
    /// Proxies that are left out.
    pub(crate) skipped: Vec<Skipped>,
    /// What speaks against the numbers.
    pub(crate) warnings: Vec<String>,
}

impl Timed {
    fn spread(&self) -> Option<Spread> {
        Spread::of(self.cpu_ns.iter().copied())
    }
}

impl Row {
    fn spread(&self, measure: impl Fn(&Turn) -> f64) -> Option<Spread> {
        Spread::of(self.turns.iter().map(measure))
    }
}

impl Report {
    /// The tables for people.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = writeln!(text, "{}; {}\n", self.environment.machine(), self.how);
        if !self.timed.is_empty() {
            let _ = self.write_calls(&mut text);
        }
        if !self.end_to_end.is_empty() {
            let _ = self.write_requests(&mut text);
        }
        for Skipped { name, why } in &self.skipped {
            let _ = writeln!(text, "- {name}: not run, {why}");
        }
        for warning in &self.warnings {
            let _ = writeln!(text, "- **Warning**: {warning}");
        }
        text
    }

    fn write_calls(&self, text: &mut String) -> std::fmt::Result {
        writeln!(
            text,
            "| job | native ns | compiled ns | interpreted ns | compiled: × faster | instructions: native | compiled | interpreted |"
        )?;
        writeln!(text, "|---|---:|---:|---:|---:|---:|---:|---:|")?;
        for job in jobs(self.timed.iter().map(|row| row.job)) {
            let timed = |way| {
                let mut rows = self.timed.iter();
                rows.find(|row| row.job == job && row.way == way)
            };
            let cpu = |way| cell(timed(way).and_then(Timed::spread), 0);
            let instructions = |way| {
                let mut rows = self.counted.iter();
                let found = rows.find(|row| row.job == job && row.way == way);
                number(found.map(|row| row.instructions), 0)
            };
            // Rounds are told apart by their place.
            let faster =
                timed(Way::Interpreted)
                    .zip(timed(Way::Compiled))
                    .and_then(|(slow, fast)| {
                        let pairs = slow.cpu_ns.iter().zip(&fast.cpu_ns);
                        Spread::of(pairs.map(|(slow, fast)| slow / fast))
                    });
            writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {} |",
                job.name(),
                cpu(Way::Native),
                cpu(Way::Compiled),
                cpu(Way::Interpreted),
                middle(faster, 1),
                instructions(Way::Native),
                instructions(Way::Compiled),
                instructions(Way::Interpreted),
            )?;
        }
        writeln!(text)
    }

    fn write_requests(&self, text: &mut String) -> std::fmt::Result {
        let rows = |side| self.end_to_end.iter().filter(move |row| row.side == side);
        for side in Side::ALL {
            let plain = rows(side).flat_map(|row| row.turns.iter().map(|turn| turn.plain_us));
            let plain = Spread::of(plain);
            if plain.is_some() {
                writeln!(
                    text,
                    "- {} without a hook: {} CPU µs/request",
                    side.name(),
                    cell(plain, 1)
                )?;
            }
        }
        writeln!(
            text,
            "\n| job | edgewright µs | nginx-Lua µs | ratio | edgewright instructions | nginx-Lua instructions | ratio |"
        )?;
        writeln!(text, "|---|---:|---:|---:|---:|---:|---:|")?;
        for job in jobs(self.end_to_end.iter().map(|row| row.job)) {
            let row = |side| rows(side).find(|row| row.job == job);
            let more = |side| row(side).and_then(|row| row.spread(|turn| turn.more_us));
            let median = |side| more(side).map(|spread| spread.median);
            let instructions = |side| row(side).and_then(|row| row.instructions);
            let ([own, lua], [own_count, lua_count]) =
                (Side::ALL.map(median), Side::ALL.map(instructions));
            writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} |",
                job.name(),
                cell(more(Side::Edgewright), 2),
                cell(more(Side::NginxLua), 2),
                number(ratio(own, lua), 2),
                number(own_count, 0),
                number(lua_count, 0),
                number(ratio(own_count, lua_count), 2),
            )?;
        }
        writeln!(text)
    }
}

/// Nothing is twice as much as nothing, or as what came out below it.
fn ratio(own: Option<f64>, other: Option<f64>) -> Option<f64> {
    let (own, other) = (own?, other?);
    (own > 0.0 && other > 0.0).then(|| own / other)
}

/// Each of them once, in the order of the report.
fn jobs(found: impl Iterator<Item = Job>) -> Vec<Job> {
    let found: Vec<_> = found.collect();
    let mut all = Job::ALL.to_vec();
    all.retain(|job| found.contains(job));
    all
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn report() -> Report {
        let nowhere = Path::new("/nowhere");
        Report {
            environment: Environment::capture(nowhere, nowhere),
            how: "3 rounds".to_owned(),
            timed: Vec::new(),
            counted: Vec::new(),
            end_to_end: Vec::new(),
            skipped: Vec::new(),
            warnings: vec!["busy".to_owned()],
        }
    }

    #[test]
    fn calls_have_a_row_for_each_job() {
        let timed = |way, cpu_ns: [f64; 3]| Timed {
            job: Job::Regex,
            way,
            cpu_ns: cpu_ns.to_vec(),
        };
        let text = Report {
            timed: vec![
                timed(Way::Compiled, [100.0, 110.0, 250.0]),
                timed(Way::Interpreted, [400.0, 450.0, 500.0]),
            ],
            counted: vec![Counted {
                job: Job::Regex,
                way: Way::Compiled,
                instructions: 1234.4,
                allocations: 2.0,
            }],
            ..report()
        }
        .markdown();
        let row =
            "| regex with a capture | – | 110 (100..250) | 450 (400..500) | 4.0 | – | 1234 | – |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("**Warning**: busy"), "{text}");
        assert!(!text.contains("nginx-Lua"), "{text}");
    }

    #[test]
    fn requests_compare_both_proxies() {
        let row = |job, side, more: [f64; 3], instructions| Row {
            job,
            side,
            turns: more
                .map(|more_us| Turn {
                    plain_us: 20.0,
                    more_us,
                })
                .to_vec(),
            instructions,
        };
        let text = Report {
            end_to_end: vec![
                row(Job::Hmac, Side::Edgewright, [0.9, 1.0, 1.2], Some(3000.0)),
                row(Job::Hmac, Side::NginxLua, [2.0, 4.0, 5.0], Some(6000.0)),
                row(Job::Empty, Side::Edgewright, [-0.1, -0.2, 0.1], None),
                row(Job::Empty, Side::NginxLua, [0.8, 0.9, 1.0], None),
            ],
            ..report()
        }
        .markdown();
        for line in [
            "- edgewright without a hook: 20.0 (20.0..20.0) CPU µs/request",
            "| empty hook | -0.10 (-0.20..0.10) | 0.90 (0.80..1.00) | – | – | – | – |",
            "| HMAC-SHA256, compared | 1.00 (0.90..1.20) | 4.00 (2.00..5.00) | 0.25 | 3000 | 6000 | 0.50 |",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
