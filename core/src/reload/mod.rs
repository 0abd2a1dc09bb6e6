//! Hot reload: noticing that the user's files changed, and replacing what serves by what they say now.
//!
//! One thread, named `reload`, does all of it, so that reading, compiling and freeing a generation never run
//! on a proxy worker. What is reloaded is behind [`Reloadable`]; this module decides *when*:
//!
//! * a file event in a watched folder, after a trailing debounce (a ConfigMap update makes seven events, and
//!   the first of them comes before the new content is in place);
//! * a slow poll, for file systems and limits where events don't arrive;
//! * an explicit request: SIGHUP ([`reload_on_hangup`]) or the admin listener ([`ReloadHandle::request`]).
//!
//! Whatever arrives while an attempt runs collapses into one more attempt after it, so the newest content
//! always wins. A failed attempt changes nothing: the last good revision keeps serving.

mod changes;
mod hangup;
mod status;
mod trigger;
mod watch;
mod worker;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use arc_swap::ArcSwap;
use edgewright_script::diagnostic::Diagnostic;
use tokio::sync::oneshot;

pub use changes::{Changes, Counted};
pub use hangup::{Hangup, reload_on_hangup};
pub(crate) use status::failure_text;
pub use status::{Attempt, Counts, ReloadStatus, ResultKind};

use trigger::Triggers;
use watch::Factory;
use worker::Worker;

/// How long [`ReloadHandle::stop`] waits for an attempt that is still running before it lets the thread go
/// on alone. An attempt can't be interrupted, and it must not hold up the end of the process.
const STOP_WAIT: Duration = Duration::from_secs(1);

/// What one attempt did.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The files say what the serving revision says already; nothing was replaced.
    Unchanged {
        /// The revision that serves.
        revision: String,
    },
    /// A new revision serves.
    Loaded {
        /// The new revision.
        revision: String,
        /// What it holds, for the log line: `routes=12 pools=3`.
        summary: String,
        /// What is different from the revision before.
        changes: Box<Changes>,
    },
    /// The files were refused; the earlier revision keeps serving.
    Failed {
        /// Why, in the order found.
        errors: Vec<Diagnostic>,
    },
}

impl Outcome {
    /// The kind alone, as metrics and JSON name it.
    pub fn kind(&self) -> ResultKind {
        match self {
            Outcome::Unchanged { .. } => ResultKind::Unchanged,
            Outcome::Loaded { .. } => ResultKind::Loaded,
            Outcome::Failed { .. } => ResultKind::Failed,
        }
    }
}

/// Something that can be read again from files and replaced while it serves.
///
/// All methods are called from the reload thread only, one at a time. A panic in any of them is caught, an
/// attempt that panics counts as failed, and the methods are called again later: build first and swap last,
/// so that a panic leaves nothing half done.
pub trait Reloadable: Send + 'static {
    /// Whether the files differ from what the **last attempt** read, whether it succeeded or failed; the
    /// load at start is the first attempt. Compare contents (a hash), never modification times.
    ///
    /// It is the last attempt and not the serving generation, because the poll asks this every few seconds:
    /// compared with what serves, one broken file would be refused and logged anew at every poll. So
    /// `reload` must remember what it read also when it fails, and:
    ///
    /// * a file that was missing or unreadable in the last attempt is part of what is compared: still
    ///   missing is no change, back again is one;
    /// * only the files that were read up to the point of failure can be compared, and that is enough;
    /// * an attempt that got no consistent reading (the folder was swapped under it each time it tried) must
    ///   leave this `true`, so that the next trigger tries again.
    fn changed(&mut self) -> bool;

    /// Reads, compiles, validates and swaps. Keeps the old generation on any error. An explicit request
    /// calls this also when nothing changed since a failed attempt, so that whoever asks sees the errors.
    ///
    /// Answers [`Outcome::Unchanged`] when the files turn out to be those of the serving generation, for
    /// instance when a bad edit was taken back. Retries by itself when the folder was swapped while it read.
    fn reload(&mut self) -> Outcome;

    /// The folders to watch now, non-recursively. Asked at the start and again after each attempt, also a
    /// failed one (a file in another folder may be what failed). Folders that don't exist are fine.
    fn watched_dirs(&self) -> Vec<PathBuf>;
}

/// What serves when the pipeline starts.
#[derive(Debug, Clone)]
pub struct Initial {
    /// The revision of the load at start.
    pub revision: String,
    /// When it was loaded.
    pub loaded_at: SystemTime,
    /// Why the files were refused, when something else than they serves.
    pub refused: Vec<Diagnostic>,
}

/// The pace of the pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Quiet time after the last file event before the files are looked at.
    pub debounce: Duration,
    /// Longest wait from the first event of a burst that doesn't end.
    pub max_debounce: Duration,
    /// Time between two looks at the files when no event asks for one.
    pub poll: Duration,
    /// Shortest time from the start of one attempt to the start of the next that a file event may cause.
    /// Explicit requests and the poll don't wait for it.
    pub min_interval: Duration,
}

impl Default for Options {
    /// 200 ms, 2 s, 10 s, 1 s.
    fn default() -> Self {
        Options {
            debounce: Duration::from_millis(200),
            max_debounce: Duration::from_secs(2),
            poll: Duration::from_secs(10),
            min_interval: Duration::from_secs(1),
        }
    }
}

/// Why a request has no outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The deadline passed. The attempt still takes place and shows in the status.
    #[error("the reload did not end within {} s; its result will be in the status", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The pipeline was stopped, because the process is ending.
    #[error("reloading has stopped")]
    Stopped,
}

/// A handle on the pipeline. Clones are handles on the same one; when the last goes, the thread ends.
#[derive(Clone)]
pub struct ReloadHandle {
    pipeline: Arc<Pipeline>,
}

struct Pipeline {
    triggers: Arc<Triggers>,
    status: Arc<ArcSwap<ReloadStatus>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Starts the pipeline for `target`, of which `initial` serves already.
///
/// The files are looked at once right after the folders are watched, because they may have changed since
/// the load at start. Trouble with watching is never an error here: the poll remains.
///
/// # Errors
/// When the thread can't be started.
pub fn spawn(
    target: impl Reloadable,
    initial: Initial,
    options: Options,
) -> anyhow::Result<ReloadHandle> {
    start(target, initial, options, watch::inotify, Worker::run)
}

/// [`spawn`] with the watcher and the body of the thread to be chosen.
fn start<T: Reloadable>(
    target: T,
    initial: Initial,
    options: Options,
    watcher: impl FnOnce(Arc<Triggers>) -> Factory,
    run: impl FnOnce(Worker<T>) + Send + 'static,
) -> anyhow::Result<ReloadHandle> {
    let triggers = Arc::new(Triggers::default());
    let status = Arc::new(ArcSwap::from_pointee(ReloadStatus::new(&initial)));
    let worker = Worker::new(
        target,
        options,
        watcher(triggers.clone()),
        triggers.clone(),
        status.clone(),
    );
    let thread = thread::Builder::new()
        .name("reload".to_owned())
        .spawn(move || run(worker))
        .context("cannot start the reload thread")?;
    Ok(ReloadHandle {
        pipeline: Arc::new(Pipeline {
            triggers,
            status,
            thread: Mutex::new(Some(thread)),
        }),
    })
}

impl ReloadHandle {
    /// Asks for a reload and waits for its outcome, at most `deadline`. Blocks: not for a proxy worker.
    ///
    /// An attempt that runs already doesn't count, since it may have read older content; the answer is that
    /// of the attempt after it, which all who asked in the meantime share.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn request(&self, deadline: Duration) -> Result<Outcome, RequestError> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.pipeline.triggers.ask(Some(Box::new(move |outcome| {
            // No one listens any more after the deadline.
            let _ = reply.send(outcome);
        })));
        answer.recv_timeout(deadline).map_err(|error| match error {
            mpsc::RecvTimeoutError::Timeout => RequestError::TimedOut(deadline),
            mpsc::RecvTimeoutError::Disconnected => RequestError::Stopped,
        })
    }

    /// Asks for a reload without blocking. The receiver gives the outcome, or an error when the pipeline
    /// stops first. Dropping the receiver doesn't take the request back.
    pub fn submit(&self) -> oneshot::Receiver<Outcome> {
        let (reply, answer) = oneshot::channel();
        self.pipeline.triggers.ask(Some(Box::new(move |outcome| {
            let _ = reply.send(outcome);
        })));
        answer
    }

    /// The state now. Takes no lock.
    pub fn status(&self) -> Arc<ReloadStatus> {
        self.pipeline.status.load_full()
    }

    /// Ends the pipeline and joins its thread. Requests that wait get [`RequestError::Stopped`].
    ///
    /// Waits at most 1 s for an attempt that runs; after that the thread is left to end by itself.
    pub fn stop(&self) {
        self.pipeline.stop();
    }
}

impl fmt::Debug for ReloadHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReloadHandle")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

impl Pipeline {
    fn stop(&self) {
        self.triggers.stop();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(thread) = thread else { return };
        // The target may own the last handle; the thread can't wait for itself.
        if thread.thread().id() == thread::current().id() {
            return;
        }
        if self.triggers.wait_finished(STOP_WAIT) {
            // A panic was reported by the thread itself.
            let _ = thread.join();
        } else {
            tracing::warn!("a reload is still running; not waiting for it");
        }
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.stop();
    }
}
