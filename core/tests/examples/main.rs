//! Every example is complete and right: `check` has nothing against it, it serves, and what its
//! `requests.toml` says is what happens. A folder under `examples/` is all that a new one takes.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod more;
mod pools;
mod run;
mod scenario;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::command::edgewright;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The folders under `examples/`.
fn examples() -> Vec<PathBuf> {
    let root = repository().join("examples");
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
fn each_is_complete_and_listed() {
    let list = fs::read_to_string(repository().join("docs/examples.md")).unwrap();
    for folder in examples() {
        for name in ["routes.rhai", "README.md", "requests.toml"] {
            let file = folder.join(name);
            assert!(file.is_file(), "{} is missing", file.display());
        }
        let name = folder.file_name().unwrap().to_str().unwrap();
        let link = format!("](../examples/{name})");
        assert!(list.contains(&link), "docs/examples.md doesn't list {name}");
    }
}

#[test]
fn each_does_what_it_says() {
    let wrong: Vec<String> = examples()
        .iter()
        .flat_map(|folder| run::run(folder))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
