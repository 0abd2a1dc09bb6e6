//! The pipeline against real folders, with a target that reads one file.

#![allow(clippy::unwrap_used)]

mod configmap;
mod editors;
mod failures;
mod folders;
mod log;
mod requests;
mod watcher;

#[path = "../../../tests/support/atomic_writer.rs"]
mod atomic_writer;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use edgewright_script::diagnostic::Diagnostic;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::{Changes, Initial, Options, Outcome, ReloadHandle, ReloadStatus, Reloadable};

/// Far more than anything here takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// No poll within a test: only events can tell.
const EVENTS_ONLY: Options = Options {
    debounce: Duration::from_millis(50),
    max_debounce: Duration::from_millis(500),
    poll: Duration::from_secs(3600),
    min_interval: Duration::from_millis(100),
};

/// The same with a quick poll.
const QUICK_POLL: Options = Options {
    poll: Duration::from_millis(30),
    ..EVENTS_ONLY
};

/// Waits until `done`; the test fails when that takes too long.
#[track_caller]
fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !done() {
        assert!(Instant::now() < end, "not within {DEADLINE:?}: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

fn revision(content: &str) -> String {
    let hash = Sha256::digest(content);
    hash[..6].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What the target did, for the tests to look at.
#[derive(Default)]
struct Probe {
    checks: AtomicU64,
    attempts: AtomicU64,
    dirs: Mutex<Vec<PathBuf>>,
    /// While closed, `reload` waits after it has read.
    closed: Mutex<bool>,
    opened: Condvar,
}

impl Probe {
    fn checks(&self) -> u64 {
        self.checks.load(Ordering::SeqCst)
    }

    fn attempts(&self) -> u64 {
        self.attempts.load(Ordering::SeqCst)
    }

    fn set_closed(&self, closed: bool) {
        *self.closed.lock().unwrap() = closed;
        self.opened.notify_all();
    }
}

/// Reads one file. Content that begins with `bad` is refused, `panic` panics; `panic at once` does so when
/// only asked for a change.
struct Target {
    file: PathBuf,
    serving: String,
    seen: Option<String>,
    probe: Arc<Probe>,
}

impl Reloadable for Target {
    fn changed(&mut self) -> bool {
        let content = fs::read_to_string(&self.file).ok();
        self.probe.checks.fetch_add(1, Ordering::SeqCst);
        if let Some("panic at once") = content.as_deref() {
            panic!("of the target when asked");
        }
        content != self.seen
    }

    fn reload(&mut self) -> Outcome {
        self.seen = fs::read_to_string(&self.file).ok();
        self.probe.attempts.fetch_add(1, Ordering::SeqCst);
        let closed = self.probe.closed.lock().unwrap();
        let opened = self.probe.opened.wait_while(closed, |closed| *closed);
        drop(opened.unwrap());
        let error = |message: &str| Outcome::Failed {
            errors: vec![Diagnostic::error(message).at("routes.rhai", 1, 1)],
        };
        match &self.seen {
            None => error("no such file"),
            Some(content) if content.starts_with("bad") => error(content),
            Some(content) if content.starts_with("panic") => panic!("of the {}", "target"),
            Some(content) if *content == self.serving => Outcome::Unchanged {
                revision: revision(content),
            },
            Some(content) => {
                let name = "routes.rhai";
                let before = BTreeMap::from([(name, self.serving.as_str())]);
                let now = BTreeMap::from([(name, content.as_str())]);
                let changes = Changes::default().with_files(&before, &now);
                self.serving.clone_from(content);
                Outcome::Loaded {
                    revision: revision(content),
                    summary: format!("bytes={}", content.len()),
                    changes: Box::new(changes),
                }
            }
        }
    }

    fn watched_dirs(&self) -> Vec<PathBuf> {
        self.probe.dirs.lock().unwrap().clone()
    }
}

/// A folder with a `routes.rhai`, and what it takes to start a pipeline on it.
struct Site {
    root: TempDir,
    dir: PathBuf,
    probe: Arc<Probe>,
}

impl Site {
    /// `conf/routes.rhai` in a folder of its own holds `content`.
    fn new(content: &str) -> Self {
        let site = Self::empty();
        fs::write(site.file(), content).unwrap();
        site
    }

    fn empty() -> Self {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("conf");
        fs::create_dir(&dir).unwrap();
        let probe = Probe {
            dirs: Mutex::new(vec![dir.clone()]),
            ..Probe::default()
        };
        Site {
            root,
            dir,
            probe: Arc::new(probe),
        }
    }

    fn file(&self) -> PathBuf {
        self.dir.join("routes.rhai")
    }

    fn watch_only(&self, dirs: &[&Path]) {
        *self.probe.dirs.lock().unwrap() = dirs.iter().map(|dir| dir.to_path_buf()).collect();
    }

    /// The content is loaded already.
    fn target(&self) -> (Target, Initial) {
        let content = fs::read_to_string(self.file()).unwrap();
        let initial = Initial {
            revision: revision(&content),
            loaded_at: SystemTime::now(),
            refused: Vec::new(),
        };
        let target = Target {
            file: self.file(),
            seen: Some(content.clone()),
            serving: content,
            probe: self.probe.clone(),
        };
        (target, initial)
    }

    /// Starts the pipeline and waits until it is at rest, so that what comes after is noticed by its own
    /// events and not by the first look.
    fn start(&self, options: Options) -> ReloadHandle {
        let (target, initial) = self.target();
        let reload = super::spawn(target, initial, options).unwrap();
        self.at_rest();
        reload
    }

    fn at_rest(&self) {
        eventually("the first look", || self.probe.checks() > 0);
    }
}

#[track_caller]
fn serves(reload: &ReloadHandle, content: &str) -> Arc<ReloadStatus> {
    let wanted = revision(content);
    eventually(&format!("{content:?} serves"), || {
        let status = reload.status();
        status.revision == wanted && status.last_error.is_none()
    });
    reload.status()
}

#[track_caller]
fn refused(reload: &ReloadHandle, reason: &str) -> Arc<ReloadStatus> {
    eventually(&format!("refused for {reason:?}"), || {
        let status = reload.status();
        let error = status.last_error.as_deref().unwrap_or_default();
        error.contains(reason)
    });
    reload.status()
}

/// In one step, so that a poll can't see half of it.
fn replace(site: &Site, content: &str) {
    let new = site.root.path().join("new");
    fs::write(&new, content).unwrap();
    fs::rename(&new, site.file()).unwrap();
}
