//! `--last-good`: a start at which the files are refused serves what worked before.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::support::command::{Finished, Folder, edgewright};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::wait::{SOON, until};

const GOOD: &str = r#"
import "words" as words;
const NAMES = table("names.json");
const TOKEN = secret("token");
route("/").respond(|req| respond(200, words::greeting() + " " + NAMES.get("a") + " " + TOKEN.text()));
"#;

const BAD: &str = "route(\"/\").respond(200, \"bad\";\n";

fn good(kept: &Path) -> Proxy {
    serving(GOOD)
        .file("words.rhai", "fn greeting() { \"hello\" }")
        .file("names.json", "{\"a\": \"anna\"}")
        .file("token", "s3cret")
        .arguments(["--last-good", kept.to_str().unwrap()])
        .start()
}

fn current(kept: &Path) -> PathBuf {
    let own = kept.join("edgewright-last-good");
    own.join(fs::read_link(own.join("current")).unwrap())
}

#[test]
fn a_start_with_bad_files_serves_the_last_good_ones_until_they_are_mended() {
    let kept = TempDir::new().unwrap();
    let mut proxy = good(kept.path());
    assert_eq!(proxy.text("/"), "hello anna s3cret");
    assert_eq!(proxy.status()["degraded"], false);
    for name in [
        "routes.rhai",
        "words.rhai",
        "names.json",
        "token",
        "edgewright.toml",
    ] {
        let copy = current(kept.path()).join("files").join(name);
        let mode = fs::metadata(&copy).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name}");
    }

    fs::write(proxy.file("routes.rhai"), BAD).unwrap();
    fs::remove_file(proxy.file("words.rhai")).unwrap();
    proxy.start_again();
    assert_eq!(proxy.text("/"), "hello anna s3cret");
    let line = proxy.log.wait("serving the last good copy", SOON);
    assert!(line.contains("routes.rhai:1:"), "{line}");
    assert_eq!(proxy.ask_health("/readyz").status, 200);
    assert_eq!(proxy.metric("config_degraded", &[]), 1.0);
    assert_eq!(proxy.metric("config_last_reload_successful", &[]), 0.0);
    let status = proxy.status();
    assert_eq!(status["degraded"], true);
    let error = status["last_error"].as_str().unwrap();
    assert!(error.contains("routes.rhai:1:"), "{error}");
    // Who asks for a reload hears what is wrong.
    let (code, answer) = proxy.reload();
    assert_eq!((code, &answer["result"]), (422, &"failed".into()));

    // Watched all the time.
    fs::write(
        proxy.file("routes.rhai"),
        "route(\"/\").respond(200, \"mended\");",
    )
    .unwrap();
    until("the repaired file to serve", SOON, || {
        proxy.text("/") == "mended"
    });
    assert_eq!(proxy.metric("config_degraded", &[]), 0.0);
    assert_eq!(proxy.status()["degraded"], false);

    // And that one is the last good one now.
    fs::write(proxy.file("routes.rhai"), BAD).unwrap();
    proxy.start_again();
    assert_eq!(proxy.text("/"), "mended");
}

#[test]
fn the_same_files_again_end_it_too() {
    let kept = TempDir::new().unwrap();
    let mut proxy = good(kept.path());
    fs::write(proxy.file("routes.rhai"), BAD).unwrap();
    proxy.start_again();
    assert_eq!(proxy.metric("config_degraded", &[]), 1.0);
    fs::write(proxy.file("routes.rhai"), GOOD).unwrap();
    until("the files to be found good", SOON, || {
        proxy.metric("config_degraded", &[]) == 0.0
    });
    proxy
        .log
        .wait("no longer serving from the last good copy", SOON);
}

#[test]
fn a_copy_that_was_changed_is_refused() {
    let kept = TempDir::new().unwrap();
    let proxy = good(kept.path());
    let program = current(kept.path()).join("files/routes.rhai");
    fs::write(program, "route(\"/\").respond(200, \"evil\");").unwrap();
    let ended = start_with_bad_files(&proxy, kept.path());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.text().contains("routes.rhai:1:"), "{ended:?}");
    assert!(
        ended.text().contains("routes.rhai has changed"),
        "{ended:?}"
    );
}

/// `run` with bad files and what was kept.
fn start_with_bad_files(proxy: &Proxy, kept: &Path) -> Finished {
    fs::write(proxy.file("routes.rhai"), BAD).unwrap();
    edgewright([
        "run".as_ref(),
        proxy.folder().as_os_str(),
        "--last-good".as_ref(),
        kept.as_os_str(),
    ])
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// As an emptyDir is that has a group of its own (fsGroup).
#[test]
fn a_folder_that_is_open_to_others_holds_one_that_is_not() {
    let kept = TempDir::new().unwrap();
    allow(kept.path(), 0o2777);
    let mut proxy = good(kept.path());
    let own = kept.path().join("edgewright-last-good");
    assert_eq!(mode(&own), 0o700);
    assert_eq!(mode(&own.join("lock")), 0o600);
    fs::write(proxy.file("routes.rhai"), BAD).unwrap();
    proxy.start_again();
    assert_eq!(proxy.text("/"), "hello anna s3cret");
    assert_eq!(proxy.log.count("others could write"), 0);
}

/// What lies there may be a whole copy that fits its own hashes, made by anybody.
#[test]
fn what_others_could_write_is_not_believed() {
    let kept = TempDir::new().unwrap();
    let mut proxy = good(kept.path());
    let own = kept.path().join("edgewright-last-good");
    for open in [0o770, 0o702] {
        allow(&own, open);
        let ended = start_with_bad_files(&proxy, kept.path());
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.text().contains("others could write to"), "{ended:?}");
        assert!(ended.text().contains("there is no copy"), "{ended:?}");
        assert_eq!(mode(&own), 0o700);
        // It is kept anew.
        fs::write(proxy.file("routes.rhai"), GOOD).unwrap();
        proxy.start_again();
        assert!(current(kept.path()).join("files/routes.rhai").exists());
    }
}

#[test]
fn nothing_leads_out_of_the_folder_or_makes_the_start_wait() {
    type Damage = fn(&Path, &Path);
    fn replace(path: &Path, make: &[&str]) {
        fs::remove_file(path).unwrap();
        let made = Command::new(make[0]).args(&make[1..]).arg(path).status();
        assert!(made.unwrap().success());
    }
    let damages: [(&str, Damage); 6] = [
        ("which is no copy", |own, _| {
            let name = fs::read_link(own.join("current")).unwrap();
            let elsewhere = own.parent().unwrap().join("copy-elsewhere");
            fs::rename(own.join(name), &elsewhere).unwrap();
            let target = elsewhere.to_str().unwrap();
            replace(&own.join("current"), &["ln", "-s", target]);
        }),
        ("is damaged", |own, copy| {
            let elsewhere = own.parent().unwrap().join("copy-elsewhere");
            fs::rename(copy, &elsewhere).unwrap();
            symlink(&elsewhere, copy).unwrap();
        }),
        ("routes.rhai", |own, copy| {
            let file = copy.join("files/routes.rhai");
            let elsewhere = own.parent().unwrap().join("routes.rhai");
            fs::copy(&file, &elsewhere).unwrap();
            replace(&file, &["ln", "-s", elsewhere.to_str().unwrap()]);
        }),
        ("no regular file", |_, copy| {
            replace(&copy.join("files/routes.rhai"), &["mkfifo"]);
        }),
        ("no regular file", |_, copy| {
            replace(&copy.join("manifest"), &["mkfifo"]);
        }),
        ("can't write to", |own, _| {
            replace(&own.join("lock"), &["mkfifo"]);
        }),
    ];
    for (expected, damage) in damages {
        let kept = TempDir::new().unwrap();
        let proxy = good(kept.path());
        let copy = current(kept.path());
        damage(&kept.path().join("edgewright-last-good"), &copy);
        let ended = start_with_bad_files(&proxy, kept.path());
        assert!(matches!(ended.code, Some(1 | 2)), "{ended:?}");
        assert!(ended.text().contains(expected), "{expected}: {ended:?}");
    }
}

#[test]
fn without_a_copy_bad_files_end_the_start() {
    let kept = TempDir::new().unwrap();
    let folder = Folder::with(&[("routes.rhai", BAD)]);
    let run = |more: &[&str]| {
        let words = ["run", folder.path().to_str().unwrap()];
        edgewright(words.iter().chain(more))
    };
    let plain = run(&[]);
    assert_eq!(plain.code, Some(1), "{plain:?}");
    let kept = kept.path().to_str().unwrap();
    let with = run(&["--last-good", kept]);
    assert_eq!(with.code, Some(1), "{with:?}");
    for ended in [plain, with] {
        assert!(ended.text().contains("routes.rhai:1:"), "{ended:?}");
    }
}

#[test]
fn a_folder_that_can_not_be_used_is_wrong_use() {
    let folder = Folder::with(&[("routes.rhai", "route(\"/\").respond(200);"), ("file", "")]);
    let ended = edgewright([
        "run".as_ref(),
        folder.path().as_os_str(),
        "--last-good".as_ref(),
        folder.file("file").as_os_str(),
    ]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.text().contains("--last-good"), "{ended:?}");
}

#[test]
fn a_failure_to_keep_is_told_and_serving_goes_on() {
    let kept = TempDir::new().unwrap();
    let proxy = good(kept.path());
    assert_eq!(proxy.metric("last_good_failures_total", &[]), 0.0);
    fs::remove_dir_all(kept.path().join("edgewright-last-good")).unwrap();
    fs::write(
        proxy.file("routes.rhai"),
        "route(\"/\").respond(200, \"new\");",
    )
    .unwrap();
    until("the new program to serve", SOON, || {
        proxy.text("/") == "new"
    });
    assert_eq!(proxy.metric("last_good_failures_total", &[]), 1.0);
    proxy.log.wait("last good: can't keep revision", SOON);
}
