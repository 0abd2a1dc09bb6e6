//! Reading the files of the configuration's folder: all from one revision, none from elsewhere,
//! each remembered by its hash.

mod fingerprint;
mod resolve;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use edgewright_script::values::{FileError, Files, ProgramFile};

pub use fingerprint::Fingerprint;
use fingerprint::State;
use resolve::Pins;

/// The largest file that is read, in bytes. A ConfigMap holds 1 MiB at most; a table in a volume
/// may be larger, and a mistyped name of a disk image must not fill the memory.
pub const MAX_FILE_SIZE: u64 = 64 * 1024 * 1024;

/// The configuration's folder as it was when it was opened.
///
/// One `Folder` serves one attempt to load: everything read through it belongs to one revision,
/// or reading fails with [`FileError::Changed`] and the attempt starts again with a new one.
#[derive(Debug)]
pub struct Folder {
    /// Absolute, as the user names it.
    named: PathBuf,
    /// Without any symbolic link.
    canonical: PathBuf,
    reads: Mutex<Reads>,
}

/// What was read so far.
#[derive(Debug, Default)]
struct Reads {
    pins: Pins,
    files: BTreeMap<String, State>,
    /// Folders whose changes may change a file that was read.
    watched: BTreeSet<PathBuf>,
    /// Absolute folders beside this one that may be read from.
    allow: Vec<PathBuf>,
    /// The contents of the folder's own files, when they are asked for.
    contents: Option<BTreeMap<String, Vec<u8>>>,
}

impl Folder {
    /// Opens the folder `root`. Files are read from it and from the absolute folders of `allow`,
    /// which need not exist.
    ///
    /// # Errors
    /// When `root` is missing, unreadable or no folder.
    pub fn open(root: &Path, allow: &[PathBuf]) -> io::Result<Self> {
        let named = std::path::absolute(root)?;
        let mut reads = Reads::default();
        let canonical = reads.pins.resolve(Path::new("/"), &named)?;
        if !fs::metadata(&canonical)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        reads.watched.insert(named.clone());
        reads.allow = allow.to_vec();
        Ok(Self {
            named,
            canonical,
            reads: Mutex::new(reads),
        })
    }

    /// Allows reading from further absolute folders: they stand in a file of the folder itself.
    pub fn allow(&self, folders: &[PathBuf]) {
        self.reads().allow.extend_from_slice(folders);
    }

    /// From here on, keeps the contents of the files that are read from the folder itself.
    pub fn keep_contents(&self) {
        self.reads().contents.get_or_insert_default();
    }

    /// The contents that were kept, by the name that was read. They are given once.
    #[must_use]
    pub fn take_contents(&self) -> BTreeMap<String, Vec<u8>> {
        self.reads().contents.take().unwrap_or_default()
    }

    /// The folder's absolute path, as the user names it.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.named
    }

    /// What was read until now.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let reads = self.reads();
        Fingerprint {
            files: reads.files.clone(),
            allow: reads.allow.clone(),
        }
    }

    /// The folders in which a change may change what was read: those that hold a file that was
    /// read, by the names that outlive a swap, and those that hold a `..data` link on the way.
    #[must_use]
    pub fn watched_dirs(&self) -> Vec<PathBuf> {
        let mut reads = self.reads();
        let holders: Vec<_> = reads.pins.holders().map(Path::to_path_buf).collect();
        for folder in holders {
            reads.watch_canonical(folder);
        }
        reads.watched.iter().cloned().collect()
    }

    fn reads(&self) -> MutexGuard<'_, Reads> {
        // What is behind the lock is valid after each statement, so a panic elsewhere is no harm.
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file behind `name`, inside a folder that may be read.
    fn find(&self, reads: &mut Reads, name: &str) -> Result<PathBuf, FileError> {
        let outside = || FileError::Outside(name.to_string());
        let path = Path::new(name);
        let climbs = path.components().any(|part| part == Component::ParentDir);
        let foreign = path.is_absolute() && !reads.allow.iter().any(|dir| path.starts_with(dir));
        if climbs || foreign || name.is_empty() {
            return Err(outside());
        }
        reads.watch_named(&self.named.join(path));
        let failed = |error| failure(name, &error);
        let found = reads.pins.resolve(&self.canonical, path).map_err(failed)?;
        if !found.starts_with(&self.canonical) && !reads.allows(&found) {
            return Err(outside());
        }
        reads.watch_found(&found);
        Ok(found)
    }

    fn read_from(&self, reads: &mut Reads, name: &str) -> Result<ProgramFile, FileError> {
        let read = self.find(reads, name).and_then(|path| {
            let content = content(&path, name)?;
            Ok(ProgramFile { content, path })
        });
        // A missing file may be one that the swap took away, or its link not made yet. Where
        // nothing was swapped it is just missing.
        match read {
            Err(FileError::NotFound(_)) if !self.unmoved(reads) => Err(FileError::Changed),
            read => read,
        }
    }

    /// Reads `name` and remembers what that gave.
    fn read_and_remember(&self, name: &str) -> Result<ProgramFile, FileError> {
        let mut reads = self.reads();
        let read = self.read_from(&mut reads, name);
        if read == Err(FileError::Changed) {
            return read;
        }
        let state = State::of(read.as_ref().map(|file| file.content.as_slice()));
        // The same file read twice with a change between: what was made of it no longer fits.
        let before = reads.files.insert(name.to_string(), state.clone());
        if before.is_some_and(|before| before != state) {
            return Err(FileError::Changed);
        }
        if let (Some(contents), Ok(file)) = (&mut reads.contents, &read)
            && !Path::new(name).is_absolute()
        {
            contents.insert(name.to_string(), file.content.clone());
        }
        read
    }

    /// Whether the folder and all links met still are where they were.
    fn unmoved(&self, reads: &Reads) -> bool {
        reads.pins.hold() && self.canonical.exists()
    }
}

impl Reads {
    /// Whether the canonical `path` lies in a folder of `allow`.
    fn allows(&mut self, path: &Path) -> bool {
        let Self { pins, allow, .. } = self;
        allow.iter().any(|folder| {
            let folder = pins.resolve(Path::new("/"), folder);
            folder.is_ok_and(|folder| path.starts_with(folder))
        })
    }

    /// Watches the folder that `path` names a file in, or the nearest one that exists.
    fn watch_named(&mut self, path: &Path) {
        if let Some(folder) = path.ancestors().skip(1).find(|folder| folder.is_dir()) {
            self.watched.insert(folder.to_path_buf());
        }
    }

    /// Watches the folder that holds the file at the canonical `path`: a link may have led there.
    /// A folder of the atomic writer never changes.
    fn watch_found(&mut self, path: &Path) {
        if let Some(folder) = path.parent()
            && !self.pins.cover(path)
        {
            self.watch_canonical(folder.to_path_buf());
        }
    }

    /// Watches `folder`, if it isn't watched already under a name that the user gave.
    fn watch_canonical(&mut self, folder: PathBuf) {
        let known = self
            .watched
            .iter()
            .any(|named| fs::canonicalize(named).is_ok_and(|named| named == folder));
        if !known {
            self.watched.insert(folder);
        }
    }
}

/// The content of the regular file at `path`, which the user calls `name`.
fn content(path: &Path, name: &str) -> Result<Vec<u8>, FileError> {
    let failed = |error| failure(name, &error);
    // Opening a pipe would wait for someone to write into it.
    let file = File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(FileError::Io {
            name: name.to_string(),
            error: "not a regular file".to_string(),
        });
    }
    let mut content = Vec::new();
    file.take(MAX_FILE_SIZE + 1)
        .read_to_end(&mut content)
        .map_err(failed)?;
    if content.len() as u64 > MAX_FILE_SIZE {
        return Err(FileError::TooLarge {
            name: name.to_string(),
            limit: MAX_FILE_SIZE,
        });
    }
    Ok(content)
}

fn failure(name: &str, error: &io::Error) -> FileError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            FileError::NotFound(name.to_string())
        }
        _ => FileError::Io {
            name: name.to_string(),
            error: error.to_string(),
        },
    }
}

impl Files for Folder {
    fn read(&self, name: &str) -> Result<Vec<u8>, FileError> {
        self.read_and_remember(name).map(|file| file.content)
    }

    fn read_program(&self, name: &str) -> Result<ProgramFile, FileError> {
        let file = self.read_and_remember(name)?;
        if !file.path.starts_with(&self.canonical) {
            return Err(FileError::Outside(name.to_string()));
        }
        Ok(file)
    }
}
