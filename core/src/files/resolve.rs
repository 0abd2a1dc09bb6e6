//! Following symbolic links with every `..data` link pinned.
//!
//! The kubelet's atomic writer (kubernetes `pkg/volume/util/atomic_writer.go`) publishes a new
//! ConfigMap or Secret by renaming one link, `..data`, and removes the old folder at once. Files
//! opened one after the other through that link may come from two revisions: a certificate with
//! another one's key. So each `..data` is followed once, and what it led to is used for
//! everything read afterwards.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The link that the atomic writer renames.
const DATA: &str = "..data";

/// Links followed for one path before it counts as a loop, as in the kernel (path_resolution(7)).
const MAX_LINKS: usize = 40;

/// Each `..data` link met so far, by the folder that holds it, with the folder it led to.
#[derive(Debug, Default)]
pub(super) struct Pins(BTreeMap<PathBuf, PathBuf>);

impl Pins {
    /// The canonical form of `path`, relative to the canonical folder `base`. What a pinned link
    /// hides counts as it was when first met.
    ///
    /// # Errors
    /// As canonicalising does: `NotFound` for a missing part, and a loop of links.
    pub(super) fn resolve(&mut self, base: &Path, path: &Path) -> io::Result<PathBuf> {
        let mut current = base.to_path_buf();
        let mut rest: Vec<OsString> = Vec::new();
        push(&mut rest, path);
        let mut links = 0;
        while let Some(part) = rest.pop() {
            match Path::new(&part).components().next() {
                Some(Component::RootDir) => current = PathBuf::from("/"),
                Some(Component::ParentDir) => {
                    current.pop();
                }
                Some(Component::Normal(name)) => {
                    if let Some(target) = self.pinned(&current, name) {
                        current = target;
                        continue;
                    }
                    let next = current.join(name);
                    if !fs::symlink_metadata(&next)?.is_symlink() {
                        current = next;
                        continue;
                    }
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(io::Error::other("too many symbolic links"));
                    }
                    push(&mut rest, &fs::read_link(&next)?);
                }
                Some(Component::CurDir | Component::Prefix(_)) | None => {}
            }
        }
        Ok(current)
    }

    /// Where `folder/name` leads when it is the atomic writer's link.
    fn pinned(&mut self, folder: &Path, name: &OsStr) -> Option<PathBuf> {
        if name != DATA {
            return None;
        }
        if let Some(target) = self.0.get(folder) {
            return Some(target.clone());
        }
        // A swap between reading the link and looking at its target makes one try fail; for two
        // more to fail, each would need a swap of its own.
        let target = (0..3).find_map(|_| target(folder))?;
        self.0.insert(folder.to_path_buf(), target.clone());
        Some(target)
    }

    /// Whether every pinned link still leads to where it did.
    pub(super) fn hold(&self) -> bool {
        self.0
            .iter()
            .all(|(folder, pinned)| target(folder).as_ref() == Some(pinned))
    }

    /// The folders that hold a pinned link.
    pub(super) fn holders(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }

    /// Whether `path` lies in a folder that a pinned link led to, so in one that is never
    /// written to again.
    pub(super) fn cover(&self, path: &Path) -> bool {
        self.0.values().any(|target| path.starts_with(target))
    }
}

/// Where `folder/..data` leads now, if it is a link to something that exists.
fn target(folder: &Path) -> Option<PathBuf> {
    let link = folder.join(DATA);
    fs::symlink_metadata(&link)
        .ok()
        .filter(fs::Metadata::is_symlink)?;
    fs::canonicalize(link).ok()
}

/// Puts the parts of `path` on the stack, the first one on top.
fn push(stack: &mut Vec<OsString>, path: &Path) {
    stack.extend(
        path.components()
            .rev()
            .map(|part| part.as_os_str().to_os_string()),
    );
}
