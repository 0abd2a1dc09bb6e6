//! What all turns of a contestant come to.

use std::collections::BTreeMap;

use serde::Serialize;

use super::report::Row;
use super::schedule::Phase;
use super::turn::{Reached, Turn};
use super::windows::{Recovery, Stretch, recovery};
use crate::stats::Spread;

/// How many times the usual 99th percentile still counts as normal.
const NORMAL: f64 = 2.0;
/// The phases that begin with an event.
pub(super) const EVENTS: [Phase; 4] = [Phase::Killed, Phase::Back, Phase::Slow, Phase::Normal];

/// A contestant's result. A value that is infinite in a round (no answer, never normal again) counts as
/// larger than any other; in JSON it is null.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    /// Its name.
    pub(super) name: &'static str,
    /// Requests of all rounds.
    pub(super) requests: u64,
    /// Failed ones of all rounds.
    pub(super) errors: u64,
    /// How often what went wrong, in all rounds.
    pub(super) failures: BTreeMap<String, u64>,
    /// Failed requests of 100, by rounds.
    pub(super) error_percent: Option<Spread>,
    /// Milliseconds before anything was harmed.
    pub(super) p50_before_ms: Option<Spread>,
    /// The 99th percentile then.
    pub(super) p99_before_ms: Option<Spread>,
    /// Health checks that the targets got in a second, all three together.
    pub(super) checks_per_second: Option<Spread>,
    /// What happened after each event.
    pub(super) events: Vec<AfterEvent>,
    /// Who got the requests in each phase.
    pub(super) reached: Vec<ReachedIn>,
}

/// What happened between an event and the next one.
#[derive(Debug, Serialize)]
pub(super) struct AfterEvent {
    /// The phase that the event began.
    pub(super) phase: Phase,
    /// Failed requests of all rounds.
    pub(super) errors: u64,
    /// Seconds until the 99th percentile was normal again.
    pub(super) normal_after_s: Option<Spread>,
    /// Windows that weren't normal after that.
    pub(super) relapses: Option<Spread>,
    /// Windows in the phase.
    pub(super) windows: usize,
    /// The 99th percentile of each half second, in milliseconds.
    pub(super) p99_ms: Vec<Option<Spread>>,
}

/// Who got the requests of a phase, the median of the rounds.
#[derive(Debug, Serialize)]
pub(super) struct ReachedIn {
    /// The phase.
    pub(super) phase: Phase,
    /// The target that is killed.
    pub(super) killed: f64,
    /// The one that becomes slow.
    pub(super) slowed: f64,
    /// The third.
    pub(super) other: f64,
}

/// Up to where a 99th percentile is normal, in microseconds: twice the median, over all turns of all
/// contestants, of the 99th percentile before anything was harmed. One limit for everyone: who is slower
/// from the start must not have more time for it. `None` when there was no answer.
pub(super) fn limit_us(rows: &[Row]) -> Option<u64> {
    let before = rows.iter().flat_map(|row| &row.turns);
    let median = Spread::of(before.map(|turn| p99_ms(whole(turn, Phase::Before))))?.median;
    median
        .is_finite()
        .then_some((median * 1e3 * NORMAL).round() as u64)
}

impl Summary {
    /// Sums a contestant up; `limit_us` is what counts as normal.
    pub(super) fn of(row: &Row, limit_us: u64) -> Self {
        let spread = |value: &dyn Fn(&Turn) -> f64| Spread::of(row.turns.iter().map(value));
        let mut failures = BTreeMap::new();
        for (name, count) in row.turns.iter().flat_map(|turn| &turn.failures) {
            *failures.entry(name.clone()).or_default() += count;
        }
        Self {
            name: row.name,
            requests: row.turns.iter().map(Turn::requests).sum(),
            errors: row.turns.iter().map(Turn::errors).sum(),
            failures,
            error_percent: spread(&|turn| {
                turn.errors() as f64 * 100.0 / turn.requests().max(1) as f64
            }),
            p50_before_ms: spread(&|turn| {
                milliseconds(whole(turn, Phase::Before).and_then(|stretch| stretch.p50_us))
            }),
            p99_before_ms: spread(&|turn| p99_ms(whole(turn, Phase::Before))),
            checks_per_second: spread(&|turn| turn.checks as f64 / turn.seconds),
            events: EVENTS
                .map(|phase| AfterEvent::of(row, phase, limit_us))
                .into(),
            reached: Phase::ALL.map(|phase| ReachedIn::of(row, phase)).into(),
        }
    }
}

impl AfterEvent {
    fn of(row: &Row, phase: Phase, limit_us: u64) -> Self {
        let phases: Vec<_> = row
            .turns
            .iter()
            .filter_map(|turn| turn.phase(phase))
            .collect();
        let found: Vec<Recovery> = phases
            .iter()
            .map(|result| recovery(&result.windows, limit_us))
            .collect();
        let windows = phases.first().map_or(0, |result| result.windows.len());
        Self {
            phase,
            errors: phases.iter().map(|result| result.whole.errors).sum(),
            normal_after_s: Spread::of(
                found.iter().map(|one| one.after_s.unwrap_or(f64::INFINITY)),
            ),
            relapses: Spread::of(found.iter().map(|one| one.relapses as f64)),
            windows,
            p99_ms: (0..windows)
                .map(|index| {
                    Spread::of(
                        phases
                            .iter()
                            .map(|result| p99_ms(result.windows.get(index))),
                    )
                })
                .collect(),
        }
    }
}

impl ReachedIn {
    fn of(row: &Row, phase: Phase) -> Self {
        let median = |count: fn(Reached) -> u64| {
            let counts = row
                .turns
                .iter()
                .filter_map(|turn| Some(count(turn.phase(phase)?.reached) as f64));
            Spread::of(counts).map_or(0.0, |spread| spread.median)
        };
        Self {
            phase,
            killed: median(|reached| reached.killed),
            slowed: median(|reached| reached.slowed),
            other: median(|reached| reached.other),
        }
    }
}

fn whole(turn: &Turn, phase: Phase) -> Option<&Stretch> {
    turn.phase(phase).map(|result| &result.whole)
}

fn p99_ms(stretch: Option<&Stretch>) -> f64 {
    milliseconds(stretch.and_then(|stretch| stretch.p99_us))
}

fn milliseconds(microseconds: Option<u64>) -> f64 {
    microseconds.map_or(f64::INFINITY, |value| value as f64 / 1e3)
}
