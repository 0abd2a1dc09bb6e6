//! A watcher that is refused, fails, or loses events.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use notify::event::{AccessKind, CreateKind, Flag};
use notify::{ErrorKind, Event, EventHandler, EventKind, RecursiveMode, Watcher, WatcherKind};

use super::super::trigger::{Plan, Triggers, Wake};
use super::super::watch::{Factory, FolderWatch, on_event};
use super::super::{start, watch, worker::Worker};
use super::log::start_logged;
use super::*;

/// The numbers of `EMFILE`: too many inotify instances.
const EMFILE: i32 = 24;

/// A watcher that never tells of anything, and refuses while `full`.
#[derive(Default)]
struct Mute {
    full: Arc<AtomicBool>,
    watched: BTreeSet<PathBuf>,
    calls: Arc<Mutex<Vec<&'static str>>>,
}

impl Watcher for Mute {
    fn new<F: EventHandler>(_: F, _: notify::Config) -> notify::Result<Self> {
        Err(notify::Error::generic("made by the test only"))
    }

    fn watch(&mut self, path: &Path, _: RecursiveMode) -> notify::Result<()> {
        self.calls.lock().unwrap().push("watch");
        if self.full.load(Ordering::SeqCst) {
            return Err(notify::Error::new(ErrorKind::MaxFilesWatch));
        }
        self.watched.insert(path.to_owned());
        Ok(())
    }

    fn unwatch(&mut self, path: &Path) -> notify::Result<()> {
        self.calls.lock().unwrap().push("unwatch");
        let known = self.watched.remove(path);
        known
            .then_some(())
            .ok_or_else(notify::Error::watch_not_found)
    }

    fn kind() -> WatcherKind {
        WatcherKind::NullWatcher
    }
}

fn start_with(
    site: &Site,
    options: Options,
    factory: impl FnOnce(Arc<Triggers>) -> Factory,
) -> ReloadHandle {
    let (target, initial) = site.target();
    let reload = start(target, initial, options, factory, Worker::run).unwrap();
    site.at_rest();
    reload
}

#[test]
fn no_instance_left() {
    let site = Site::new("one");
    let full = Arc::new(AtomicBool::new(true));
    let switch = full.clone();
    let (reload, log) = start_logged(&site, QUICK_POLL, |triggers| {
        let mut inotify = watch::inotify(triggers);
        Box::new(move || match switch.load(Ordering::SeqCst) {
            true => Err(notify::Error::io(std::io::Error::from_raw_os_error(EMFILE))),
            false => inotify(),
        })
    });
    assert!(reload.status().polling);
    assert!(reload.status().watch_errors > 0);
    assert!(reload.status().watching.is_empty());
    fs::write(site.file(), "two").unwrap();
    serves(&reload, "two");

    full.store(false, Ordering::SeqCst);
    eventually("events again", || !reload.status().polling);
    assert_eq!(reload.status().watching.len(), 1);
    reload.stop();
    let lines = log.lines();
    let warnings: Vec<_> = lines.iter().filter(|line| line.contains("WARN")).collect();
    assert_eq!(warnings.len(), 1, "once, not with each poll: {lines:#?}");
    assert!(warnings[0].contains("fs.inotify.max_user_instances"));
    assert!(lines.last().unwrap().contains("works again"));
}

#[test]
fn no_watch_left() {
    let site = Site::new("one");
    let full = Arc::new(AtomicBool::new(true));
    let switch = full.clone();
    let reload = start_with(&site, QUICK_POLL, |_| {
        Box::new(move || {
            Ok(Box::new(Mute {
                full: switch.clone(),
                ..Mute::default()
            }))
        })
    });
    assert!(reload.status().polling);
    fs::write(site.file(), "two").unwrap();
    serves(&reload, "two");
    full.store(false, Ordering::SeqCst);
    eventually("watched again", || !reload.status().polling);
}

#[test]
fn a_watcher_that_panics_is_replaced() {
    struct Dead;
    impl Watcher for Dead {
        fn new<F: EventHandler>(_: F, _: notify::Config) -> notify::Result<Self> {
            Ok(Dead)
        }
        fn watch(&mut self, _: &Path, _: RecursiveMode) -> notify::Result<()> {
            panic!("its thread is gone")
        }
        fn unwatch(&mut self, _: &Path) -> notify::Result<()> {
            panic!("its thread is gone")
        }
        fn kind() -> WatcherKind {
            WatcherKind::NullWatcher
        }
    }
    impl Drop for Dead {
        fn drop(&mut self) {
            panic!("its thread is gone")
        }
    }

    let site = Site::new("one");
    let reload = start_with(&site, QUICK_POLL, |triggers| {
        let mut inotify = watch::inotify(triggers);
        let mut first = true;
        Box::new(move || match std::mem::take(&mut first) {
            true => Ok(Box::new(Dead)),
            false => inotify(),
        })
    });
    eventually("a live one", || {
        let status = reload.status();
        status.watching.len() == 1 && !status.polling
    });
    assert_eq!(reload.status().watch_errors, 1);
    fs::write(site.file(), "two").unwrap();
    serves(&reload, "two");
}

#[test]
fn an_error_of_the_watcher_means_look_and_start_anew() {
    let site = Site::new("one");
    let made = Arc::new(AtomicU64::new(0));
    let count = made.clone();
    let mut shared = None;
    let reload = start_with(&site, EVENTS_ONLY, |triggers| {
        shared = Some(triggers);
        Box::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
            Ok(Box::new(Mute::default()))
        })
    });
    let triggers = shared.unwrap();
    assert_eq!(made.load(Ordering::SeqCst), 1);
    fs::write(site.file(), "two").unwrap();
    on_event(&triggers, Err(notify::Error::generic("read failed")));
    serves(&reload, "two");
    assert_eq!(made.load(Ordering::SeqCst), 2);
    assert_eq!(reload.status().watch_errors, 1);

    // Events were lost: no event but this one tells of the change.
    fs::write(site.file(), "three").unwrap();
    let overflow = Event::new(EventKind::Other).set_flag(Flag::Rescan);
    on_event(&triggers, Ok(overflow));
    serves(&reload, "three");
    assert_eq!(made.load(Ordering::SeqCst), 2);
}

#[test]
fn reading_is_no_event() {
    let wakes = |event: Event| {
        let triggers = Triggers::default();
        on_event(&triggers, Ok(event));
        let now = Instant::now();
        let plan = Plan {
            poll_at: now,
            return_at: None,
            not_before: None,
        };
        let options = Options {
            debounce: Duration::ZERO,
            ..EVENTS_ONLY
        };
        // Without an event the poll is due.
        matches!(triggers.wait(&plan, &options), Wake::Files)
    };
    assert!(!wakes(Event::new(EventKind::Access(AccessKind::Any))));
    assert!(wakes(Event::new(EventKind::Create(CreateKind::Any))));
    assert!(wakes(Event::new(EventKind::Any)));
    let rescan = Event::new(EventKind::Access(AccessKind::Any)).set_flag(Flag::Rescan);
    assert!(wakes(rescan));
}

#[test]
fn a_folder_in_the_place_of_another_ends_the_watch_on_that() {
    let site = Site::new("one");
    let calls = Arc::new(Mutex::new(Vec::new()));
    let kept = calls.clone();
    let make: Factory = Box::new(move || {
        Ok(Box::new(Mute {
            calls: kept.clone(),
            ..Mute::default()
        }))
    });
    let mut folders = FolderWatch::new(make, Duration::ZERO);
    let dirs = [site.dir.clone()];
    let mut calls_of_sync = || {
        let newly = folders.sync(&dirs);
        (newly, std::mem::take(&mut *calls.lock().unwrap()))
    };
    assert_eq!(calls_of_sync(), (true, vec!["watch"]));
    assert_eq!(calls_of_sync(), (false, vec!["watch"]));
    // Both exist at once, so they can't have the same number.
    let old = site.root.path().join("old");
    fs::rename(&site.dir, old).unwrap();
    fs::create_dir(&site.dir).unwrap();
    assert_eq!(calls_of_sync(), (true, vec!["unwatch", "watch"]));
    fs::remove_dir_all(&site.dir).unwrap();
    assert_eq!(calls_of_sync(), (false, vec!["unwatch"]));
}
