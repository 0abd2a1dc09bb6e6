//! A folder that nobody else has written to, and reading in it without being led out of it.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustix::fs::{Mode, OFlags};

/// Who may write beside the owner (inode(7)): the group, and everybody.
const OTHERS_WRITE: u32 = 0o022;

/// How long another process may hold the lock. Writing a copy takes a fraction of that.
const LOCK_LIMIT: Duration = Duration::from_secs(20);
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// An open folder. It stays the same one when somebody puts another one in its place.
#[derive(Debug)]
pub(super) struct Private(OwnedFd);

impl Private {
    /// Opens the folder `path`, or makes it, so that only this user can use it. The second value says that others could
    /// write to it before, so that everything in it was removed: its copy may have been anybody's.
    ///
    /// # Errors
    /// When that is no folder, one of another user, or one that can't be emptied.
    pub(super) fn open(path: &Path) -> anyhow::Result<(Self, bool)> {
        let named = path.display();
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path);
        made.with_context(|| format!("can't make {named}"))?;
        let handle = rustix::fs::open(path, folder_flags(), Mode::empty())
            .with_context(|| format!("{named} is no folder that can be opened"))?;
        let handle = File::from(handle);
        let metadata = handle.metadata()?;
        ensure!(
            is_own(&metadata),
            "{named} belongs to user {}, not {}",
            metadata.uid(),
            rustix::process::geteuid().as_raw()
        );
        // Before anything is removed: nothing new comes in from now on.
        let private = handle.set_permissions(Permissions::from_mode(0o700));
        private.with_context(|| format!("can't protect {named}"))?;
        let folder = Self(handle.into());
        let was_open = metadata.mode() & OTHERS_WRITE != 0;
        if was_open {
            let emptied = folder.remove_all_but(|_| false);
            emptied.with_context(|| {
                format!("others could write to {named}, and it can't be emptied")
            })?;
        }
        Ok((folder, was_open))
    }

    /// A path of this very folder, whatever it is called by now. Only for this process.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// A folder in it. No link is followed.
    pub(super) fn folder(&self, name: &Path) -> io::Result<Self> {
        let mut current = rustix::io::fcntl_dupfd_cloexec(&self.0, 0)?;
        for part in name.components() {
            let Component::Normal(part) = part else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            current = rustix::fs::openat(&current, part, folder_flags(), Mode::empty())?;
        }
        Ok(Self(current))
    }

    /// What is in a file of this user in it. No link is followed, and nothing is waited for.
    pub(super) fn read(&self, name: &Path) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        self.file(name, OFlags::RDONLY)?.read_to_end(&mut content)?;
        Ok(content)
    }

    /// Waits until nobody else has locked the file `name`, which is made if need be, and locks it until it is dropped.
    ///
    /// # Errors
    /// Also when another process holds it for 20 s.
    pub(super) fn lock(&self, name: &Path) -> io::Result<File> {
        let file = self.file(name, OFlags::WRONLY | OFlags::CREATE)?;
        // Who can open it can lock it.
        file.set_permissions(Permissions::from_mode(0o600))?;
        let deadline = Instant::now() + LOCK_LIMIT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    thread::sleep(LOCK_INTERVAL);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::other("another process holds its lock"));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// A regular file of this user in it; opening a pipe would wait for somebody at its other end.
    fn file(&self, name: &Path, access: OFlags) -> io::Result<File> {
        let parent = self.folder(name.parent().unwrap_or(Path::new("")))?;
        let name = name.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let own = Mode::RUSR | Mode::WUSR;
        let file = File::from(rustix::fs::openat(&parent.0, name, flags, own)?);
        let metadata = file.metadata()?;
        if !metadata.is_file() || !is_own(&metadata) {
            return Err(io::Error::other("it is no regular file of this user"));
        }
        Ok(file)
    }

    /// Removes what is in it, unless `keep` says otherwise of its name. Goes on after a failure.
    ///
    /// # Errors
    /// The last one.
    pub(super) fn remove_all_but(&self, keep: impl Fn(&Path) -> bool) -> io::Result<()> {
        let mut removed = Ok(());
        for entry in fs::read_dir(self.path())? {
            let entry = entry?;
            if keep(Path::new(&entry.file_name())) {
                continue;
            }
            let gone = match entry.file_type() {
                Ok(kind) if kind.is_dir() => fs::remove_dir_all(entry.path()),
                _ => fs::remove_file(entry.path()),
            };
            if gone.is_err() {
                removed = gone;
            }
        }
        removed
    }
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn is_own(metadata: &fs::Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}
