//! A ConfigMap mount and its updates, as the kubelet makes them
//! (kubernetes `pkg/volume/util/atomic_writer.go`).

// Each test binary that includes this file uses a part of it.
#![allow(dead_code)]

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

const DATA: &str = "..data";
const DATA_TMP: &str = "..data_tmp";

/// Writes the keys of a ConfigMap into one mounted folder.
///
/// The folder holds `routes.rhai -> ..data/routes.rhai`, `..data -> ..2026_11_30_08_00_00.123`, and the
/// real files in that dated folder.
pub struct AtomicWriter {
    dir: PathBuf,
}

impl AtomicWriter {
    /// For the mount at `dir`, which must exist.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        AtomicWriter { dir: dir.into() }
    }

    /// The mount.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes the mount hold exactly `files`, name and content; a name may have folders in it, as with a
    /// projected volume. False when it holds them already and so nothing was touched.
    pub fn publish<C: AsRef<[u8]>>(&self, files: &[(&str, C)]) -> io::Result<bool> {
        let old = fs::read_link(self.dir.join(DATA)).ok();

        // 1. Compare the bytes.
        if let Some(old) = &old
            && self.holds(&self.dir.join(old), files)?
        {
            return Ok(false);
        }

        // 2. A new dated folder.
        let dated = dated_name();
        let target = self.dir.join(&dated);
        fs::create_dir(&target)?;

        // 3. The payload.
        for (name, content) in files {
            let file = target.join(name);
            if let Some(parent) = file.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(file, content)?;
        }

        // 4. and 5. The link, put in place by a rename: the only atomic step.
        symlink(&dated, self.dir.join(DATA_TMP))?;
        fs::rename(self.dir.join(DATA_TMP), self.dir.join(DATA))?;

        // 6. The links that users see: new ones first, then those of keys that went.
        let visible: BTreeSet<&str> = files.iter().map(|(name, _)| first_part(name)).collect();
        for name in &visible {
            let link = self.dir.join(name);
            if !link.is_symlink() {
                symlink(Path::new(DATA).join(name), link)?;
            }
        }
        for entry in fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            if !name.starts_with("..") && !visible.contains(&*name) {
                fs::remove_file(self.dir.join(&*name))?;
            }
        }

        // 7. The old dated folder, immediately.
        if let Some(old) = old {
            fs::remove_dir_all(self.dir.join(old))?;
        }
        Ok(true)
    }

    fn holds<C: AsRef<[u8]>>(&self, data: &Path, files: &[(&str, C)]) -> io::Result<bool> {
        let wanted: BTreeSet<PathBuf> = files.iter().map(|(name, _)| data.join(name)).collect();
        let mut present = BTreeSet::new();
        collect_files(data, &mut present)?;
        Ok(wanted == present
            && files.iter().all(|(name, content)| {
                fs::read(data.join(name)).is_ok_and(|bytes| bytes == content.as_ref())
            }))
    }
}

fn collect_files(dir: &Path, files: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect_files(&path, files)?;
        } else {
            files.insert(path);
        }
    }
    Ok(())
}

fn first_part(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}

/// `..2006_01_02_15_04_05.` and a number that makes it unique, as the kubelet names it.
fn dated_name() -> String {
    static UNIQUE: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let (days, second) = (now.as_secs() / 86_400, now.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "..{year}_{month:02}_{day:02}_{:02}_{:02}_{:02}.{}{}",
        second / 3600,
        second / 60 % 60,
        second % 60,
        now.subsec_nanos(),
        UNIQUE.fetch_add(1, Ordering::Relaxed),
    )
}

/// Year, month and day of a day counted from 1970-01-01.
fn civil(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}
