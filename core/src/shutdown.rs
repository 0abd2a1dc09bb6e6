//! The end of the process.
//!
//! On SIGTERM readiness fails, `delay` passes while requests are still taken, the listeners close, and the
//! process ends as soon as nothing is left, `drain` at the longest. SIGQUIT does the same, but when another
//! process waits for the listeners they change hands instead of closing ([`crate::upgrade`]). SIGINT ends the
//! process at once, also while it drains.

use std::{
    path::PathBuf,
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
    admin,
    config::Shutdown,
    lifecycle::Lifecycle,
    metrics::Metrics,
    proxy::mirrors_in_flight,
    server::{Sockets, Workers},
    upgrade::{self, Handed, NotGiven, Purpose},
};

/// Signals that end the process, as they come.
pub struct Endings(mpsc::Receiver<Ending>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Graceful,
    HandOver,
    AtOnce,
}

/// What is brought to its end.
pub struct Served<'a> {
    /// Told that the process ends.
    pub lifecycle: &'a Lifecycle,
    /// Told to close the listeners.
    pub workers: &'a Workers,
    /// Tell what is left.
    pub metrics: &'a Metrics,
    /// The listeners.
    pub sockets: Sockets,
    /// The admin and health listeners. They answer to the end, unless they change hands.
    pub admin: Option<admin::Server>,
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
                    let ending = match signal {
                        SIGINT => Ending::AtOnce,
                        SIGQUIT => Ending::HandOver,
                        _ => Ending::Graceful,
                    };
                    if sender.send(ending).is_err() {
                        return;
                    }
                }
            })
            .context("can't start the thread that waits for signals")?;
        Ok(Self(receiver))
    }

    /// Whether a signal has come, for who serves nothing yet and just ends then.
    pub fn came(&self) -> bool {
        self.0.try_recv().is_ok()
    }

    /// Waits for a signal and brings everything to its end, as `settings` say then: what a stop does, and where
    /// another process may wait for the listeners. When this returns, the process may go.
    pub fn serve_until_end(
        &self,
        served: Served<'_>,
        settings: impl Fn() -> (Shutdown, Option<PathBuf>),
    ) {
        let shutdown = loop {
            // A channel without senders has no more signals, which can't happen: its thread holds one.
            let ending = self.0.recv().unwrap_or(Ending::AtOnce);
            let (shutdown, heir) = settings();
            match (ending, heir) {
                (Ending::AtOnce, _) => {
                    served.lifecycle.ending();
                    tracing::info!("shutting down: at once");
                    return;
                }
                (Ending::HandOver, Some(path)) => match upgrade::give(&path, &handed(&served)) {
                    Ok(()) => return self.hand_over(served, shutdown),
                    Err(NotGiven::Nobody) => {
                        tracing::info!("upgrade: no process waits at {}", path.display());
                        break shutdown;
                    }
                    Err(NotGiven::Failed(error)) => {
                        tracing::error!("upgrade failed, this process goes on: {error:#}");
                    }
                },
                (Ending::HandOver, None) | (Ending::Graceful, _) => break shutdown,
            }
        };
        served.lifecycle.ending();
        tracing::info!(
            "shutting down: not ready any more, the listeners close in {:?}",
            shutdown.delay
        );
        if self.must_end_within(shutdown.delay) {
            return;
        }
        // The workers' own are the last then: nobody can come any more when they close.
        drop(served.sockets);
        served.workers.close(FIRST_REQUEST.min(shutdown.drain));
        self.drain(served.workers, served.metrics, shutdown.drain);
    }

    /// The other process accepts by now: ends what this one has.
    fn hand_over(&self, served: Served<'_>, shutdown: Shutdown) {
        // Whoever asks for readiness from here on gets the other process.
        drop(served.admin);
        served.lifecycle.ending();
        tracing::info!("shutting down: another process has taken over the listeners");
        drop(served.sockets);
        served.workers.close(LAST_REQUEST.min(shutdown.drain));
        self.drain(served.workers, served.metrics, shutdown.drain);
    }

    /// Waits until nothing is left.
    fn drain(&self, workers: &Workers, metrics: &Metrics, limit: Duration) {
        let begun = Instant::now();
        let connections = metrics.connections();
        let mut quiet_since = None;
        loop {
            // In this order: what is accepted is counted before the worker says that it accepts nothing more.
            let closed = workers.closed();
            let open = connections.open();
            let in_flight = metrics.in_flight();
            let now = Instant::now();
            // A copy is worth some waiting too, but nobody is told when it is cut.
            let busy = !closed || in_flight > 0 || mirrors_in_flight() > 0;
            let silent = !busy && workers.left() && connections.unsent() == 0;
            let quiet = silent && now.duration_since(*quiet_since.get_or_insert(now)) >= QUIET;
            if !silent {
                quiet_since = None;
            }
            if (!busy && open == 0) || quiet {
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
                Ok(Ending::Graceful | Ending::HandOver) => {}
                Err(RecvTimeoutError::Timeout) => return false,
                Ok(Ending::AtOnce) | Err(RecvTimeoutError::Disconnected) => {
                    tracing::info!("shutting down: at once");
                    return true;
                }
            }
        }
    }
}

/// All that another process takes over.
fn handed<'s>(served: &'s Served<'_>) -> Vec<Handed<&'s std::net::TcpListener>> {
    let listeners = served.sockets.iter().map(|(address, socket)| Handed {
        purpose: Purpose::Listener,
        address,
        socket,
    });
    let admin = served.admin.iter().flat_map(admin::Server::listeners);
    let admin = admin.map(|listener| Handed {
        purpose: listener.role().into(),
        address: listener.address(),
        socket: listener.socket(),
    });
    listeners.chain(admin).collect()
}

/// How often is looked at what is left while draining.
const COUNT_INTERVAL: Duration = Duration::from_millis(5);

/// For so long a connection that has no request may still bring one when the listeners have closed: its client has
/// just connected, and would take its end for a failure.
const FIRST_REQUEST: Duration = Duration::from_millis(100);

/// The same after the listeners have changed hands. Nobody waits for this process then, so that clients can be told
/// with an answer that they have to connect anew, and only those that are idle for longer find their connection
/// closed.
const LAST_REQUEST: Duration = Duration::from_secs(2);

/// Connections that are still open when this has passed without anything to do are those of clients that don't
/// react. With HTTP/2 the client closes, when it has heard that no new request is taken (RFC 9113 section 6.8).
const QUIET: Duration = Duration::from_secs(1);
