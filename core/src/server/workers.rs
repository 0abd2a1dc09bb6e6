//! The threads that serve, and how they stop taking connections.

use std::future::{Future, pending};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::future::join_all;
use pingora_core::{
    apps::ServerApp as _,
    protocols::{GetSocketDigest as _, SocketDigest, l4::stream::Stream as Transport},
    server::ListenFds,
    services::{Service, listening::Service as ListeningService},
};
use pingora_proxy::HttpProxy;
use pingora_timeout::fast_timeout::set_fast_timeout_to_tokio_threshold;
use tokio::sync::watch;

use super::Door;
use crate::proxy::Edge;

/// Bytes of a worker's stack. The deepest calls and expressions that are allowed need 22 MiB, and a
/// chain of closures as long as a hook can make one is freed by recursion. Only what is used
/// takes memory.
const STACK: usize = 64 * 1024 * 1024;

/// How long a worker may take to get going. It has nothing to do but to be scheduled.
const START_LIMIT: Duration = Duration::from_secs(30);

/// The most connections that are taken from one socket before it closes: more than can wait in one.
const MOST_WAITING: usize = 65_536;

/// What one worker serves with.
pub struct Serving {
    /// One for the listeners of each kind.
    pub(super) services: Vec<ListeningService<Door>>,
    /// The sockets of these services, by the names of their endpoints.
    pub(super) fds: ListenFds,
    /// The same sockets once more, for what still waits in them when the services have stopped.
    pub(super) late: Vec<(TcpListener, Arc<Door>)>,
    pub(super) proxy: Arc<HttpProxy<Edge>>,
    /// Tells the doors that a connection without a request has to go.
    pub(super) leave: watch::Sender<bool>,
}

/// The threads that serve.
#[derive(Debug)]
pub struct Workers {
    closing: Arc<watch::Sender<bool>>,
    opening: Arc<watch::Sender<bool>>,
    stage: Arc<Stage>,
    /// Each worker says once that it runs.
    running: (mpsc::Sender<()>, mpsc::Receiver<()>),
}

/// How far the workers have come.
#[derive(Debug, Default)]
struct Stage {
    workers: AtomicUsize,
    /// Workers that accept nothing any more.
    closed: AtomicUsize,
    /// Workers that have told their idle connections to go.
    left: AtomicUsize,
    /// Milliseconds between the two.
    grace: AtomicU64,
}

impl Default for Workers {
    /// No worker yet, and timers those of the workers' own runtimes: Pingora's faster ones for long
    /// times are shared by all threads, and each is kept until its time has come, used or not.
    fn default() -> Self {
        set_fast_timeout_to_tokio_threshold(Some(Duration::ZERO));
        Self {
            closing: Arc::new(watch::Sender::new(false)),
            opening: Arc::new(watch::Sender::new(false)),
            stage: Arc::default(),
            running: mpsc::channel(),
        }
    }
}

impl Workers {
    /// Starts a thread that serves with a service of Pingora's, at once and until the process ends.
    ///
    /// # Errors
    /// When the thread or its runtime can't be made.
    pub fn start<S: Service + 'static>(&self, name: &str, mut service: S) -> anyhow::Result<()> {
        let closing = self.closing.subscribe();
        self.spawn(name, async move {
            service.start_service(None, closing, 1).await;
        })
    }

    /// Starts a thread that serves with `serving` from [`Workers::open`] on, until the process ends, and does
    /// something else beside it, which is told when the process is to end, and may go on until it does.
    ///
    /// # Errors
    /// When the thread or its runtime can't be made.
    pub fn serve<B, R>(&self, name: &str, serving: Serving, beside: B) -> anyhow::Result<()>
    where
        B: FnOnce(watch::Receiver<bool>) -> R + Send + 'static,
        R: Future<Output = ()>,
    {
        self.stage.workers.fetch_add(1, Ordering::AcqRel);
        let closing = self.closing.subscribe();
        let mut opening = self.opening.subscribe();
        let (stage, running) = (self.stage.clone(), self.running.0.clone());
        self.spawn_with(name, move || async move {
            let beside = beside(closing.clone());
            let serve = async {
                // Nobody waits for it any more when this takes too long.
                let _ = running.send(());
                // An error says that whoever could open is gone.
                let _ = opening.wait_for(|open| *open).await;
                serving.run(closing, &stage).await;
            };
            tokio::join!(serve, beside);
        })
    }

    fn spawn<F>(&self, name: &str, work: F) -> anyhow::Result<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.spawn_with(name, move || work)
    }

    /// A thread whose runtime runs `work` and what that spawns, until the process ends.
    fn spawn_with<F: Future<Output = ()>>(
        &self,
        name: &str,
        work: impl FnOnce() -> F + Send + 'static,
    ) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("can't make the runtime of a worker")?;
        // Were the other end gone, Pingora would report an error.
        let open = self.closing.clone();
        thread::Builder::new()
            .name(name.to_owned())
            .stack_size(STACK)
            .spawn(move || {
                let _open = open;
                runtime.block_on(async {
                    work().await;
                    // The listeners are closed; connections are served until the process ends.
                    pending::<()>().await;
                });
            })
            .context("can't start a worker")?;
        Ok(())
    }

    /// Waits until all workers run.
    ///
    /// # Errors
    /// When one doesn't.
    pub fn wait_running(&self) -> anyhow::Result<()> {
        for _ in 0..self.stage.workers.load(Ordering::Acquire) {
            let said = self.running.1.recv_timeout(START_LIMIT);
            said.context("a worker does not start")?;
        }
        Ok(())
    }

    /// Lets the workers accept connections.
    pub fn open(&self) {
        let _ = self.opening.send(true);
    }

    /// Closes the listeners. What has waited in them is accepted before. Requests in flight go on, also those that
    /// begin within `grace`; connections without a request end then.
    pub fn close(&self, grace: Duration) {
        let millis = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.stage.grace.store(millis, Ordering::Release);
        // Nobody listens to the signal when no worker was started.
        let _ = self.closing.send(true);
    }

    /// Whether every worker has accepted what it will.
    pub fn closed(&self) -> bool {
        self.stage.closed.load(Ordering::Acquire) >= self.stage.workers.load(Ordering::Acquire)
    }

    /// Whether every worker has told its idle connections to go.
    pub fn left(&self) -> bool {
        self.stage.left.load(Ordering::Acquire) >= self.stage.workers.load(Ordering::Acquire)
    }
}

impl Serving {
    /// Serves until `closing` says that the listeners close, and then until no connection is idle.
    async fn run(self, closing: watch::Receiver<bool>, stage: &Stage) {
        let Self {
            mut services,
            fds,
            late,
            proxy,
            leave,
        } = self;
        let started = services
            .iter_mut()
            .map(|service| service.start_service(Some(fds.clone()), closing.clone(), 1));
        join_all(started).await;
        for (socket, door) in late {
            // The socket closes right behind the look that finds nothing in it.
            accept_waiting(&socket, &door, &closing);
        }
        stage.closed.fetch_add(1, Ordering::AcqRel);
        tokio::time::sleep(Duration::from_millis(stage.grace.load(Ordering::Acquire))).await;
        proxy.cleanup().await;
        let _ = leave.send(true);
        stage.left.fetch_add(1, Ordering::AcqRel);
        // Doors that have not looked yet would take its end for the same.
        pending::<()>().await;
    }
}

/// Takes the connections that were established before the listeners closed, and serves them.
fn accept_waiting(socket: &TcpListener, door: &Arc<Door>, closing: &watch::Receiver<bool>) {
    for _ in 0..MOST_WAITING {
        let accepted = match socket.accept() {
            Ok((accepted, _)) => accepted,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            // The client has left again (accept(2) tells so, too).
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
            Err(error) => {
                tracing::warn!("connections that waited are lost: {error}");
                return;
            }
        };
        let stream = accepted
            .set_nonblocking(true)
            .and_then(|()| tokio::net::TcpStream::from_std(accepted));
        let Ok(stream) = stream else { continue };
        let mut stream = Transport::from(stream);
        // Without it answers are only slower.
        let _ = stream.set_nodelay();
        stream.set_socket_digest(SocketDigest::from_raw_fd(stream.as_raw_fd()));
        let open = door.counted();
        let (door, closing) = (door.clone(), closing.clone());
        tokio::spawn(async move {
            let _open = open;
            ListeningService::handle_event(Box::new(stream), door, closing).await;
        });
    }
}
