//! Starting, serving, ending: what the process is doing, as requests and probes need to know.

use std::{
    sync::atomic::{AtomicU8, Ordering},
    time::{Duration, Instant},
};

/// Where the process is in its life.
#[derive(Debug)]
pub struct Lifecycle {
    stage: AtomicU8,
    started: Instant,
}

const STARTING: u8 = 0;
const SERVING: u8 = 1;
const ENDING: u8 = 2;

impl Default for Lifecycle {
    fn default() -> Self {
        Self {
            stage: AtomicU8::new(STARTING),
            started: Instant::now(),
        }
    }
}

impl Lifecycle {
    /// All listeners answer.
    pub fn serving(&self) {
        // A signal may have come first; then it stays at that.
        let _ =
            self.stage
                .compare_exchange(STARTING, SERVING, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// A signal has asked the process to end.
    pub(crate) fn ending(&self) {
        self.stage.store(ENDING, Ordering::Relaxed);
    }

    /// Whether the process is about to end: connections are not kept any more.
    pub fn is_ending(&self) -> bool {
        self.stage.load(Ordering::Relaxed) == ENDING
    }

    /// How long the process has been running.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Whether this stage takes requests.
    ///
    /// # Errors
    /// With the reason why not.
    pub fn readiness(&self) -> Result<(), String> {
        match self.stage.load(Ordering::Relaxed) {
            STARTING => Err("starting".to_owned()),
            SERVING => Ok(()),
            _ => Err("shutting down".to_owned()),
        }
    }
}
