//! What is known about the records of one type of one name, and what a new outcome makes of it.
//!
//! Nothing here waits or asks: time comes in as an argument, and the time until the next refresh
//! goes out, so that each rule can be tested by itself.

use std::time::{Duration, Instant};

use super::outcome::{Failure, Outcome};

/// The times that the rules need.
#[derive(Debug, Clone)]
pub(super) struct Timing {
    /// Bounds of the time between two refreshes while there are records.
    pub(super) min_ttl: Duration,
    pub(super) max_ttl: Duration,
    /// How long addresses outlive the first "no such name".
    pub(super) hold_empty: Duration,
    /// After the first failure; it doubles with each further one.
    pub(super) backoff_min: Duration,
    /// The longest back-off while good addresses are in use.
    pub(super) backoff_max: Duration,
    /// The longest back-off while there are none and requests fail.
    pub(super) backoff_max_unresolved: Duration,
    /// Time to the next look after "no such name" without a negative TTL.
    pub(super) empty_recheck: Duration,
    /// The longest that a negative TTL is followed: a scale-up from zero should be seen soon. While
    /// another record type has what is needed, `max_ttl` bounds it.
    pub(super) empty_recheck_max: Duration,
    /// Time to the second look that confirms a first "no such name" when nothing is held.
    pub(super) empty_confirm: Duration,
    /// How long the servers in use stay while the names of new ones are looked up.
    pub(super) new_server: Duration,
}

/// How many authoritative "nothing there" answers in a row are believed.
const EMPTIES_BELIEVED: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Knowledge {
    /// Never answered.
    Unknown,
    /// There are records, perhaps kept ones.
    Records,
    /// Believed to have none.
    Empty,
    /// Answered by the hosts file or by the rules for localhost.
    Local,
    /// Not asked, because the host has no address of this family.
    NotAsked,
}

/// What changed that an operator should read about once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// Lookups began to fail.
    Failing(String),
    /// Lookups work again.
    Recovered,
    /// A first "nothing there" while records are held.
    Holding { no_such_name: bool },
    /// The held records were given up, or there never were any.
    Emptied { no_such_name: bool },
    /// More records than are used.
    Capped { left_out: usize },
}

/// What follows from an outcome.
#[derive(Debug, PartialEq)]
pub(super) struct Step {
    /// Time to the next refresh.
    pub(super) next: Duration,
    pub(super) event: Option<Event>,
}

/// One record type of one name.
#[derive(Debug, Clone)]
pub(super) struct Known<R> {
    knowledge: Knowledge,
    /// Sorted, without duplicates.
    records: Vec<R>,
    /// The position of the candidate that gave the records.
    candidate: usize,
    /// As the server gave it.
    ttl: Option<Duration>,
    empties: u32,
    empty_since: Option<Instant>,
    failures: u32,
    left_out: usize,
}

impl<R> Known<R> {
    pub(super) fn new() -> Self {
        Self {
            knowledge: Knowledge::Unknown,
            records: Vec::new(),
            candidate: 0,
            ttl: None,
            empties: 0,
            empty_since: None,
            failures: 0,
            left_out: 0,
        }
    }

    /// Records that don't come from DNS; an empty list means that there are none of this type.
    pub(super) fn set_local(&mut self, records: Vec<R>) {
        *self = Self {
            knowledge: Knowledge::Local,
            records,
            ..Self::new()
        };
    }

    /// The host can't reach what such records lead to.
    pub(super) fn set_not_asked(&mut self) {
        *self = Self {
            knowledge: Knowledge::NotAsked,
            ..Self::new()
        };
    }

    /// The records in use, sorted.
    pub(super) fn records(&self) -> &[R] {
        &self.records
    }

    /// Whether there was an answer, of whatever kind.
    pub(super) fn is_answered(&self) -> bool {
        self.knowledge != Knowledge::Unknown
    }

    /// As the server gave it, of the records in use.
    pub(super) fn ttl(&self) -> Option<Duration> {
        self.ttl
    }

    /// The search position at which there are records from DNS.
    pub(super) fn found_at(&self) -> Option<usize> {
        (self.knowledge == Knowledge::Records).then_some(self.candidate)
    }

    /// Takes in the outcome of a refresh that ended at `now`. `served` tells that another record type
    /// has what is needed: then it isn't urgent to see this one get some.
    pub(super) fn apply(
        &mut self,
        outcome: Outcome<R>,
        now: Instant,
        timing: &Timing,
        served: bool,
    ) -> Step {
        match outcome {
            Outcome::Records {
                records,
                left_out,
                ttl,
                candidate,
            } => self.apply_records(records, left_out, ttl, candidate, timing),
            Outcome::Empty {
                no_such_name,
                negative_ttl,
            } => self.apply_empty(no_such_name, negative_ttl, now, timing, served),
            Outcome::Failed(failure) => self.apply_failure(failure, timing),
        }
    }

    fn apply_records(
        &mut self,
        records: Vec<R>,
        left_out: usize,
        ttl: Duration,
        candidate: usize,
        timing: &Timing,
    ) -> Step {
        let recovered = self.failures > 0 || self.empties > 0;
        let newly_capped = left_out > 0 && self.left_out == 0;
        *self = Self {
            knowledge: Knowledge::Records,
            records,
            candidate,
            ttl: Some(ttl),
            left_out,
            ..Self::new()
        };
        let event = if newly_capped {
            Some(Event::Capped { left_out })
        } else {
            recovered.then_some(Event::Recovered)
        };
        let refresh = ttl.min(timing.max_ttl).max(timing.min_ttl);
        Step {
            next: refresh.mul_f64(0.9 + 0.1 * fastrand::f64()),
            event,
        }
    }

    fn apply_empty(
        &mut self,
        no_such_name: bool,
        negative_ttl: Option<Duration>,
        now: Instant,
        timing: &Timing,
        served: bool,
    ) -> Step {
        let was_empty = self.knowledge == Knowledge::Empty;
        let was_failing = std::mem::take(&mut self.failures) > 0;
        self.empties = self.empties.saturating_add(1);
        let since = *self.empty_since.get_or_insert(now);
        let held_for = now.saturating_duration_since(since);
        let holding = !self.records.is_empty();
        let (unsaid, longest) = if served {
            (timing.empty_recheck_max, timing.max_ttl)
        } else {
            (timing.empty_recheck, timing.empty_recheck_max)
        };
        let recheck = negative_ttl
            .unwrap_or(unsaid)
            .min(longest)
            .max(timing.min_ttl);

        if self.empties >= EMPTIES_BELIEVED && (!holding || held_for >= timing.hold_empty) {
            self.records.clear();
            self.ttl = None;
            self.knowledge = Knowledge::Empty;
            let event = if was_empty {
                was_failing.then_some(Event::Recovered)
            } else {
                Some(Event::Emptied { no_such_name })
            };
            return Step {
                next: recheck,
                event,
            };
        }
        let next = if holding {
            // Not later than the end of the hold, so that the pool empties when it is documented to.
            let left = timing.hold_empty.saturating_sub(held_for);
            recheck.min(left.max(timing.min_ttl))
        } else {
            recheck.min(timing.empty_confirm.max(timing.min_ttl))
        };
        let first = self.empties == 1 && holding;
        Step {
            next,
            event: first.then_some(Event::Holding { no_such_name }),
        }
    }

    fn apply_failure(&mut self, failure: Failure, timing: &Timing) -> Step {
        self.failures = self.failures.saturating_add(1);
        // "In a row" is meant literally: a failure in between proves nothing either way.
        if self.knowledge != Knowledge::Empty {
            self.empties = 0;
            self.empty_since = None;
        }
        let longest = if self.records.is_empty() {
            timing.backoff_max_unresolved
        } else {
            timing.backoff_max
        };
        let doublings = (self.failures - 1).min(16);
        let delay = timing
            .backoff_min
            .saturating_mul(1 << doublings)
            .min(longest);
        Step {
            next: delay.mul_f64(0.8 + 0.2 * fastrand::f64()),
            event: (self.failures == 1).then_some(Event::Failing(failure.detail)),
        }
    }

    /// The records are those of an earlier answer.
    pub(super) fn stale(&self) -> bool {
        !self.records.is_empty() && (self.failures > 0 || self.empties > 0)
    }

    /// There was never an answer, and the last try failed.
    pub(super) fn failing(&self) -> bool {
        self.knowledge == Knowledge::Unknown && self.failures > 0
    }
}
