//! Folders that go, come back, change places, or change with the configuration.

use std::os::unix::fs::symlink;

use super::*;

fn watching(reload: &ReloadHandle, dir: &Path) -> bool {
    let dir = dir.display().to_string();
    reload.status().watching.contains(&dir)
}

#[test]
fn removed_and_made_anew() {
    let site = Site::new("one");
    let reload = site.start(EVENTS_ONLY);
    for content in ["two", "three"] {
        fs::remove_dir_all(&site.dir).unwrap();
        refused(&reload, "no such file");
        eventually("the watch is given up", || !watching(&reload, &site.dir));
        fs::create_dir(&site.dir).unwrap();
        fs::write(site.file(), content).unwrap();
        serves(&reload, content);
        assert!(watching(&reload, &site.dir));
        // The new watch lives.
        let again = format!("{content} again");
        fs::write(site.file(), &again).unwrap();
        serves(&reload, &again);
    }
    assert!(!reload.status().polling);
    assert_eq!(reload.status().watch_errors, 0);
}

#[test]
fn made_anew_at_once() {
    // Many file systems give the new folder the number of the old one.
    let site = Site::new("one");
    let reload = site.start(EVENTS_ONLY);
    for number in 0..5 {
        fs::remove_dir_all(&site.dir).unwrap();
        fs::create_dir(&site.dir).unwrap();
        let content = format!("anew {number}");
        fs::write(site.file(), &content).unwrap();
        serves(&reload, &content);
        let again = format!("again {number}");
        fs::write(site.file(), &again).unwrap();
        serves(&reload, &again);
    }
}

#[test]
fn moved_away_and_replaced() {
    let site = Site::new("one");
    let reload = site.start(EVENTS_ONLY);
    let old = site.root.path().join("old");
    let new = site.root.path().join("new");
    fs::create_dir(&new).unwrap();
    fs::write(new.join("routes.rhai"), "two").unwrap();
    fs::rename(&site.dir, &old).unwrap();
    fs::rename(&new, &site.dir).unwrap();
    serves(&reload, "two");
    fs::write(site.file(), "three").unwrap();
    serves(&reload, "three");
}

#[test]
fn a_link_pointed_elsewhere() {
    let site = Site::new("one");
    let link = site.root.path().join("current");
    symlink("conf", &link).unwrap();
    let site = Site {
        dir: link.clone(),
        ..site
    };
    site.watch_only(&[&link]);
    let reload = site.start(EVENTS_ONLY);
    for content in ["two", "three"] {
        let release = site.root.path().join(content);
        fs::create_dir(&release).unwrap();
        fs::write(release.join("routes.rhai"), content).unwrap();
        let new = site.root.path().join("new");
        symlink(&release, &new).unwrap();
        fs::rename(&new, &link).unwrap();
        serves(&reload, content);
        let again = format!("{content} again");
        fs::write(release.join("routes.rhai"), &again).unwrap();
        serves(&reload, &again);
    }
}

#[test]
fn the_folders_change_with_an_attempt_also_a_failed_one() {
    let site = Site::new("one");
    let other = site.root.path().join("other");
    fs::create_dir(&other).unwrap();
    let reload = site.start(EVENTS_ONLY);
    assert!(!watching(&reload, &other));

    site.watch_only(&[&site.dir, &other]);
    fs::write(site.file(), "bad").unwrap();
    refused(&reload, "bad");
    eventually("both are watched", || {
        watching(&reload, &other) && watching(&reload, &site.dir)
    });
    let before = site.probe.checks();
    fs::write(other.join("keys.json"), "{}").unwrap();
    eventually("an event in the new folder", || {
        site.probe.checks() > before
    });

    site.watch_only(&[&site.dir]);
    fs::write(site.file(), "two").unwrap();
    serves(&reload, "two");
    eventually("the other is left alone", || !watching(&reload, &other));
}

#[test]
fn a_folder_that_does_not_exist_at_the_start() {
    let site = Site::new("one");
    let later = site.root.path().join("later");
    site.watch_only(&[&site.dir, &later]);
    let reload = site.start(EVENTS_ONLY);
    assert!(watching(&reload, &site.dir));
    assert!(!reload.status().polling);
    let before = site.probe.checks();
    fs::create_dir(&later).unwrap();
    eventually("it is watched", || watching(&reload, &later));
    eventually("it is looked at", || site.probe.checks() > before);
}

#[test]
fn what_changed_before_the_first_watch_is_noticed() {
    let site = Site::new("one");
    let (target, initial) = site.target();
    fs::write(site.file(), "two").unwrap();
    let reload = crate::reload::spawn(target, initial, EVENTS_ONLY).unwrap();
    serves(&reload, "two");
}

#[test]
fn what_changed_in_a_folder_before_it_was_added_is_noticed() {
    let site = Site::new("one");
    site.watch_only(&[]);
    let reload = site.start(EVENTS_ONLY);
    site.probe.set_closed(true);
    fs::write(site.file(), "two").unwrap();
    let answer = reload.submit();
    eventually("it has read", || site.probe.attempts() == 1);
    // After the reading and before the watch: no event tells of this.
    fs::write(site.file(), "three").unwrap();
    site.watch_only(&[&site.dir]);
    site.probe.set_closed(false);
    answer.blocking_recv().unwrap();
    serves(&reload, "three");
}
