//! Start and end of the process.
//!
//! Pingora would sleep for 300 s on SIGTERM. Here the signal comes to us first: readiness fails,
//! `delay` passes while requests are still taken, the listeners close, and the process ends as
//! soon as nothing is in flight, `drain` at the longest.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use pingora_core::server::{ExecutionPhase, ShutdownSignal, ShutdownSignalWatch};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::broadcast,
};

use crate::{config::Shutdown, metrics::Metrics};

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
        let _ = self
            .stage
            .compare_exchange(STARTING, SERVING, Ordering::Relaxed, Ordering::Relaxed);
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

    fn ending(&self) {
        self.stage.store(ENDING, Ordering::Relaxed);
    }
}

/// Waits for the signals that end the process.
pub struct Signals {
    lifecycle: Arc<Lifecycle>,
    delay: Duration,
}

impl Signals {
    /// `delay` is how long requests are still taken after SIGTERM.
    pub fn new(lifecycle: Arc<Lifecycle>, delay: Duration) -> Self {
        Self { lifecycle, delay }
    }
}

#[async_trait]
impl ShutdownSignalWatch for Signals {
    async fn recv(&self) -> ShutdownSignal {
        let [terminate, quit, interrupt] =
            [SignalKind::terminate(), SignalKind::quit(), SignalKind::interrupt()].map(signal);
        let (Ok(mut terminate), Ok(mut quit), Ok(mut interrupt)) = (terminate, quit, interrupt)
        else {
            tracing::error!("signals can't be received: the process ends only when it is killed");
            return std::future::pending().await;
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = quit.recv() => {}
            _ = interrupt.recv() => return fast(),
        }
        tracing::info!("shutting down: readiness fails, {:?} until the listeners close", self.delay);
        self.lifecycle.ending();
        tokio::select! {
            () = tokio::time::sleep(self.delay) => ShutdownSignal::GracefulTerminate,
            () = again(&mut terminate, &mut interrupt) => fast(),
        }
    }
}

async fn again(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

fn fast() -> ShutdownSignal {
    tracing::info!("shutting down: at once");
    ShutdownSignal::FastShutdown
}

/// How often the requests in flight are counted while draining.
const COUNT_INTERVAL: Duration = Duration::from_millis(5);

/// For so long nothing may be in flight: a connection that was accepted just before the listeners
/// closed has brought its request by then.
const QUIET: Duration = Duration::from_millis(100);

/// Ends the process when the listeners have closed and nothing is in flight. Runs on a thread of
/// its own, beside Pingora's sleep.
pub fn end_when_drained(
    mut phases: broadcast::Receiver<ExecutionPhase>,
    metrics: &Metrics,
    shutdown: Shutdown,
    end: impl FnOnce(),
) {
    loop {
        match phases.blocking_recv() {
            Ok(ExecutionPhase::GracefulTerminate | ExecutionPhase::ShutdownGracePeriod) => break,
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            // Pingora has ended without draining.
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
    let begun = Instant::now();
    let mut quiet_since = None;
    loop {
        let in_flight = metrics.in_flight();
        let now = Instant::now();
        if in_flight > 0 {
            quiet_since = None;
        } else if now.duration_since(*quiet_since.get_or_insert(now)) >= QUIET {
            tracing::info!("drained");
            break;
        }
        if now.duration_since(begun) >= shutdown.drain {
            if in_flight > 0 {
                tracing::warn!("drain time is over: {in_flight} requests are cut");
            }
            break;
        }
        std::thread::sleep(COUNT_INTERVAL);
    }
    end();
}
