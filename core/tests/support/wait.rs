//! Waiting for something that can be observed, with a deadline.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// The deadline of everything that is expected to happen soon: far above what it takes, because a
/// shared machine may stall a process for seconds.
pub const SOON: Duration = Duration::from_secs(20);

/// What "at once" may take for the end of a process: less than the usual drain. On a machine that is busy with other
/// things the kernel alone takes seconds of it, to close an inotify instance.
pub const AT_ONCE: Duration = Duration::from_secs(15);

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(10);

/// Looks at `condition` until it gives a value, and returns the value and the time it took.
///
/// Panics, naming `what`, when `limit` has passed.
pub fn timed<T>(
    what: &str,
    limit: Duration,
    mut condition: impl FnMut() -> Option<T>,
) -> (T, Duration) {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return (value, start.elapsed());
        }
        assert!(start.elapsed() < limit, "{what}: not seen within {limit:?}");
        std::thread::sleep(POLL);
    }
}

/// [`timed`] without the time.
pub fn eventually<T>(what: &str, limit: Duration, condition: impl FnMut() -> Option<T>) -> T {
    timed(what, limit, condition).0
}

/// [`eventually`] for a yes or no.
pub fn until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    eventually(what, limit, || condition().then_some(()));
}

/// A door that a test opens once: an upstream that waits at it answers at the moment the test
/// chooses. Clones are the same door.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets everyone through from now on.
    pub fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    /// Waits until the gate is open; false when `limit` passed first.
    pub fn pass(&self, limit: Duration) -> bool {
        let open = self.0.0.lock().unwrap();
        let (open, _) = self
            .0
            .1
            .wait_timeout_while(open, limit, |open| !*open)
            .unwrap();
        *open
    }
}
