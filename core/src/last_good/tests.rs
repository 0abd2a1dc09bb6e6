#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt as _;

use edgewright_script::values::Files as _;
use tempfile::TempDir;

use super::*;

struct Room {
    good: TempDir,
    files: TempDir,
}

impl Room {
    fn new() -> Self {
        let room = Self {
            good: TempDir::new().unwrap(),
            files: TempDir::new().unwrap(),
        };
        fs::create_dir(room.files.path().join("sub")).unwrap();
        room.put("routes.rhai", "one");
        room.put("sub/keys.json", "{}");
        room
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.files.path().join(name), text).unwrap();
    }

    fn open(&self) -> LastGood {
        LastGood::open(self.good.path()).unwrap()
    }

    /// Keeps both files, as a load does that has read them.
    fn keep(&self, kept: &LastGood, path: &Path, revision: &str) {
        let folder = Folder::open(self.files.path(), &[]).unwrap();
        folder.keep_contents();
        for name in ["routes.rhai", "./sub/keys.json", "sub/keys.json"] {
            folder.read(name).unwrap();
        }
        kept.keep(path, &folder, revision);
        assert_eq!(kept.failures(), 0);
    }

    /// A file of the current copy.
    fn copied(&self, name: &str) -> PathBuf {
        let own = self.good.path().join(OWN);
        own.join(fs::read_link(own.join(CURRENT)).unwrap())
            .join(name)
    }
}

#[test]
fn a_copy_is_complete_private_and_replaced_as_a_whole() {
    let room = Room::new();
    let kept = room.open();
    assert!(kept.newest(room.files.path()).is_err(), "nothing yet");
    room.keep(&kept, room.files.path(), "aaa");
    let newest = kept.newest(room.files.path()).unwrap();
    assert_eq!(newest.revision, "aaa");
    assert_eq!(fs::read(newest.path.join("routes.rhai")).unwrap(), b"one");
    assert_eq!(fs::read(newest.path.join("sub/keys.json")).unwrap(), b"{}");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&newest.path.join("routes.rhai")), 0o600);
    assert_eq!(mode(&newest.path.join("sub")), 0o700);
    assert_eq!(mode(&room.good.path().join(OWN)), 0o700);

    room.put("routes.rhai", "two");
    room.keep(&kept, room.files.path(), "bbb");
    let newest = kept.newest(room.files.path()).unwrap();
    assert_eq!(fs::read(newest.path.join("routes.rhai")).unwrap(), b"two");
    // The lock, the link and one copy.
    assert_eq!(fs::read_dir(room.good.path().join(OWN)).unwrap().count(), 3);
}

#[test]
fn the_same_files_are_not_written_again() {
    let room = Room::new();
    let kept = room.open();
    room.keep(&kept, room.files.path(), "aaa");
    let before = room.copied("");
    room.keep(&kept, room.files.path(), "aaa");
    assert_eq!(room.copied(""), before);
    // Unless the copy has suffered.
    fs::write(room.copied("files/routes.rhai"), "bad").unwrap();
    room.keep(&kept, room.files.path(), "aaa");
    assert_ne!(room.copied(""), before);
    assert!(kept.newest(room.files.path()).is_ok());
}

#[test]
fn a_file_that_was_named_is_named_again() {
    let room = Room::new();
    let kept = room.open();
    let program = room.files.path().join("routes.rhai");
    room.keep(&kept, &program, "aaa");
    let newest = kept.newest(&program).unwrap();
    assert!(newest.path.ends_with("files/routes.rhai"));
    // However the same folder is named at the next start.
    assert_eq!(kept.newest(room.files.path()).unwrap().path, newest.path);
}

#[test]
fn a_damaged_copy_is_refused() {
    type Damage = fn(&Room);
    let damages: [(&str, Damage); 5] = [
        ("routes.rhai has changed", |room| {
            fs::write(room.copied("files/routes.rhai"), "evil").unwrap();
        }),
        ("routes.rhai is missing", |room| {
            fs::remove_file(room.copied("files/routes.rhai")).unwrap();
        }),
        ("edgewright.toml does not belong to it", |room| {
            fs::write(room.copied("files/edgewright.toml"), "").unwrap();
        }),
        ("its manifest has changed", |room| {
            let path = room.copied("manifest");
            let text = fs::read_to_string(&path).unwrap();
            fs::write(path, text.replace("aaa", "bbb")).unwrap();
        }),
        ("its manifest is cut", |room| {
            fs::write(room.copied("manifest"), "").unwrap();
        }),
    ];
    for (expected, damage) in damages {
        let room = Room::new();
        let kept = room.open();
        room.keep(&kept, room.files.path(), "aaa");
        damage(&room);
        let error = format!("{:#}", kept.newest(room.files.path()).unwrap_err());
        assert!(error.contains(expected), "{error} instead of {expected}");
    }
}

#[test]
fn a_copy_of_another_folder_is_refused() {
    let (room, other) = (Room::new(), Room::new());
    let kept = room.open();
    room.keep(&kept, room.files.path(), "aaa");
    let error = kept.newest(other.files.path()).unwrap_err().to_string();
    assert!(error.contains("not of"), "{error}");
}

#[test]
fn what_a_killed_process_has_left_goes() {
    let room = Room::new();
    room.keep(&room.open(), room.files.path(), "aaa");
    let own = room.good.path().join(OWN);
    fs::create_dir(own.join("copy-bbb-1-1")).unwrap();
    std::os::unix::fs::symlink("copy-bbb-1-1", own.join("current-1")).unwrap();
    let kept = room.open();
    assert_eq!(fs::read_dir(own).unwrap().count(), 3);
    assert!(kept.newest(room.files.path()).is_ok());
}

#[test]
fn a_folder_that_can_not_be_used_is_an_error_at_once() {
    let room = Room::new();
    room.put("plain", "");
    assert!(LastGood::open(&room.files.path().join("plain")).is_err());
}

#[test]
fn a_failure_to_keep_is_counted_and_leaves_the_earlier_copy() {
    let room = Room::new();
    let kept = room.open();
    room.keep(&kept, room.files.path(), "aaa");
    // Nothing can be made where a file is in the way of the copy's name.
    let folder = Folder::open(room.files.path(), &[]).unwrap();
    folder.keep_contents();
    folder.read("routes.rhai").unwrap();
    kept.keep(room.files.path(), &folder, "no/such/folder");
    assert_eq!(kept.failures(), 1);
    assert_eq!(kept.newest(room.files.path()).unwrap().revision, "aaa");
}
