//! Latency by half seconds, and when it is normal again.
//!
//! A request that failed counts as one whose answer never came: a proxy can't look fast by failing.

use std::time::Duration;

use serde::Serialize;

use super::load::Sample;
use crate::stats::percentile;

/// Length of a window.
pub(super) const WINDOW: Duration = Duration::from_millis(500);
/// So many windows in a row must be normal: two seconds.
pub(super) const CALM: usize = 4;
/// The latency of a request that failed.
const NEVER: u64 = u64::MAX;

/// What became of the requests of a stretch of time. Which stretch a request belongs to goes by when it was due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Stretch {
    /// Requests that were due.
    pub(crate) requests: u64,
    /// Those of them that failed.
    pub(crate) errors: u64,
    /// Half of the answers came no later after the request was due, in microseconds; `None` when that
    /// many never came.
    pub(crate) p50_us: Option<u64>,
    /// 99 of 100.
    pub(crate) p99_us: Option<u64>,
}

/// What happened after an event.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Recovery {
    /// Seconds from the event to the first window that is normal and has [`CALM`] of them in a row;
    /// `None` when there is none before the next event.
    pub(super) after_s: Option<f64>,
    /// Windows that were not normal after that; all that weren't, when it never was.
    pub(super) relapses: usize,
}

impl Stretch {
    /// The sum of these samples.
    pub(crate) fn of<'a>(samples: impl Iterator<Item = &'a Sample>) -> Self {
        let mut latencies: Vec<u64> = samples
            .map(|sample| match sample.failure {
                None => sample.latency_us,
                Some(_) => NEVER,
            })
            .collect();
        latencies.sort_unstable();
        let at = |per_mille| percentile(&latencies, per_mille).filter(|value| *value != NEVER);
        Self {
            requests: latencies.len() as u64,
            errors: latencies.iter().filter(|value| **value == NEVER).count() as u64,
            p50_us: at(500),
            p99_us: at(990),
        }
    }

    /// Whether 99 of 100 answers were there within `limit_us`. Without a request nothing is known, so
    /// it isn't.
    fn is_normal(&self, limit_us: u64) -> bool {
        self.p99_us.is_some_and(|p99| p99 <= limit_us)
    }
}

/// The windows of a phase from `start` to `end`. The last one takes what is too short for another.
pub(super) fn windows(samples: &[Sample], start: Duration, end: Duration) -> Vec<Stretch> {
    let length = end.saturating_sub(start);
    let count = (length.as_micros() / WINDOW.as_micros()).max(1) as usize;
    (0..count)
        .map(|index| {
            let from = start + WINDOW * index as u32;
            let to = if index + 1 == count {
                end
            } else {
                from + WINDOW
            };
            Stretch::of(between(samples, from, to))
        })
        .collect()
}

/// The samples due from `start` on and before `end`.
pub(super) fn between(
    samples: &[Sample],
    start: Duration,
    end: Duration,
) -> impl Iterator<Item = &Sample> {
    samples
        .iter()
        .filter(move |sample| (start..end).contains(&sample.due))
}

/// When the windows after an event are normal again, that is within `limit_us`.
pub(super) fn recovery(windows: &[Stretch], limit_us: u64) -> Recovery {
    let normal: Vec<bool> = windows
        .iter()
        .map(|window| window.is_normal(limit_us))
        .collect();
    let calm = normal
        .windows(CALM)
        .position(|row| row.iter().all(|normal| *normal));
    let rest = &normal[calm.unwrap_or_default()..];
    Recovery {
        after_s: calm.map(|index| (WINDOW * index as u32).as_secs_f64()),
        relapses: rest.iter().filter(|normal| !**normal).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outage::load::Failure;

    fn sample(due_ms: u64, latency_us: u64) -> Sample {
        Sample {
            due: Duration::from_millis(due_ms),
            latency_us,
            failure: None,
        }
    }

    fn failed(due_ms: u64) -> Sample {
        Sample {
            failure: Some(Failure::Status(502)),
            ..sample(due_ms, 1)
        }
    }

    #[test]
    fn a_failure_is_slower_than_any_answer() {
        // Two of hundred, though they came at once: the 99th is one of them.
        let samples: Vec<_> = (0..98)
            .map(|_| sample(0, 5000))
            .chain([failed(0), failed(0)])
            .collect();
        let stretch = Stretch::of(samples.iter());
        assert_eq!((stretch.requests, stretch.errors), (100, 2));
        assert_eq!((stretch.p50_us, stretch.p99_us), (Some(5000), None));
        // One of hundred is what the 99th percentile leaves out.
        let stretch = Stretch::of(samples[..99].iter().chain([&samples[0]]));
        assert_eq!((stretch.errors, stretch.p99_us), (1, Some(5000)));
    }

    #[test]
    fn windows_go_by_the_due_time_and_cover_all() {
        let samples: Vec<_> = (0..2300).map(|due| sample(due, due)).collect();
        let (start, end) = (Duration::from_millis(1000), Duration::from_millis(2200));
        let found = windows(&samples, start, end);
        let counts: Vec<_> = found.iter().map(|window| window.requests).collect();
        assert_eq!(counts, [500, 700]);
        assert_eq!(found[0].p50_us, Some(1249));
    }

    fn row(p99s: &[u64]) -> Vec<Stretch> {
        p99s.iter()
            .map(|p99| Stretch::of([sample(0, *p99)].iter()))
            .collect()
    }

    #[test]
    fn normal_again_is_two_seconds_in_a_row() {
        let found = recovery(&row(&[90, 10, 10, 90, 10, 10, 10, 10, 90, 10]), 10);
        assert_eq!(
            found,
            Recovery {
                after_s: Some(2.0),
                relapses: 1
            }
        );
        let found = recovery(&row(&[10, 10, 10, 10, 10]), 10);
        assert_eq!(
            found,
            Recovery {
                after_s: Some(0.0),
                relapses: 0
            }
        );
    }

    #[test]
    fn what_never_calms_down_has_no_time() {
        let found = recovery(&row(&[90, 10, 10, 10, 90, 10, 10, 10]), 10);
        assert_eq!(
            found,
            Recovery {
                after_s: None,
                relapses: 2
            }
        );
        // Nor what nobody asked, nor what is shorter than that.
        let silent = vec![Stretch::of([].iter()); 8];
        assert_eq!(recovery(&silent, 10).after_s, None);
        assert_eq!(recovery(&row(&[10, 10, 10]), 10).after_s, None);
    }
}
