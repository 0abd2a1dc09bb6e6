//! The usages of many keys, bounded.
//!
//! A limiter that forgot what a key has used would let it begin anew: whoever can invent keys could
//! wash out his own. One that refused all new keys when it is full would let him shut everybody
//! out. So a full one forgets the least used of a few keys, and whatever it doesn't know counts from
//! then on as used as the most used of the forgotten ones (the idea of the Space-Saving algorithm,
//! Metwally et al. 2005). No key ever gets more than its limit by being forgotten. Somebody who
//! floods it with F new keys in a window takes from new ones about F / `max_keys` hits each, and
//! nothing from those that are known.

use ahash::RandomState;
use indexmap::IndexMap;

use super::rule::RateRule;

/// What one key has used. All but [`Usage::settled`] is asked of one that is settled at that moment.
pub(super) trait Usage: Copy {
    /// Of a key that has used nothing.
    fn none(rule: &RateRule, now: u64) -> Self;

    /// As it stands at `now`: what is over is forgotten.
    fn settled(self, rule: &RateRule, now: u64) -> Self;

    /// Takes one hit. False when none is left.
    fn take(&mut self, rule: &RateRule, now: u64) -> bool;

    /// Hits that are left.
    fn remaining(&self, rule: &RateRule, now: u64) -> u64;

    /// Nanoseconds until one hit is left; 0 when one is.
    fn wait(&self, rule: &RateRule, now: u64) -> u64;

    /// How much is used, for comparing; 0 is the same as never seen.
    fn used(&self) -> u128;

    /// One that never allows more than either. Both are settled at the same moment.
    fn at_least(self, other: Self) -> Self;
}

/// Keys that are looked at when one is added. Those that have nothing in use are removed, so the
/// memory follows the keys that are in use.
const LOOKED_AT: usize = 8;

pub(super) struct Known<U> {
    usages: IndexMap<Box<[u8]>, U, RandomState>,
    /// Where the next look begins.
    hand: usize,
    /// What a key that isn't known may have used.
    forgotten: Option<U>,
}

impl<U> Default for Known<U> {
    fn default() -> Self {
        Self {
            usages: IndexMap::default(),
            hand: 0,
            forgotten: None,
        }
    }
}

/// What became of a hit.
pub(super) struct Taken {
    pub(super) allowed: bool,
    /// Keys that were forgotten for it before their time.
    pub(super) forgotten: u64,
}

impl<U: Usage> Known<U> {
    pub(super) fn len(&self) -> usize {
        self.usages.len()
    }

    /// Takes one hit of `key`, with room for so many keys.
    pub(super) fn take(&mut self, key: &[u8], rule: &RateRule, now: u64, room: usize) -> Taken {
        let mut forgotten = 0;
        if let Some(usage) = self.usages.get_mut(key) {
            *usage = usage.settled(rule, now);
            let allowed = usage.take(rule, now);
            return Taken { allowed, forgotten };
        }
        let mut usage = self.unknown(rule, now);
        let allowed = usage.take(rule, now);
        // A key that is refused needs no place.
        if allowed {
            forgotten = self.make_room(rule, now, room);
            self.usages.insert(key.into(), usage);
        }
        Taken { allowed, forgotten }
    }

    /// What `key` has used.
    pub(super) fn usage(&self, key: &[u8], rule: &RateRule, now: u64) -> U {
        match self.usages.get(key) {
            Some(usage) => usage.settled(rule, now),
            None => self.unknown(rule, now),
        }
    }

    fn unknown(&self, rule: &RateRule, now: u64) -> U {
        match self.forgotten {
            Some(forgotten) => forgotten.settled(rule, now),
            None => U::none(rule, now),
        }
    }

    /// Makes room for one key. Tells how many were forgotten before their time: more than one only
    /// when a reload made the room smaller.
    fn make_room(&mut self, rule: &RateRule, now: u64, room: usize) -> u64 {
        let mut forgotten = 0;
        for _ in 0..2 {
            let least = self.look(rule, now);
            if self.usages.len() < room {
                break;
            }
            if let Some(index) = least {
                self.forget(index, rule, now);
                forgotten += 1;
            }
        }
        forgotten
    }

    /// Removes what is not in use among the next few keys. The least used of them, when there is
    /// nothing to remove.
    fn look(&mut self, rule: &RateRule, now: u64) -> Option<usize> {
        let mut least = None;
        let mut removed = false;
        for _ in 0..LOOKED_AT.min(self.usages.len()) {
            if self.hand >= self.usages.len() {
                self.hand = 0;
            }
            let Some((_, usage)) = self.usages.get_index(self.hand) else {
                break;
            };
            let used = usage.settled(rule, now).used();
            if used == 0 {
                // The last one takes its place, and is looked at next.
                self.usages.swap_remove_index(self.hand);
                removed = true;
                continue;
            }
            if least.is_none_or(|(_, known)| used < known) {
                least = Some((self.hand, used));
            }
            self.hand += 1;
        }
        least.filter(|_| !removed).map(|(index, _)| index)
    }

    fn forget(&mut self, index: usize, rule: &RateRule, now: u64) {
        let Some((_, usage)) = self.usages.swap_remove_index(index) else {
            return;
        };
        let usage = usage.settled(rule, now);
        self.forgotten = Some(match self.forgotten {
            Some(forgotten) => forgotten.settled(rule, now).at_least(usage),
            None => usage,
        });
    }
}
