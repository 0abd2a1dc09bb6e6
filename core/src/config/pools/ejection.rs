//! `[pools.NAME.ejection]`: when a target that fails in use is left out for a while.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use crate::config::check::Checks;
use crate::config::units::{Count, Time};

/// A number with up to three digits behind the point, kept whole so that configurations can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thousandths(pub u32);

impl Thousandths {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// This part of `count`, rounded down.
    #[must_use]
    pub fn of(self, count: usize) -> usize {
        // At most a million of each, far from what 64 bits hold.
        usize::try_from(count as u64 * u64::from(self.0) / 1000).unwrap_or(count)
    }

    /// As a factor.
    #[must_use]
    pub fn factor(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

/// As a user would write it.
impl fmt::Display for Thousandths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.factor().fmt(f)
    }
}

/// `[pools.NAME.ejection]`: what requests show of a target, and what follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ejection {
    /// `consecutive_failures`: so many requests in a row without an answer that can be used
    /// (connection refused or cut, no answer in time, a broken one); 0 to 1000, 0 is off. Default 5.
    pub consecutive_failures: u32,
    /// `consecutive_5xx`: so many answers of 500 to 599 in a row; 0 to 1000, 0 is off. Default 10.
    pub consecutive_5xx: u32,
    /// `latency_factor`: how many times the median of all targets a target's mean time to its response
    /// header may be; 0 is off, else 1.1 to 100. Default 0: what is slow depends on what is asked.
    pub latency_factor: Thousandths,
    /// `latency_interval`: over which time means are taken; 100 ms to 1 h. Default 10 s.
    pub latency_interval: Duration,
    /// `base_time`: how long a first ejection lasts; each further one lasts as much longer, and each
    /// such time without one makes the next as much shorter; 10 ms to 7 days. Default 10 s.
    pub base_time: Duration,
    /// `max_time`: the longest ejection; `base_time` to 7 days. Default 300 s.
    pub max_time: Duration,
    /// `max_share`: the largest part of the targets that may be ejected at a time, and out altogether
    /// before all are used again; 0 to 1. Default 0.5.
    pub max_share: Thousandths,
}

impl Default for Ejection {
    fn default() -> Self {
        Self {
            consecutive_failures: 5,
            consecutive_5xx: 10,
            latency_factor: Thousandths::ZERO,
            latency_interval: Duration::from_secs(10),
            base_time: Duration::from_secs(10),
            max_time: Duration::from_secs(300),
            max_share: Thousandths(500),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct Table {
    pub consecutive_failures: Option<Spanned<Count>>,
    pub consecutive_5xx: Option<Spanned<Count>>,
    pub latency_factor: Option<Spanned<f64>>,
    pub latency_interval: Option<Spanned<Time>>,
    pub base_time: Option<Spanned<Time>>,
    pub max_time: Option<Spanned<Time>>,
    pub max_share: Option<Spanned<f64>>,
}

const MOST: Duration = Duration::from_secs(7 * 24 * 3600);
const HOUR: Duration = Duration::from_secs(3600);

/// Takes the table of the pool whose keys begin with `prefix`.
pub(super) fn take(checks: &mut Checks<'_>, prefix: &str, table: Table) -> Ejection {
    let mut ejection = Ejection::default();
    let key = |name: &str| format!("{prefix}.ejection.{name}");
    let runs = [
        (
            &mut ejection.consecutive_failures,
            "consecutive_failures",
            table.consecutive_failures,
        ),
        (
            &mut ejection.consecutive_5xx,
            "consecutive_5xx",
            table.consecutive_5xx,
        ),
    ];
    for (slot, name, given) in runs {
        checks.count(slot, &key(name), given, 0..=1000);
    }
    let factor_at = table.latency_factor.as_ref().map(Spanned::span);
    let factor = &mut ejection.latency_factor;
    number(
        checks,
        factor,
        &key("latency_factor"),
        table.latency_factor,
        0..=100,
    );
    if let Some(span) = factor_at
        && (1..1100).contains(&factor.0)
    {
        let key = key("latency_factor");
        checks.error(
            &span,
            format!("`{key}` must be 0, which is off, or 1.1 and more: half of the targets are always slower than the median"),
        );
    }
    let (interval, given) = (&mut ejection.latency_interval, table.latency_interval);
    let range = Duration::from_millis(100)..=HOUR;
    checks.time(interval, &key("latency_interval"), given, range);
    let range = Duration::from_millis(10)..=MOST;
    let base_given = table.base_time.is_some();
    checks.time(
        &mut ejection.base_time,
        &key("base_time"),
        table.base_time,
        range,
    );
    if table.max_time.is_none() && base_given {
        ejection.max_time = ejection.max_time.max(ejection.base_time);
    }
    let range = ejection.base_time..=MOST;
    checks.time(
        &mut ejection.max_time,
        &key("max_time"),
        table.max_time,
        range,
    );
    let share = &mut ejection.max_share;
    number(checks, share, &key("max_share"), table.max_share, 0..=1);
    ejection
}

/// Puts a given number into `slot`, if it lies in `range`.
fn number(
    checks: &mut Checks<'_>,
    slot: &mut Thousandths,
    key: &str,
    given: Option<Spanned<f64>>,
    range: RangeInclusive<u32>,
) {
    let Some(given) = given else { return };
    let (least, most) = (*range.start(), *range.end());
    let value = *given.get_ref();
    if (f64::from(least)..=f64::from(most)).contains(&value) {
        // Within 0 to 100,000.
        *slot = Thousandths((value * 1000.0).round() as u32);
    } else {
        checks.error(
            &given.span(),
            format!("`{key}` must be between {least} and {most}, not {value}"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_down() {
        let half = Thousandths(500);
        let shares = [0, 1, 2, 3, 4, 5].map(|count| half.of(count));
        assert_eq!(shares, [0, 0, 1, 1, 2, 2]);
        assert_eq!(Thousandths(1000).of(7), 7);
        assert_eq!(Thousandths::ZERO.of(7), 0);
        assert_eq!(Thousandths(1500).to_string(), "1.5");
    }
}
