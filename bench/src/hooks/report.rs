//! The result, as tables and as JSON.

use std::fmt::Write;

use serde::Serialize;

use super::counted::Counted;
use super::cpu::{Timed, Turn};
use super::end_to_end::EndToEnd;
use super::job::Way;
use super::sharing::{Sharing, Site};
use super::threads::Scaled;
use super::work::Work;
use crate::environment::Environment;
use crate::report::{cell, middle};
use crate::stats::Spread;

/// What an interpreted hook may cost at most, in nanoseconds of CPU time.
const BOUND_NS: f64 = 2500.0;

/// How the run was set up.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Settings {
    /// Rounds.
    pub(crate) rounds: usize,
    /// Calls in a turn.
    pub(crate) calls: u64,
    /// Calls whose instructions are counted.
    pub(crate) counted: u64,
    /// Calls of each of two threads that are traced.
    pub(crate) traced: u64,
    /// Threads at once.
    pub(crate) threads: usize,
}

/// A whole run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Where.
    pub(crate) environment: Environment,
    /// How.
    pub(crate) settings: Settings,
    /// CPU time and bytes of a call.
    pub(crate) timed: Vec<Timed>,
    /// Instructions and allocations of a call; empty without valgrind.
    pub(crate) counted: Vec<Counted>,
    /// One thread and several; empty with one.
    pub(crate) scaled: Vec<Scaled>,
    /// What two threads share; empty without valgrind.
    pub(crate) sharing: Vec<Sharing>,
    /// Through sockets, if asked for.
    pub(crate) end_to_end: Option<EndToEnd>,
    /// What speaks against the numbers.
    pub(crate) warnings: Vec<String>,
}

impl Timed {
    fn spread(&self, measure: impl Fn(&Turn) -> f64) -> Option<Spread> {
        Spread::of(self.turns.iter().map(measure))
    }

    fn cpu(&self) -> Option<Spread> {
        self.spread(|turn| turn.cpu_ns)
    }

    /// CPU time over that of `other` in the same round.
    fn over(&self, other: &Self) -> Option<Spread> {
        Spread::of(self.turns.iter().filter_map(|turn| {
            let same_round = other.turns.iter().find(|one| one.round == turn.round)?;
            Some(turn.cpu_ns / same_round.cpu_ns)
        }))
    }
}

impl Report {
    /// The tables for people.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = self.write_head(&mut text);
        let _ = self.write_costs(&mut text);
        if !self.scaled.is_empty() {
            let _ = self.write_threads(&mut text);
        }
        if !self.sharing.is_empty() {
            let _ = self.write_sharing(&mut text);
        }
        if let Some(found) = &self.end_to_end {
            let _ = write_end_to_end(&mut text, found);
        }
        let _ = self.write_notes(&mut text);
        text
    }

    fn write_head(&self, text: &mut String) -> std::fmt::Result {
        let environment = &self.environment;
        writeln!(
            text,
            "{}; {} rounds of {} calls, over requests with 8 header fields. Median \
             (min..max) of the rounds; × is the median of the ratios within a round.\n",
            environment.machine(),
            self.settings.rounds,
            self.settings.calls
        )
    }

    fn write_costs(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "### What one call of a hook costs\n")?;
        writeln!(
            text,
            "| hook | how | CPU ns | × native | × `call_fn` | instructions | allocations | bytes |"
        )?;
        writeln!(text, "|---|---|---:|---:|---:|---:|---:|---:|")?;
        for row in &self.timed {
            let same_job = |way| {
                let mut rows = self.timed.iter();
                rows.find(|other| other.job == row.job && other.way == way)
            };
            let times = |way| middle(same_job(way).and_then(|other| row.over(other)), 2);
            let mut counted = self.counted.iter();
            let counted = counted.find(|one| one.job == row.job && one.way == row.way);
            writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {} |",
                row.job.name(),
                row.way.name(),
                cell(row.cpu(), 0),
                times(Way::Native),
                times(Way::CallFn),
                number(counted.map(|one| one.instructions), 0),
                number(counted.map(|one| one.allocations), 1),
                middle(row.spread(|turn| turn.bytes), 0),
            )?;
        }
        writeln!(text)?;
        for row in self.interpreted() {
            let Some(cpu) = row.cpu() else { continue };
            writeln!(
                text,
                "- {} by edgewright: {:.2} µs of the {:.1} µs that a hook may cost{}",
                row.job.name(),
                cpu.median / 1e3,
                BOUND_NS / 1e3,
                if cpu.median > BOUND_NS {
                    ": **too much**"
                } else {
                    ""
                }
            )?;
        }
        writeln!(text)
    }

    fn interpreted(&self) -> impl Iterator<Item = &Timed> {
        self.timed.iter().filter(|row| row.way == Way::Edgewright)
    }

    fn write_threads(&self, text: &mut String) -> std::fmt::Result {
        let threads = self.settings.threads;
        writeln!(text, "### {threads} threads, each on a CPU of its own\n")?;
        writeln!(
            text,
            "| what | calls/s, 1 thread | {threads} threads | throughput × | × of the first control | CPU ns, 1 thread | CPU per call × |"
        )?;
        writeln!(text, "|---|---:|---:|---:|---:|---:|---:|")?;
        let control = self.scaled.iter().find(|row| row.work == Work::Spin);
        for row in &self.scaled {
            let pairs = || row.pairs.iter();
            writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} |",
                row.work.name(),
                middle(Spread::of(pairs().map(|pair| pair.single.per_second)), 0),
                middle(Spread::of(pairs().map(|pair| pair.many.per_second)), 0),
                cell(row.throughput(), 2),
                cell(control.and_then(|control| row.against(control)), 2),
                middle(Spread::of(pairs().map(|pair| pair.single.cpu_ns)), 0),
                cell(row.cpu(), 2),
            )?;
        }
        writeln!(text)
    }

    fn write_sharing(&self, text: &mut String) -> std::fmt::Result {
        writeln!(
            text,
            "### What two threads share in a call (lackey, {} calls of each)\n",
            self.settings.traced
        )?;
        writeln!(
            text,
            "| what | cache lines written and shared | atomic read-modify-writes |"
        )?;
        writeln!(text, "|---|---:|---:|")?;
        for row in &self.sharing {
            let atomics = row.atomics.as_deref();
            writeln!(
                text,
                "| {} | {} | {} |",
                row.work.name(),
                row.shared_lines,
                number(atomics.map(per_call), 1),
            )?;
        }
        writeln!(text)?;
        for row in &self.sharing {
            write_sites(text, row.work, "writes of shared lines", &row.writes)?;
            let atomics = row.atomics.as_deref().unwrap_or_default();
            write_sites(text, row.work, "atomic", atomics)?;
        }
        writeln!(text)
    }

    fn write_notes(&self, text: &mut String) -> std::fmt::Result {
        for warning in &self.warnings {
            writeln!(text, "- **Warning**: {warning}")?;
        }
        Ok(())
    }
}

fn write_end_to_end(text: &mut String, found: &EndToEnd) -> std::fmt::Result {
    writeln!(
        text,
        "### What a request costs more with a script (through sockets)\n"
    )?;
    writeln!(text, "| job | difference | CPU µs/request | instructions |")?;
    writeln!(text, "|---|---|---:|---:|")?;
    for extra in &found.extras {
        writeln!(
            text,
            "| {} | {} less {} | {} | {} |",
            extra.job,
            extra.with,
            extra.without,
            cell(extra.cpu_us, 2),
            number(extra.instructions, 0)
        )?;
    }
    writeln!(text)?;
    for skipped in &found.skipped {
        writeln!(text, "- {}: not run, {}", skipped.name, skipped.why)?;
    }
    Ok(())
}

fn write_sites(text: &mut String, work: Work, what: &str, sites: &[Site]) -> std::fmt::Result {
    if sites.is_empty() {
        return Ok(());
    }
    let sites = sites
        .iter()
        .map(|site| format!("{:.1} × `{}`", site.per_call, site.place));
    let sites: Vec<_> = sites.collect();
    writeln!(text, "- {}, {what}: {}", work.name(), sites.join(", "))
}

/// What all of them do in a call.
fn per_call(sites: &[Site]) -> f64 {
    // An empty `sum` of floating-point numbers is -0.
    sites.iter().fold(0.0, |sum, site| sum + site.per_call)
}

pub(crate) fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
