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
//! Who can write there decides what the next start serves. So a copy is only believed in a folder that nobody else
//! could write to, of which DIR holds one: DIR may be open to others, as an emptyDir is. They can take that folder away or put
//! another one there, but none that belongs to this user and that they could write to. While the process runs it
//! keeps the folder open, and of a copy that it starts from it believes what it has read, not what it has looked at before.
//!
//! ```text
//! DIR/edgewright-last-good/           0700
//!     lock                            0600, held while one process writes
//!     current -> copy-REVISION-N      renamed when the copy is complete and on the disk
//!     copy-REVISION-N/manifest        names and hashes of all files, behind its own hash
//!     copy-REVISION-N/files/...
//! ```

mod manifest;
mod private;
#[cfg(test)]
mod tests;
mod write;

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};

use crate::files::Folder;
use manifest::Manifest;
use private::Private;

/// The folder in the folder that the user names: that one may be open to others, as an emptyDir is.
const OWN: &str = "edgewright-last-good";
const CURRENT: &str = "current";
const FILES: &str = "files";
const MANIFEST: &str = "manifest";
const LOCK: &str = "lock";
/// How the names of copies begin.
const COPY: &str = "copy-";

/// Where the last good files are kept.
#[derive(Debug)]
pub struct LastGood {
    /// What it is called, for people.
    named: PathBuf,
    folder: Private,
    emptied: bool,
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
    manifest: Manifest,
}

impl Kept {
    /// Whether what was read of the copy is what was kept.
    ///
    /// # Errors
    /// With a file that is not.
    pub fn confirm(&self, read: &Folder) -> anyhow::Result<()> {
        self.manifest.confirm(&read.fingerprint())
    }
}

impl LastGood {
    /// Opens `folder`, makes it if it isn't there, and looks whether it can be written to. What is in it is removed when
    /// others could write to it: see [`LastGood::was_emptied`].
    ///
    /// # Errors
    /// When it can't, or when what is in it belongs to another user, who could have put any program there.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let named = folder.display();
        let named = std::path::absolute(folder)
            .with_context(|| format!("{named} is no path"))?
            .join(OWN);
        let (folder, emptied) = Private::open(&named)?;
        let kept = Self {
            named,
            folder,
            emptied,
            failures: AtomicU64::new(0),
            degraded: AtomicBool::new(false),
        };
        let lock = kept.folder.lock(Path::new(LOCK));
        let lock = lock.with_context(|| format!("can't write to {}", kept.named.display()))?;
        kept.sweep();
        drop(lock);
        Ok(kept)
    }

    /// The folder that holds the copies, if others could write to it and it was emptied for that.
    #[must_use]
    pub fn was_emptied(&self) -> Option<&Path> {
        self.emptied.then_some(&*self.named)
    }

    /// Keeps what was read from `folder`, which must have kept its contents, in place of what was kept before.
    /// `path` is what the user named. A failure is a log line and counted: serving goes on.
    pub fn keep(&self, path: &Path, folder: &Folder, revision: &str) {
        if let Err(error) = self.try_keep(path, folder, revision) {
            self.failures.fetch_add(1, Ordering::Relaxed);
            let place = self.named.display();
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
        let _lock = self.folder.lock(Path::new(LOCK)).context("can't lock")?;
        if self
            .current()
            .is_ok_and(|(_, kept)| kept.same_as(&manifest))
        {
            return Ok(());
        }
        write::replace(&self.folder.path(), &manifest, &contents)?;
        self.sweep();
        tracing::info!("last good: revision {revision} is kept");
        Ok(())
    }

    /// The copy of what `path` names.
    ///
    /// # Errors
    /// When there is none, when it was damaged, or when it is the copy of something else.
    pub fn newest(&self, path: &Path) -> anyhow::Result<Kept> {
        let (name, manifest) = self.current()?;
        let root = std::path::absolute(crate::source::folder_of(path))?;
        ensure!(
            manifest.root == root,
            "the copy in {} is one of {}, not of {}",
            self.named.display(),
            manifest.root.display(),
            root.display()
        );
        let files = self.named.join(name).join(FILES);
        Ok(Kept {
            path: match &manifest.entry {
                Some(entry) => files.join(entry),
                None => files,
            },
            revision: manifest.revision.clone(),
            kept_at: UNIX_EPOCH + Duration::from_secs(manifest.kept_at),
            manifest,
        })
    }

    /// The name of the copy that was completed last, every byte of it looked at.
    fn current(&self) -> anyhow::Result<(PathBuf, Manifest)> {
        let name = self.current_name().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                anyhow::anyhow!("there is no copy in {} yet", self.named.display())
            }
            _ => anyhow::anyhow!("{}: {error}", self.named.join(CURRENT).display()),
        })?;
        let read = || {
            let copy = self.folder.folder(&name)?;
            let manifest = Manifest::read(&copy)?;
            manifest.verify(&copy.folder(Path::new(FILES))?)?;
            anyhow::Ok(manifest)
        };
        let manifest = read().with_context(|| {
            format!(
                "the copy in {} is damaged",
                self.named.join(&name).display()
            )
        })?;
        Ok((name, manifest))
    }

    /// What `current` leads to: a copy in the folder, and nothing else.
    fn current_name(&self) -> io::Result<PathBuf> {
        let name = fs::read_link(self.folder.path().join(CURRENT))?;
        let mut parts = name.components();
        let plain = matches!(
            (parts.next(), parts.next()),
            (Some(Component::Normal(part)), None) if part.as_encoded_bytes().starts_with(COPY.as_bytes())
        );
        if !plain {
            let text = format!("it leads to {}, which is no copy", name.display());
            return Err(io::Error::other(text));
        }
        Ok(name)
    }

    /// Removes what is not the current copy: earlier ones, and what a process has left that was killed.
    fn sweep(&self) {
        let current = self.current_name().ok();
        let keeps = |name: &Path| {
            [CURRENT, LOCK].map(Path::new).contains(&name) || Some(name) == current.as_deref()
        };
        if let Err(error) = self.folder.remove_all_but(keeps) {
            let place = self.named.display();
            tracing::warn!("last good: can't remove earlier copies in {place}: {error}");
        }
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
