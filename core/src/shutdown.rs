//! The end of the process.
//!
//! On SIGTERM or SIGQUIT readiness fails, `delay` passes while requests are still taken, the
//! listeners close, and the process ends as soon as nothing is in flight, `drain` at the longest.
//! SIGINT ends it at once, also while it drains.

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use signal_hook::{
    consts::{SIGINT, SIGQUIT, SIGTERM},
    iterator::Signals,
};

use crate::{
    config::Shutdown, lifecycle::Lifecycle, metrics::Metrics, proxy::mirrors_in_flight,
    server::Workers,
};

/// Signals that end the process, as they come.
pub struct Endings(mpsc::Receiver<Ending>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Graceful,
    AtOnce,
}

impl Endings {
    /// Takes the signals over from their default action, which would kill the process.
    ///
    /// # Errors
    /// When a handler or its thread can't be set up.
    pub fn listen() -> anyhow::Result<Self> {
        let mut signals = Signals::new([SIGTERM, SIGQUIT, SIGINT])
            .context("can't receive the signals that end the process")?;
        let (sender, receiver) = mpsc::channel();
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for signal in signals.forever() {
                    let ending = if signal == SIGINT {
                        Ending::AtOnce
                    } else {
                        Ending::Graceful
                    };
                    if sender.send(ending).is_err() {
                        return;
                    }
                }
            })
            .context("can't start the thread that waits for signals")?;
        Ok(Self(receiver))
    }

    /// Waits for a signal and brings everything to its end, as `shutdown` says then. When this
    /// returns, the process may go.
    pub fn serve_until_end(
        &self,
        lifecycle: &Lifecycle,
        workers: &Workers,
        metrics: &Metrics,
        shutdown: impl FnOnce() -> Shutdown,
    ) {
        // A channel without senders has no more signals, which can't happen: its thread holds one.
        let first = self.0.recv().unwrap_or(Ending::AtOnce);
        lifecycle.ending();
        if first == Ending::AtOnce {
            tracing::info!("shutting down: at once");
            return;
        }
        let shutdown = shutdown();
        tracing::info!(
            "shutting down: not ready any more, the listeners close in {:?}",
            shutdown.delay
        );
        if self.must_end_within(shutdown.delay) {
            return;
        }
        workers.close();
        self.drain(metrics, shutdown.drain);
    }

    /// Waits until nothing is in flight.
    fn drain(&self, metrics: &Metrics, limit: Duration) {
        let begun = Instant::now();
        let mut quiet_since = None;
        loop {
            let in_flight = metrics.in_flight();
            let now = Instant::now();
            // A copy is worth some waiting too, but nobody is told when it is cut.
            if in_flight > 0 || mirrors_in_flight() > 0 {
                quiet_since = None;
            } else if now.duration_since(*quiet_since.get_or_insert(now)) >= QUIET {
                tracing::info!("drained");
                return;
            }
            if now.duration_since(begun) >= limit {
                if in_flight > 0 {
                    tracing::warn!("drain time is over: {in_flight} requests are cut");
                }
                return;
            }
            if self.must_end_within(COUNT_INTERVAL) {
                return;
            }
        }
    }

    /// Whether SIGINT comes within this time. Another SIGTERM changes nothing: a preStop hook and
    /// the kubelet may both send one.
    fn must_end_within(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.0.recv_timeout(left) {
                Ok(Ending::Graceful) => {}
                Err(RecvTimeoutError::Timeout) => return false,
                Ok(Ending::AtOnce) | Err(RecvTimeoutError::Disconnected) => {
                    tracing::info!("shutting down: at once");
                    return true;
                }
            }
        }
    }
}

/// How often the requests in flight are counted while draining.
const COUNT_INTERVAL: Duration = Duration::from_millis(5);

/// For so long nothing may be in flight: a connection that was accepted just before the listeners
/// closed has brought its request by then.
const QUIET: Duration = Duration::from_millis(100);
