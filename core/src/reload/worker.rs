//! The reload thread: waits for a trigger, looks at the files, attempts, reports.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwap;
use edgewright_script::diagnostic::Diagnostic;

use super::status::ReloadStatus;
use super::trigger::{Plan, Triggers, Wake};
use super::watch::{Factory, FolderWatch};
use super::{Changes, Options, Outcome, Reloadable};

/// How often a folder that doesn't exist is looked for; one `stat` each.
const RETURN_CHECK: Duration = Duration::from_millis(250);

/// Everything that the reload thread owns.
pub(super) struct Worker<T> {
    target: T,
    options: Options,
    folders: FolderWatch,
    dirs: Vec<PathBuf>,
    triggers: Arc<Triggers>,
    published: Arc<ArcSwap<ReloadStatus>>,
    status: ReloadStatus,
    /// Errors that the watcher reported by itself, on top of those of arming it.
    watcher_errors: u64,
    poll_at: Instant,
    last_began: Option<Instant>,
    /// Whether the attempt that runs has panicked.
    panicked: bool,
}

/// The start of one attempt, or of a look that may become one.
struct Begun {
    at: SystemTime,
    timer: Instant,
}

/// Says that the thread has ended, however it ends.
struct Finish(Arc<Triggers>);

impl Drop for Finish {
    fn drop(&mut self) {
        if thread::panicking() {
            tracing::error!("the reload thread has ended: changes are no longer noticed");
        }
        self.0.finished();
    }
}

impl<T: Reloadable> Worker<T> {
    pub(super) fn new(
        target: T,
        options: Options,
        watcher: Factory,
        triggers: Arc<Triggers>,
        published: Arc<ArcSwap<ReloadStatus>>,
    ) -> Self {
        let status = ReloadStatus::clone(&published.load());
        Worker {
            target,
            options,
            folders: FolderWatch::new(watcher, options.poll),
            dirs: Vec::new(),
            triggers,
            published,
            status,
            watcher_errors: 0,
            // At once: the files may have changed between the load at start and the first watch.
            poll_at: Instant::now(),
            last_began: None,
            panicked: false,
        }
    }

    /// Runs until the pipeline is stopped.
    pub(super) fn run(mut self) {
        let _finish = Finish(self.triggers.clone());
        self.ask_dirs();
        loop {
            let plan = Plan {
                poll_at: self.poll_at,
                return_at: (self.folders.has_missing()).then(|| Instant::now() + RETURN_CHECK),
                not_before: self.last_began.map(|at| at + self.options.min_interval),
            };
            match self.triggers.wait(&plan, &self.options) {
                Wake::Stop => return,
                Wake::Files => self.look(false),
                Wake::Poll => self.look(true),
                Wake::Return => {
                    if self.folders.missing_returned() {
                        self.arm();
                        // Not at once but through the debounce: the files still have to be written.
                        self.triggers.file_event();
                    }
                }
                Wake::Asked(replies) => {
                    let outcome = self.answer();
                    for reply in replies {
                        reply(outcome.clone());
                    }
                }
            }
        }
    }

    /// After a file event or by the poll: attempts a reload if anything changed, else stays silent.
    fn look(&mut self, by_poll: bool) {
        let begun = self.begin();
        let outcome = match self.changed() {
            Ok(false) => {
                self.poll_at = Instant::now() + self.options.poll;
                return;
            }
            Ok(true) => self.reload(),
            Err(failed) => failed,
        };
        self.conclude(&begun, &outcome, by_poll);
    }

    /// On request: always an outcome. After a failure it attempts again although nothing changed, because
    /// "unchanged" would be a wrong answer to who wants to know whether the files are in use.
    fn answer(&mut self) -> Outcome {
        let begun = self.begin();
        let outcome = match self.changed() {
            Ok(false) if self.status.last_error.is_none() => Outcome::Unchanged {
                revision: self.status.revision.clone(),
            },
            Ok(_) => self.reload(),
            Err(failed) => failed,
        };
        self.conclude(&begun, &outcome, false);
        outcome
    }

    fn begin(&mut self) -> Begun {
        // Watch first, look after: what changes from here on makes an event.
        self.arm();
        self.panicked = false;
        Begun {
            at: SystemTime::now(),
            timer: Instant::now(),
        }
    }

    fn changed(&mut self) -> Result<bool, Outcome> {
        caught(|| self.target.changed()).map_err(|panic| self.failed_by(&panic))
    }

    fn reload(&mut self) -> Outcome {
        self.last_began = Some(Instant::now());
        caught(|| self.target.reload()).unwrap_or_else(|panic| self.failed_by(&panic))
    }

    fn failed_by(&mut self, panic: &str) -> Outcome {
        self.panicked = true;
        let error = Diagnostic::error(format!("internal error, reloading panicked: {panic}"));
        Outcome::Failed {
            errors: vec![error],
        }
    }

    fn conclude(&mut self, begun: &Begun, outcome: &Outcome, by_poll: bool) {
        let took = begun.timer.elapsed();
        let error_before = self.status.last_error.clone();
        self.status.record(outcome, begun.at, took);
        // A target that panics each time it is asked must not fill the log at the pace of the poll.
        let repeated = by_poll && self.panicked && self.status.last_error == error_before;
        if !repeated {
            self.log(outcome);
        }
        self.ask_dirs();
        if self.arm() {
            // A folder that is new to the watch may have changed after it was read.
            self.triggers.file_event();
        }
        self.poll_at = Instant::now() + self.options.poll;
    }

    /// One line for each attempt.
    fn log(&self, outcome: &Outcome) {
        let serving = &self.status.revision;
        match outcome {
            Outcome::Loaded {
                summary, changes, ..
            } => {
                let Changes { routes, pools, .. } = &**changes;
                let line = format!(
                    "reloaded revision={serving} {summary} changed: routes {routes}, pools {pools}, {changes}"
                );
                if changes.unused.is_empty() {
                    tracing::info!("{line}");
                } else {
                    tracing::warn!("{line}");
                }
            }
            Outcome::Unchanged { .. } => {
                tracing::info!("reload: nothing changed, revision {serving} keeps serving");
            }
            Outcome::Failed { .. } => {
                let reason = self.status.last_error.as_deref().unwrap_or_default();
                tracing::error!("reload refused, revision {serving} keeps serving: {reason}");
            }
        }
    }

    fn ask_dirs(&mut self) {
        match caught(|| self.target.watched_dirs()) {
            Ok(dirs) => self.dirs = dirs,
            Err(panic) => {
                tracing::error!(
                    "internal error, asking for the folders to watch panicked: {panic}"
                );
            }
        }
    }

    /// Watches the folders anew and publishes the status. True when a folder is new to the watch.
    fn arm(&mut self) -> bool {
        let errors = self.triggers.take_watcher_errors();
        if errors > 0 {
            self.watcher_errors += errors;
            self.folders.discard();
        }
        let newly = self.folders.sync(&self.dirs);
        self.status.watch_errors = self.watcher_errors + self.folders.errors();
        self.status.polling = self.folders.polling();
        self.status.watching = self.folders.watching();
        if **self.published.load() != self.status {
            self.published.store(Arc::new(self.status.clone()));
        }
        newly
    }
}

/// Runs `call`; a panic becomes its message. The target is told in [`Reloadable`] to bear that.
fn caught<R>(call: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| message(panic.as_ref()))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
