//! What was read, in a form that can be compared.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use edgewright_script::values::{FileError, Files as _};
use sha2::{Digest, Sha256};

use super::Folder;
use crate::reload::Changes;

/// What reading a file gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// SHA-256 of the content.
    Content([u8; 32]),
    Missing,
    /// Too large, not permitted, outside the folder.
    Unreadable,
}

impl State {
    pub(super) fn of(read: Result<&[u8], &FileError>) -> Self {
        match read {
            Ok(content) => Self::Content(Sha256::digest(content).into()),
            Err(FileError::NotFound(_)) => Self::Missing,
            Err(_) => Self::Unreadable,
        }
    }
}

/// The names and contents of all files that one configuration was made of. Two are equal when a
/// configuration made from them would be.
///
/// Contents are compared, not modification times: those are unreliable across a swap by the
/// atomic writer (linkerd2#1061).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    pub(super) files: BTreeMap<String, State>,
    pub(super) allow: Vec<PathBuf>,
}

impl Fingerprint {
    /// The first 12 hex digits of a SHA-256 over names and contents: the revision that logs,
    /// metrics and `/status` name.
    #[must_use]
    pub fn revision(&self) -> String {
        let mut hash = Sha256::new();
        for (name, state) in &self.files {
            // The length first, so that no two lists of names and contents run together.
            hash.update((name.len() as u64).to_be_bytes());
            hash.update(name);
            match state {
                State::Content(digest) => {
                    hash.update([0]);
                    hash.update(digest);
                }
                State::Missing => hash.update([1]),
                State::Unreadable => hash.update([2]),
            }
        }
        let mut digits = String::with_capacity(12);
        for byte in &hash.finalize()[..6] {
            // Writing to a String can't fail.
            let _ = write!(digits, "{byte:02x}");
        }
        digits
    }

    /// The names in the folder itself that were read, with the SHA-256 of what was there, if that was a file.
    pub(crate) fn own_files(&self) -> impl Iterator<Item = (&Path, Option<&[u8; 32]>)> {
        let own = self.files.iter().map(|(name, state)| {
            let digest = match state {
                State::Content(digest) => Some(digest),
                State::Missing | State::Unreadable => None,
            };
            (Path::new(name), digest)
        });
        own.filter(|(name, _)| !name.is_absolute())
    }

    /// Adds to `changes` which files are different from those of `old`.
    pub(crate) fn tell_changes(&self, old: &Self, changes: Changes) -> Changes {
        changes.with_files(&old.present(), &self.present())
    }

    /// The files that were there, whether they could be read or not.
    fn present(&self) -> BTreeMap<&str, &State> {
        let all = self.files.iter();
        all.filter(|(_, state)| **state != State::Missing)
            .map(|(name, state)| (name.as_str(), state))
            .collect()
    }

    /// Reads all files below `root` again and compares. `false` also when the folder is gone or
    /// is being changed right now. Blocks on files: not for a worker thread.
    #[must_use]
    pub fn is_current(&self, root: &Path) -> bool {
        let Ok(folder) = Folder::open(root, &self.allow) else {
            return false;
        };
        self.files.iter().all(|(name, state)| {
            let read = folder.read(name);
            !matches!(read, Err(FileError::Changed)) && State::of(read.as_deref()) == *state
        })
    }
}
