//! The commands of the binary that end by themselves.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::wait;

/// The binary under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_edgewright");

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(60);

/// What a command said and how it ended.
#[derive(Debug)]
pub struct Finished {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// Both outputs: most tests don't care which of them a diagnostic is on.
    pub fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// Runs `edgewright ARGS..` to its end. Panics when it does not end.
pub fn edgewright(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Finished {
    let child = Command::new(BINARY)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{BINARY}: {e}"));
    let pid = child.id();
    // Reading happens in a thread, or a full pipe would keep the command from ending.
    let reader = std::thread::spawn(move || child.wait_with_output());
    let start = std::time::Instant::now();
    wait::until("the command to end", LIMIT + Duration::from_secs(5), || {
        if start.elapsed() > LIMIT && !reader.is_finished() {
            super::proxy::signal(pid, "KILL");
        }
        reader.is_finished()
    });
    let Output {
        status,
        stdout,
        stderr,
    } = reader.join().unwrap().unwrap();
    Finished {
        code: status.code(),
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// A folder with the given files; it goes when dropped.
pub struct Folder(TempDir);

impl Folder {
    pub fn with(files: &[(&str, &str)]) -> Self {
        let folder = Folder(TempDir::new().unwrap());
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}
