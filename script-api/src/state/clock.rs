//! The one clock of everything that keeps state.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// A clock that never goes back.
#[derive(Debug, Clone)]
pub struct Clock(Source);

#[derive(Debug, Clone)]
enum Source {
    System(Instant),
    Manual(ManualClock),
}

impl Clock {
    /// The monotonic clock of the system.
    pub fn system() -> Self {
        Self(Source::System(Instant::now()))
    }

    /// Nanoseconds since some moment before. Two threads may see each other's moments a little
    /// apart, so a difference of two of them must saturate.
    pub(super) fn now(&self) -> u64 {
        match &self.0 {
            Source::System(beginning) => nanoseconds(beginning.elapsed()),
            Source::Manual(clock) => clock.0.load(Ordering::SeqCst),
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

/// A clock that stands still until somebody moves it, for tests of programs.
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// Moves it on.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(nanoseconds(by), Ordering::SeqCst);
    }
}

impl From<&ManualClock> for Clock {
    fn from(clock: &ManualClock) -> Self {
        Self(Source::Manual(clock.clone()))
    }
}

/// Whole nanoseconds; what is longer than 584 years counts as that.
pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
