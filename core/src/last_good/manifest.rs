//! What a copy consists of, so that one that was damaged is noticed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::MANIFEST;
use super::private::Private;
use crate::files::Fingerprint;

/// The first word. Another form gets another number.
const FORM: &str = "edgewright-last-good-1";

/// What was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    /// The folder that it is a copy of, absolute.
    pub(super) root: PathBuf,
    /// The file in it that the user has named; none when that was the folder.
    pub(super) entry: Option<PathBuf>,
    /// The revision that was loaded from it.
    pub(super) revision: String,
    /// Seconds since 1970.
    pub(super) kept_at: u64,
    /// SHA-256 of each file, by its name in the folder.
    pub(super) files: BTreeMap<PathBuf, String>,
}

/// SHA-256 of each content. Two spellings of one name become one.
pub(super) fn hashes(contents: &BTreeMap<String, Vec<u8>>) -> BTreeMap<PathBuf, String> {
    contents
        .iter()
        .map(|(name, content)| (plain(Path::new(name)), hash(content)))
        .collect()
}

impl Manifest {
    /// Whether it says the same, at whatever time.
    pub(super) fn same_as(&self, other: &Self) -> bool {
        let timeless = |manifest: &Self| Self {
            kept_at: 0,
            ..manifest.clone()
        };
        timeless(self) == timeless(other)
    }

    /// As text, with its own hash in front.
    pub(super) fn to_text(&self) -> anyhow::Result<String> {
        let text = serde_json::to_string_pretty(self)?;
        Ok(format!("{FORM} {}\n{text}\n", hash(text.as_bytes())))
    }

    /// That of a copy.
    pub(super) fn read(copy: &Private) -> anyhow::Result<Self> {
        let text = copy.read(Path::new(MANIFEST));
        let text = text.context("its manifest can't be read")?;
        let text = String::from_utf8(text).context("its manifest is no text")?;
        let (first, rest) = text.split_once('\n').context("its manifest is cut")?;
        let rest = rest.strip_suffix('\n').context("its manifest is cut")?;
        ensure!(
            first == format!("{FORM} {}", hash(rest.as_bytes())),
            "its manifest has changed"
        );
        serde_json::from_str(rest).context("its manifest is of another version")
    }

    /// Looks at every file: none is missing, changed, or there without being named.
    pub(super) fn verify(&self, folder: &Private) -> anyhow::Result<()> {
        let mut found = BTreeSet::new();
        list(&folder.path(), Path::new(""), &mut found).context("its files can't be listed")?;
        for (name, expected) in &self.files {
            let named = || format!("{}", name.display());
            ensure!(found.remove(name), "{} is missing", named());
            let content = folder.read(name).with_context(named)?;
            ensure!(hash(&content) == *expected, "{} has changed", named());
        }
        let strange = found.first().map(|name| name.display().to_string());
        ensure!(
            strange.is_none(),
            "{} does not belong to it",
            strange.unwrap_or_default()
        );
        Ok(())
    }

    /// Looks whether files that were read are the ones that were kept, as far as they are of the folder.
    pub(super) fn confirm(&self, read: &Fingerprint) -> anyhow::Result<()> {
        for (name, digest) in read.own_files() {
            let found = digest.map(|digest| HEXLOWER.encode(digest));
            ensure!(
                found.as_ref() == self.files.get(&plain(name)),
                "{} has changed while it was read",
                name.display()
            );
        }
        Ok(())
    }
}

/// The name without parts that say nothing.
pub(super) fn plain(name: &Path) -> PathBuf {
    name.components()
        .filter(|part| *part != std::path::Component::CurDir)
        .collect()
}

fn hash(content: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(content))
}

/// All that is in `folder/below` and is no folder.
fn list(folder: &Path, below: &Path, found: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder.join(below))? {
        let entry = entry?;
        let name = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            list(folder, &name, found)?;
        } else {
            found.insert(name);
        }
    }
    Ok(())
}
