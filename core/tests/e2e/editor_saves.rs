//! Files of a plain folder are changed in the ways in which editors and tools do it, and folders come and go.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::two_files::{BROKEN, LIVE, program, refused};
use crate::support::wait::{SOON, timed, until};

fn plain(version: &str) -> Proxy {
    let (routes, data) = program(version);
    serving(&routes).file("data.json", &data).start()
}

/// Saves a file in one particular way.
type Save = fn(&Path, &str);

fn save_by_rename(path: &Path, text: &str) {
    let temporary = path.with_extension("tmp");
    fs::write(&temporary, text).unwrap();
    fs::rename(&temporary, path).unwrap();
}

fn save_with_backup(path: &Path, text: &str) {
    let backup = path.with_extension("rhai~");
    fs::rename(path, &backup).unwrap();
    fs::write(path, text).unwrap();
    fs::remove_file(&backup).unwrap();
}

fn save_in_place(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
}

fn check_saves(save: Save) {
    let proxy = plain("one");
    let path = proxy.file("routes.rhai");
    // The data stays: only the first half of the answer changes.
    for version in ["two", "three", "four"] {
        let (routes, _) = program(version);
        save(&path, &routes);
        let (_, took) = timed(version, SOON, || {
            (proxy.text("/") == format!("{version}+one")).then_some(())
        });
        assert!(took <= LIVE, "{version} was live after {took:?}");
    }
    save(&path, BROKEN);
    refused(&proxy, 1, "routes.rhai:2:");
    assert_eq!(proxy.text("/"), "four+one");
    let (routes, _) = program("five");
    save(&path, &routes);
    until("the good one", SOON, || proxy.text("/") == "five+one");
}

#[test]
fn an_editor_that_renames_over_the_file() {
    check_saves(save_by_rename);
}

#[test]
fn an_editor_that_keeps_a_backup_meanwhile() {
    check_saves(save_with_backup);
}

#[test]
fn a_write_in_place() {
    check_saves(save_in_place);
}

#[test]
fn a_file_that_is_removed_and_comes_back() {
    let proxy = plain("one");
    let path = proxy.file("routes.rhai");
    fs::remove_file(&path).unwrap();
    refused(&proxy, 1, "routes.rhai");
    assert_eq!(proxy.text("/"), "one+one");
    let (routes, _) = program("two");
    fs::write(&path, routes).unwrap();
    until("the file that came back", SOON, || {
        proxy.text("/") == "two+one"
    });
}

#[test]
fn a_table_is_watched_as_well() {
    let proxy = plain("one");
    let (_, data) = program("two");
    fs::write(proxy.file("data.json"), data).unwrap();
    until("the new data", SOON, || proxy.text("/") == "one+two");
}

/// Runs a tool in the folder of the file.
fn tool(program: &str, arguments: &[&str], path: &Path) {
    let mut command = Command::new(program);
    command.args(arguments).arg(path);
    let status = command.status().unwrap();
    assert!(status.success(), "{program} {arguments:?}: {status}");
}

/// A file with this text, elsewhere.
fn elsewhere(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    file
}

fn save_with_sed(path: &Path, text: &str) {
    let new = elsewhere(text);
    let insert = format!("$r {}", new.path().display());
    tool("sed", &["-i", "-e", &insert, "-e", "d"], path);
}

fn save_with_cp(path: &Path, text: &str) {
    let new = elsewhere(text);
    tool("cp", &[new.path().to_str().unwrap()], path);
}

#[test]
fn sed_in_place() {
    check_saves(save_with_sed);
}

#[test]
fn a_copy_over_it() {
    check_saves(save_with_cp);
}

/// `slow-command > routes.rhai`: the file is empty for as long as the command takes.
#[test]
fn a_file_that_is_emptied_first_and_written_later() {
    let proxy = plain("one");
    let path = proxy.file("routes.rhai");
    for (nth, version) in (1..).zip(["two", "three"]) {
        let mut file = fs::File::create(&path).unwrap();
        let served = proxy.text("/");
        refused(&proxy, nth, "has no routes");
        assert_eq!(proxy.text("/"), served);
        file.write_all(program(version).0.as_bytes()).unwrap();
        drop(file);
        until("the whole file", SOON, || {
            proxy.text("/") == format!("{version}+one")
        });
    }
}

#[test]
fn a_folder_that_is_removed_and_made_anew() {
    let proxy = plain("one");
    for version in ["two", "three"] {
        let served = proxy.text("/");
        let before = proxy.log.count("reload refused");
        fs::remove_dir_all(proxy.folder()).unwrap();
        proxy.log.wait_nth("reload refused", before + 1, SOON);
        assert_eq!(proxy.text("/"), served);
        fs::create_dir(proxy.folder()).unwrap();
        let (routes, data) = program(version);
        // What is read before the last of them is there may be refused once more.
        fs::write(proxy.file("edgewright.toml"), proxy.settings()).unwrap();
        fs::write(proxy.file("data.json"), data).unwrap();
        fs::write(proxy.file("routes.rhai"), routes).unwrap();
        let expected = format!("{version}+{version}");
        until("the new folder", SOON, || proxy.text("/") == expected);
        // The watch on the new folder lives.
        let (routes, _) = program("again");
        save_by_rename(&proxy.file("routes.rhai"), &routes);
        let expected = format!("again+{version}");
        let (_, took) = timed("a change in it", SOON, || {
            (proxy.text("/") == expected).then_some(())
        });
        assert!(took <= LIVE, "live after {took:?}");
    }
}
