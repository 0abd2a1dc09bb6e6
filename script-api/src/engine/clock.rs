//! The clock that programs see: the system's, or one that stands where a test has set it.

use std::{
    cell::Cell,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

thread_local! {
    /// What is shown instead of the system's time.
    static SET: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// The time since 1970-01-01 00:00 UTC; zero when the system's clock stands before it.
pub(super) fn since_epoch() -> Duration {
    SET.get().unwrap_or_else(|| {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
    })
}

/// Stops the clock of the programs on this thread at a time since 1970-01-01 00:00 UTC, or lets it
/// go on with `None`. For tests of programs; budgets and timeouts keep the true time.
pub fn set_clock(at: Option<Duration>) {
    SET.set(at);
}
