//! A window that moves with time, known from two totals.
//!
//! The clock is cut into windows, the same for all keys. Of the window before, the part that lies
//! within one window's length of now counts, as if its hits were spread evenly. It is exact when
//! they were; a list of all hits would be exact always, and take as much memory as there are hits.

use super::{known::Usage, rule::RateRule};

/// Hits in the window with this number, and in the one before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sliding {
    number: u64,
    hits: u64,
    before: u64,
}

impl Sliding {
    /// Nanoseconds from the beginning of its window to `now`.
    fn elapsed(&self, rule: &RateRule, now: u64) -> u64 {
        let begun = self.number.saturating_mul(rule.window);
        now.saturating_sub(begun).min(rule.window)
    }

    /// What is used, in hits times nanoseconds of the window.
    fn weighted(&self, rule: &RateRule, now: u64) -> u128 {
        let left = rule.window - self.elapsed(rule, now);
        u128::from(self.hits) * u128::from(rule.window) + u128::from(self.before) * u128::from(left)
    }

    /// What may be used, in the same unit.
    fn whole(rule: &RateRule) -> u128 {
        u128::from(rule.limit) * u128::from(rule.window)
    }
}

impl Usage for Sliding {
    fn none(rule: &RateRule, now: u64) -> Self {
        Self {
            number: now / rule.window,
            hits: 0,
            before: 0,
        }
    }

    fn settled(self, rule: &RateRule, now: u64) -> Self {
        let number = (now / rule.window).max(self.number);
        match number - self.number {
            0 => self,
            1 => Self {
                number,
                hits: 0,
                before: self.hits,
            },
            _ => Self {
                number,
                hits: 0,
                before: 0,
            },
        }
    }

    fn take(&mut self, rule: &RateRule, now: u64) -> bool {
        let is_left = self.weighted(rule, now) + u128::from(rule.window) <= Self::whole(rule);
        self.hits += u64::from(is_left);
        is_left
    }

    fn remaining(&self, rule: &RateRule, now: u64) -> u64 {
        let left = Self::whole(rule).saturating_sub(self.weighted(rule, now));
        u64::try_from(left / u128::from(rule.window)).unwrap_or(u64::MAX)
    }

    fn wait(&self, rule: &RateRule, now: u64) -> u64 {
        if self.remaining(rule, now) > 0 {
            return 0;
        }
        // One hit fits when what counts of the window before has sunk to `room` hits.
        let (begun, before, room) = match (rule.limit - 1).checked_sub(self.hits) {
            Some(room) => (self.number, self.before, room),
            // Only in the next window, for which this one is the window before.
            None => (self.number + 1, self.hits, rule.limit - 1),
        };
        let counted = u128::from(room) * u128::from(rule.window) / u128::from(before.max(1));
        let counted = u64::try_from(counted).unwrap_or(u64::MAX).min(rule.window);
        let begun = begun.saturating_mul(rule.window);
        let moment = begun.saturating_add(rule.window - counted);
        moment.saturating_sub(now)
    }

    fn used(&self) -> u128 {
        u128::from(self.hits) + u128::from(self.before)
    }

    fn at_least(self, other: Self) -> Self {
        Self {
            number: self.number.max(other.number),
            hits: self.hits.max(other.hits),
            before: self.before.max(other.before),
        }
    }
}
