//! Writing a copy so that there is always a complete one, whenever the machine stops.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, symlink};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::manifest::{Manifest, plain};
use super::{COPY, CURRENT, FILES, MANIFEST};

/// Puts a copy of `contents` in the place of the current one in `folder`.
pub(super) fn replace(
    folder: &Path,
    manifest: &Manifest,
    contents: &BTreeMap<String, Vec<u8>>,
) -> anyhow::Result<()> {
    // A name that was never there: the same revision may come back while its earlier copy still is current.
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let unique = now.map_or(0, |now| now.as_nanos());
    let name = format!(
        "{COPY}{}-{}-{unique}",
        manifest.revision,
        std::process::id()
    );
    let copy = folder.join(&name);
    make_folder(&copy)?;
    let files = copy.join(FILES);
    make_folder(&files)?;
    for (name, content) in contents {
        write(&files, &plain(Path::new(name)), content)?;
    }
    write(&copy, Path::new(MANIFEST), manifest.to_text()?.as_bytes())?;
    sync(&copy)?;
    sync(folder)?;
    // A link can't be changed, but another one can be renamed over it.
    let link = folder.join(format!("{CURRENT}-{}", std::process::id()));
    match fs::remove_file(&link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    symlink(&name, &link)?;
    fs::rename(&link, folder.join(CURRENT))?;
    sync(folder)?;
    Ok(())
}

/// Writes `folder/name` and the folders on the way, all for this user only, and on the disk when it returns.
fn write(folder: &Path, name: &Path, content: &[u8]) -> io::Result<()> {
    let path = folder.join(name);
    let inner = name.parent().filter(|inner| *inner != Path::new(""));
    if let Some(inner) = inner {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder.join(inner))?;
    }
    let mut file = File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&path)?;
    file.write_all(content)?;
    file.sync_all()?;
    // The names on the way, up to the folder itself.
    for inner in name.ancestors().skip(1) {
        sync(&folder.join(inner))?;
    }
    Ok(())
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
