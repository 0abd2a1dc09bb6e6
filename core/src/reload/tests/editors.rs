//! Files in a plain folder, changed the way people and scripts change them.

use std::fs::File;
use std::io::Write as _;
use std::process::Command;

use super::*;

#[track_caller]
fn run(program: &str, arguments: &[&str], dir: &Path) {
    let mut command = Command::new(program);
    let status = command.args(arguments).current_dir(dir).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}: {status}");
}

/// Makes the same kind of change three times: a watch that followed the inode would see one at most.
fn each_is_noticed(change: impl Fn(&Path, &str)) {
    let site = Site::new("one");
    let reload = site.start(EVENTS_ONLY);
    for content in ["two", "three", "four"] {
        change(&site.dir, content);
        serves(&reload, content);
    }
}

#[test]
fn rename_over() {
    each_is_noticed(|dir, content| {
        fs::write(dir.join(".routes.tmp"), content).unwrap();
        fs::rename(dir.join(".routes.tmp"), dir.join("routes.rhai")).unwrap();
    });
}

#[test]
fn rename_over_from_another_folder() {
    let elsewhere = tempfile::tempdir().unwrap();
    each_is_noticed(|dir, content| {
        let new = elsewhere.path().join("new");
        fs::write(&new, content).unwrap();
        fs::rename(&new, dir.join("routes.rhai")).unwrap();
    });
}

#[test]
fn backup_then_a_new_file() {
    // As vim does with `backupcopy=no`.
    each_is_noticed(|dir, content| {
        fs::rename(dir.join("routes.rhai"), dir.join("routes.rhai~")).unwrap();
        fs::write(dir.join("routes.rhai"), content).unwrap();
        fs::remove_file(dir.join("routes.rhai~")).unwrap();
    });
}

#[test]
fn in_place() {
    each_is_noticed(|dir, content| {
        run(
            "sh",
            &["-c", &format!("printf {content} > routes.rhai")],
            dir,
        );
    });
}

#[test]
fn sed_in_place() {
    each_is_noticed(|dir, content| {
        run(
            "sed",
            &["-i", &format!("s/.*/{content}/"), "routes.rhai"],
            dir,
        );
    });
}

#[test]
fn cp_over() {
    let elsewhere = tempfile::tempdir().unwrap();
    each_is_noticed(|dir, content| {
        let new = elsewhere.path().join("new");
        fs::write(&new, content).unwrap();
        run("cp", &[new.to_str().unwrap(), "routes.rhai"], dir);
    });
}

#[test]
fn removed_and_back() {
    let site = Site::new("one");
    let reload = site.start(EVENTS_ONLY);
    fs::remove_file(site.file()).unwrap();
    let status = refused(&reload, "no such file");
    assert_eq!(status.revision, revision("one"));
    fs::write(site.file(), "two").unwrap();
    serves(&reload, "two");
}

#[test]
fn a_storm_is_collapsed_and_the_last_content_wins() {
    let site = Site::new("one");
    let options = Options {
        debounce: Duration::from_millis(100),
        min_interval: Duration::from_millis(500),
        ..EVENTS_ONLY
    };
    let reload = site.start(options);
    let begin = Instant::now();
    for number in 0..200 {
        fs::write(site.file(), format!("content {number}")).unwrap();
    }
    serves(&reload, "content 199");
    let intervals = begin.elapsed().as_millis() / options.min_interval.as_millis();
    let attempts = u128::from(site.probe.attempts());
    assert!(
        (1..=intervals + 1).contains(&attempts),
        "{attempts} attempts in {:?}",
        begin.elapsed()
    );
}

#[test]
fn a_storm_without_end_does_not_hold_back_the_reload() {
    let site = Site::new("one");
    let options = Options {
        debounce: Duration::from_secs(60),
        max_debounce: Duration::from_millis(200),
        ..EVENTS_ONLY
    };
    let reload = site.start(options);
    fs::write(site.file(), "two").unwrap();
    let mut noise = File::create(site.dir.join("access.log")).unwrap();
    eventually("a reload in the middle of the storm", || {
        noise.write_all(b"line\n").unwrap();
        reload.status().revision == revision("two")
    });
}

#[test]
fn file_events_start_attempts_at_a_distance() {
    let site = Site::new("one");
    let options = Options {
        min_interval: Duration::from_millis(700),
        ..EVENTS_ONLY
    };
    let reload = site.start(options);
    let began = ["two", "bad", "three"].map(|content| {
        replace(&site, content);
        let status = match content {
            "bad" => refused(&reload, content),
            good => serves(&reload, good),
        };
        status.last_attempt.as_ref().unwrap().at
    });
    let apart = options.min_interval.as_secs_f64() - 0.01;
    assert!(began[1] - began[0] >= apart, "{began:?}");
    assert!(began[2] - began[1] >= apart, "{began:?}");
}
