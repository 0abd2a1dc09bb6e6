//! The last good files, kept for a start at which the present ones are refused.
//!
//! A pod whose ConfigMap is broken goes on serving, until its node is drained or its container is restarted: then it
//! would not start again. With `--last-good DIR` every load that succeeds leaves a copy of its files in DIR, from which
//! a later start serves when it has to.
//!
//! What is copied: every file that was read from the configuration's own folder, whatever it holds, so secrets and keys
//! in that folder too. The copies can be read by this user only (0600 in a folder of 0700). Files in `[files] allow`
//! are not copied but read where they stand, also by a start from the copy: that is where secrets and
//! certificates are mounted, and an old copy of a key would outlive its rotation.
//!
//! ```text
//! DIR/edgewright-last-good/           0700
//!     lock                            held while one process writes
//!     current -> copy-REVISION-N      renamed when the copy is complete and on the disk
//!     copy-REVISION-N/manifest        names and hashes of all files, behind its own hash
//!     copy-REVISION-N/files/...
//! ```

mod manifest;
#[cfg(test)]
mod tests;
mod write;

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};

use crate::files::Folder;
use manifest::Manifest;

/// The folder in the folder that the user names: that one may be open to others, as an emptyDir is.
const OWN: &str = "edgewright-last-good";
const CURRENT: &str = "current";
const FILES: &str = "files";
const MANIFEST: &str = "manifest";
const LOCK: &str = "lock";

/// Where the last good files are kept.
#[derive(Debug)]
pub struct LastGood {
    folder: PathBuf,
    failures: AtomicU64,
    degraded: AtomicBool,
}

/// A copy that is complete.
#[derive(Debug)]
pub struct Kept {
    /// What to load: the copy's folder or a file in it, as the original was named.
    pub path: PathBuf,
    /// The revision that it was.
    pub revision: String,
    /// When it was kept.
    pub kept_at: SystemTime,
}

impl LastGood {
    /// Opens `folder`, makes it if it isn't there, and looks whether it can be written to.
    ///
    /// # Errors
    /// When it can't, or when what is in it belongs to another user, who could have put any program there.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let named = folder.display();
        let folder = std::path::absolute(folder)
            .with_context(|| format!("{named} is no path"))?
            .join(OWN);
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder);
        made.with_context(|| format!("can't make {}", folder.display()))?;
        let metadata = fs::symlink_metadata(&folder)?;
        let own = rustix::process::geteuid().as_raw();
        ensure!(
            metadata.is_dir() && metadata.uid() == own,
            "{} belongs to user {}, not {own}",
            folder.display(),
            metadata.uid()
        );
        let private = fs::set_permissions(&folder, Permissions::from_mode(0o700));
        private.with_context(|| format!("can't protect {}", folder.display()))?;
        let kept = Self {
            folder,
            failures: AtomicU64::new(0),
            degraded: AtomicBool::new(false),
        };
        let lock = kept.lock();
        let lock = lock.with_context(|| format!("can't write to {}", kept.folder.display()))?;
        kept.sweep();
        drop(lock);
        Ok(kept)
    }

    /// Keeps what was read from `folder`, which must have kept its contents, in place of what was kept before.
    /// `path` is what the user named. A failure is a log line and counted: serving goes on.
    pub fn keep(&self, path: &Path, folder: &Folder, revision: &str) {
        if let Err(error) = self.try_keep(path, folder, revision) {
            self.failures.fetch_add(1, Ordering::Relaxed);
            let place = self.folder.display();
            tracing::error!("last good: can't keep revision {revision} in {place}: {error:#}");
        }
    }

    fn try_keep(&self, path: &Path, folder: &Folder, revision: &str) -> anyhow::Result<()> {
        let contents = folder.take_contents();
        let manifest = Manifest {
            root: folder.root().to_owned(),
            entry: entry(path),
            revision: revision.to_owned(),
            kept_at: seconds(SystemTime::now()),
            files: manifest::hashes(&contents),
        };
        let _lock = self.lock().context("can't lock")?;
        if self
            .current()
            .is_ok_and(|(_, kept)| kept.same_as(&manifest))
        {
            return Ok(());
        }
        write::replace(&self.folder, &manifest, &contents)?;
        self.sweep();
        tracing::info!("last good: revision {revision} is kept");
        Ok(())
    }

    /// The copy of what `path` names.
    ///
    /// # Errors
    /// When there is none, when it was damaged, or when it is the copy of something else.
    pub fn newest(&self, path: &Path) -> anyhow::Result<Kept> {
        let (folder, manifest) = self.current()?;
        let root = std::path::absolute(crate::source::folder_of(path))?;
        ensure!(
            manifest.root == root,
            "the copy in {} is one of {}, not of {}",
            self.folder.display(),
            manifest.root.display(),
            root.display()
        );
        let files = folder.join(FILES);
        Ok(Kept {
            path: match &manifest.entry {
                Some(entry) => files.join(entry),
                None => files,
            },
            revision: manifest.revision,
            kept_at: UNIX_EPOCH + Duration::from_secs(manifest.kept_at),
        })
    }

    /// The copy that was completed last, every byte of it looked at.
    fn current(&self) -> anyhow::Result<(PathBuf, Manifest)> {
        let link = self.folder.join(CURRENT);
        let name = fs::read_link(&link).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                anyhow::anyhow!("there is no copy in {} yet", self.folder.display())
            }
            _ => anyhow::anyhow!("{}: {error}", link.display()),
        })?;
        let folder = self.folder.join(name);
        let manifest = Manifest::read(&folder.join(MANIFEST))
            .and_then(|manifest| manifest.verify(&folder.join(FILES)).map(|()| manifest))
            .with_context(|| format!("the copy in {} is damaged", folder.display()))?;
        Ok((folder, manifest))
    }

    /// Removes what is not the current copy: earlier ones, and what a process has left that was killed.
    fn sweep(&self) {
        let current = fs::read_link(self.folder.join(CURRENT)).ok();
        let Ok(found) = fs::read_dir(&self.folder) else {
            return;
        };
        for entry in found.flatten() {
            let name = PathBuf::from(entry.file_name());
            let keeps = [CURRENT, LOCK].map(PathBuf::from).contains(&name);
            if keeps || Some(&name) == current.as_ref() {
                continue;
            }
            let path = entry.path();
            let gone = match entry.file_type() {
                Ok(kind) if kind.is_dir() => fs::remove_dir_all(&path),
                _ => fs::remove_file(&path),
            };
            if let Err(error) = gone {
                tracing::warn!("last good: can't remove {}: {error}", path.display());
            }
        }
    }

    /// One process at a time changes the folder: at an upgrade there are two.
    fn lock(&self) -> io::Result<File> {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.folder.join(LOCK))?;
        file.lock()?;
        Ok(file)
    }

    /// How often a copy could not be kept.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Whether the process serves from the copy, because the files were refused at its start and still are.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.degraded.load(Ordering::Relaxed)
    }

    /// Serving from the copy begins, or ends.
    pub(crate) fn set_degraded(&self, degraded: bool) {
        let before = self.degraded.swap(degraded, Ordering::Relaxed);
        if before && !degraded {
            tracing::info!("the files are good again: no longer serving from the last good copy");
        }
    }
}

/// The file that `path` names in its folder, if it names one.
fn entry(path: &Path) -> Option<PathBuf> {
    let file = path.file_name().filter(|_| !path.is_dir());
    file.map(PathBuf::from)
}

fn seconds(time: SystemTime) -> u64 {
    // A clock before 1970 is a clock that isn't set yet.
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
