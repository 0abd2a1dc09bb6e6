//! A bucket that fills up steadily.
//!
//! Kept as its opposite, a meter that each hit raises and time lowers: what a changed limit leaves
//! alone is then what has been used. In whole numbers it is exact.

use super::{known::Usage, rule::RateRule};

/// What has been used and has not come back yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct TokenBucket {
    at: u64,
    /// In hits times nanoseconds of the window: a hit raises it by the window, a nanosecond lowers
    /// it by the limit.
    level: u128,
}

impl TokenBucket {
    fn whole(rule: &RateRule) -> u128 {
        u128::from(rule.burst) * u128::from(rule.window)
    }
}

impl Usage for TokenBucket {
    fn none(_rule: &RateRule, now: u64) -> Self {
        Self { at: now, level: 0 }
    }

    fn settled(self, rule: &RateRule, now: u64) -> Self {
        let elapsed = now.saturating_sub(self.at);
        let sunk = u128::from(elapsed) * u128::from(rule.limit);
        Self {
            at: self.at.max(now),
            level: self.level.saturating_sub(sunk),
        }
    }

    fn take(&mut self, rule: &RateRule, _now: u64) -> bool {
        let raised = self.level + u128::from(rule.window);
        let is_left = raised <= Self::whole(rule);
        if is_left {
            self.level = raised;
        }
        is_left
    }

    fn remaining(&self, rule: &RateRule, _now: u64) -> u64 {
        let left = Self::whole(rule).saturating_sub(self.level);
        u64::try_from(left / u128::from(rule.window)).unwrap_or(u64::MAX)
    }

    fn wait(&self, rule: &RateRule, _now: u64) -> u64 {
        let raised = self.level + u128::from(rule.window);
        let over = raised.saturating_sub(Self::whole(rule));
        u64::try_from(over.div_ceil(u128::from(rule.limit))).unwrap_or(u64::MAX)
    }

    fn used(&self) -> u128 {
        self.level
    }

    fn at_least(self, other: Self) -> Self {
        Self {
            at: self.at.max(other.at),
            level: self.level.max(other.level),
        }
    }
}
