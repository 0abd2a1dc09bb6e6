//! Watching folders for changes, and noticing when a watch is dead.
//!
//! Folders are watched, never files: inotify follows the inode, so a watch on `routes.rhai` or on `..data`
//! dies with the first ConfigMap update or the first editor that saves by renaming. Names are not filtered
//! either: from the second ConfigMap update on only `..data` and dated folders show up in events.
//!
//! A watch on a folder dies, too, when the folder is removed, moved or unmounted. Rather than to interpret
//! the events that tell so (some of which notify 8 keeps to itself, issue 627), every look at the files
//! first watches each folder again. That is idempotent while the watch lives.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{ErrorKind, Event, EventKind, RecursiveMode, Watcher};

use super::trigger::Triggers;

/// Makes a watcher; called again after one has failed.
pub(super) type Factory = Box<dyn FnMut() -> notify::Result<Box<dyn Watcher + Send>> + Send>;

/// The watcher of the platform, inotify on Linux.
pub(super) fn inotify(triggers: Arc<Triggers>) -> Factory {
    Box::new(move || {
        let triggers = triggers.clone();
        let watcher = notify::recommended_watcher(move |event| on_event(&triggers, event))?;
        Ok(Box::new(watcher))
    })
}

/// Every event means "something may have changed"; what, the content hash tells.
pub(super) fn on_event(triggers: &Triggers, event: notify::Result<Event>) {
    match event {
        // Reading the files makes these, and would feed back.
        Ok(event) if matches!(event.kind, EventKind::Access(_)) && !event.need_rescan() => {}
        Ok(_) => triggers.file_event(),
        Err(error) => {
            tracing::debug!("file watcher: {error}");
            triggers.watcher_error();
        }
    }
}

/// The folders under watch.
pub(super) struct FolderWatch {
    make: Factory,
    watcher: Option<Box<dyn Watcher + Send>>,
    /// For the warning: how often the files are read when they can't be watched.
    poll: Duration,
    armed: BTreeMap<PathBuf, FolderId>,
    missing: BTreeSet<PathBuf>,
    polling: bool,
    errors: u64,
}

/// Device and inode: tells a folder from another that took its place.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FolderId {
    device: u64,
    inode: u64,
}

impl FolderWatch {
    pub(super) fn new(make: Factory, poll: Duration) -> Self {
        FolderWatch {
            make,
            watcher: None,
            poll,
            armed: BTreeMap::new(),
            missing: BTreeSet::new(),
            polling: false,
            errors: 0,
        }
    }

    /// Whether a folder is left to the poll because it can't be watched.
    pub(super) fn polling(&self) -> bool {
        self.polling
    }

    /// Failures to watch since the start.
    pub(super) fn errors(&self) -> u64 {
        self.errors
    }

    /// The folders whose watch lives, sorted.
    pub(super) fn watching(&self) -> Vec<String> {
        let armed = self.armed.keys();
        armed.map(|dir| dir.display().to_string()).collect()
    }

    /// Whether folders are waited for.
    pub(super) fn has_missing(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Whether a folder that was missing is there now.
    pub(super) fn missing_returned(&self) -> bool {
        self.missing.iter().any(|dir| dir.is_dir())
    }

    /// After an error of the watcher itself: the next [`sync`](Self::sync) starts with a new one.
    pub(super) fn discard(&mut self) {
        self.armed.clear();
        if let Some(watcher) = self.watcher.take() {
            // notify's destructor panics when the watcher's own thread is gone.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(watcher)));
        }
    }

    /// Watches exactly `dirs`, each anew. True when a folder is under watch that wasn't before: what
    /// changed in it until now has gone unnoticed.
    pub(super) fn sync(&mut self, dirs: &[PathBuf]) -> bool {
        let wanted = with_links(dirs);
        self.missing.clear();
        if wanted.is_empty() {
            self.discard();
            self.polling = false;
            return false;
        }
        let mut failure = None;
        if self.watcher.is_none() {
            match (self.make)() {
                Ok(watcher) => self.watcher = Some(watcher),
                Err(error) => failure = Some(error),
            }
        }
        let mut found = BTreeMap::new();
        for dir in wanted {
            match folder_id(&dir) {
                Some(id) => {
                    found.insert(dir, id);
                }
                None => {
                    self.missing.insert(dir);
                }
            }
        }
        // First all that go, because two paths to one folder share one kernel watch.
        let gone: Vec<PathBuf> = self
            .armed
            .iter()
            .filter(|(dir, id)| found.get(*dir) != Some(*id))
            .map(|(dir, _)| dir.clone())
            .collect();
        for dir in gone {
            self.armed.remove(&dir);
            // An error here says that the watch is dead already.
            let _ = self.guarded(|watcher| watcher.unwatch(&dir));
        }
        let mut newly = false;
        for (dir, id) in found {
            match self.guarded(|watcher| watcher.watch(&dir, RecursiveMode::NonRecursive)) {
                Ok(()) => newly |= self.armed.insert(dir, id).is_none(),
                Err(error) => {
                    self.armed.remove(&dir);
                    if matches!(error.kind, ErrorKind::PathNotFound) {
                        self.missing.insert(dir);
                    } else {
                        failure.get_or_insert(error);
                    }
                }
            }
        }
        self.report(failure);
        newly
    }

    /// Calls the watcher. notify panics when its own thread is gone, which happens when the process may not
    /// start another one.
    fn guarded(
        &mut self,
        call: impl FnOnce(&mut dyn Watcher) -> notify::Result<()>,
    ) -> notify::Result<()> {
        let Some(watcher) = &mut self.watcher else {
            return Err(notify::Error::generic("there is no file watcher"));
        };
        catch_unwind(AssertUnwindSafe(|| call(watcher.as_mut()))).unwrap_or_else(|_| {
            self.discard();
            Err(notify::Error::generic(
                "the file watcher's thread has ended",
            ))
        })
    }

    /// Warns once when watching begins to fail, and tells when it works again.
    fn report(&mut self, failure: Option<notify::Error>) {
        match failure {
            Some(error) => {
                self.errors += 1;
                if !self.polling {
                    tracing::warn!(
                        "cannot watch for changes, reading the files every {:?} instead: {error}{}",
                        self.poll,
                        hint(&error)
                    );
                }
                self.polling = true;
            }
            None if self.polling => {
                tracing::info!("watching for changes works again");
                self.polling = false;
            }
            None => {}
        }
    }
}

/// What to raise when a limit is exhausted. The limits count per user id over all pods of a node.
fn hint(error: &notify::Error) -> &'static str {
    /// `EMFILE`; the same number on every Unix that inotify, kqueue or FSEvents run on.
    const TOO_MANY_OPEN_FILES: i32 = 24;
    match &error.kind {
        ErrorKind::MaxFilesWatch => " (fs.inotify.max_user_watches is exhausted)",
        ErrorKind::Io(error) if error.raw_os_error() == Some(TOO_MANY_OPEN_FILES) => {
            " (fs.inotify.max_user_instances or the limit of open files is exhausted)"
        }
        _ => "",
    }
}

/// The folders, and for each link on the way to one the folder that holds the link: a watch sees through
/// links, so it wouldn't see `current -> releases/7` pointed to another release.
fn with_links(dirs: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut wanted = BTreeSet::new();
    for dir in dirs {
        // Without a current folder the path stays relative, and is found missing.
        let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
        let holders = dir.ancestors().filter(|path| path.is_symlink());
        wanted.extend(holders.filter_map(Path::parent).map(Path::to_path_buf));
        wanted.insert(dir);
    }
    wanted
}

fn folder_id(dir: &Path) -> Option<FolderId> {
    let metadata = fs::metadata(dir).ok().filter(fs::Metadata::is_dir)?;
    Some(FolderId {
        device: metadata.dev(),
        inode: metadata.ino(),
    })
}
