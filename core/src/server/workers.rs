//! The threads that serve, and how they stop taking connections.

use std::future::{Future, pending};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use pingora_timeout::fast_timeout::set_fast_timeout_to_tokio_threshold;
use tokio::sync::watch;

use super::Server;

/// Bytes of a worker's stack. The deepest calls and expressions that are allowed need 22 MiB, and a
/// chain of closures as long as a hook can make one is freed by recursion. Only what is used
/// takes memory.
const STACK: usize = 64 * 1024 * 1024;

/// How long a worker may take to get going. It has nothing to do but to be scheduled.
const START_LIMIT: Duration = Duration::from_secs(30);

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
    /// Starts a thread that does `work` until the process ends. It is told when the listeners are to be closed.
    ///
    /// # Errors
    /// When the thread or its runtime can't be made.
    pub fn start<W, R>(&self, name: &str, work: W) -> anyhow::Result<()>
    where
        W: FnOnce(watch::Receiver<bool>) -> R + Send + 'static,
        R: Future<Output = ()>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("can't make the runtime of a worker")?;
        let closing = self.closing.subscribe();
        // Were the other end gone, Pingora would report an error.
        let open = self.closing.clone();
        thread::Builder::new()
            .name(name.to_owned())
            .stack_size(STACK)
            .spawn(move || {
                let _open = open;
                crate::memory::keep_buffers();
                runtime.block_on(async {
                    work(closing).await;
                    // The listeners are closed; connections are served until the process ends.
                    pending::<()>().await;
                });
            })
            .context("can't start a worker")?;
        Ok(())
    }

    /// Starts a thread that serves with `server` from [`Workers::open`] on, and does something else beside it, as
    /// [`Workers::start`] does.
    ///
    /// # Errors
    /// When the thread or its runtime can't be made.
    pub fn serve<W, R>(&self, name: &str, mut server: Server, beside: W) -> anyhow::Result<()>
    where
        W: FnOnce(watch::Receiver<bool>) -> R + Send + 'static,
        R: Future<Output = ()>,
    {
        self.stage.workers.fetch_add(1, Ordering::AcqRel);
        let mut opening = self.opening.subscribe();
        let (stage, running) = (self.stage.clone(), self.running.0.clone());
        self.start(name, move |closing| async move {
            let beside = beside(closing.clone());
            let serve = async {
                // Nobody waits for it any more when this takes too long.
                let _ = running.send(());
                // An error says that whoever could open is gone.
                let _ = opening.wait_for(|open| *open).await;
                server.accept(&closing).await;
                stage.closed.fetch_add(1, Ordering::AcqRel);
                let grace = stage.grace.load(Ordering::Acquire);
                tokio::time::sleep(Duration::from_millis(grace)).await;
                server.leave().await;
                stage.left.fetch_add(1, Ordering::AcqRel);
            };
            tokio::join!(serve, beside);
        })
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
        self.opening.send_replace(true);
    }

    /// Closes the listeners. What has waited in them is accepted before. Requests in flight go on, also those that
    /// begin within `grace`; connections without a request end then.
    pub fn close(&self, grace: Duration) {
        let millis = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.stage.grace.store(millis, Ordering::Release);
        self.closing.send_replace(true);
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
