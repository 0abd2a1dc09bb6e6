//! A window that begins with the first hit.

use super::{known::Usage, rule::RateRule};

/// Hits since the window began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fixed {
    begun: u64,
    hits: u64,
}

impl Usage for Fixed {
    fn none(_rule: &RateRule, now: u64) -> Self {
        Self {
            begun: now,
            hits: 0,
        }
    }

    fn settled(self, rule: &RateRule, now: u64) -> Self {
        let is_over = now.saturating_sub(self.begun) >= rule.window;
        if self.hits == 0 || is_over {
            return Self::none(rule, now);
        }
        self
    }

    fn take(&mut self, rule: &RateRule, _now: u64) -> bool {
        let is_left = self.hits < rule.limit;
        self.hits += u64::from(is_left);
        is_left
    }

    fn remaining(&self, rule: &RateRule, _now: u64) -> u64 {
        rule.limit.saturating_sub(self.hits)
    }

    fn wait(&self, rule: &RateRule, now: u64) -> u64 {
        if self.hits < rule.limit {
            return 0;
        }
        let end = self.begun.saturating_add(rule.window);
        end.saturating_sub(now)
    }

    fn used(&self) -> u128 {
        self.hits.into()
    }

    fn at_least(self, other: Self) -> Self {
        match (self.hits, other.hits) {
            (0, _) => other,
            (_, 0) => self,
            // What is forgotten ends with the last window that began, and does not begin anew when
            // keys that inherited it are forgotten in their turn.
            _ => Self {
                begun: self.begun.max(other.begun),
                hits: self.hits.max(other.hits),
            },
        }
    }
}
