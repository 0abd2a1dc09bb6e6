#![allow(clippy::unwrap_used)]

use std::os::unix::fs::symlink;

use super::*;

/// Does what the kubelet's atomic writer does to a volume, step by step.
struct Volume {
    dir: PathBuf,
    updates: u32,
}

impl Volume {
    fn new(dir: &Path) -> Self {
        fs::create_dir_all(dir).unwrap();
        Self {
            dir: fs::canonicalize(dir).unwrap(),
            updates: 0,
        }
    }

    /// Publishes `files` as the volume's whole content.
    fn update(&mut self, files: &[(&str, &str)]) {
        let old = fs::read_link(self.dir.join("..data")).ok();
        self.updates += 1;
        let dated = format!("..2026_11_30_08_00_{:02}.123", self.updates);
        for (name, content) in files {
            write(&self.dir.join(&dated).join(name), content);
        }
        symlink(&dated, self.dir.join("..data_tmp")).unwrap();
        fs::rename(self.dir.join("..data_tmp"), self.dir.join("..data")).unwrap();
        for entry in fs::read_dir(self.dir.join(&dated)).unwrap() {
            let name = entry.unwrap().file_name();
            let link = self.dir.join(&name);
            if fs::symlink_metadata(&link).is_err() {
                symlink(Path::new("..data").join(&name), link).unwrap();
            }
        }
        if let Some(old) = old {
            fs::remove_dir_all(self.dir.join(old)).unwrap();
        }
    }
}

fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn open(root: &Path) -> Folder {
    Folder::open(root, &[]).unwrap()
}

fn text(folder: &Folder, name: &str) -> String {
    String::from_utf8(folder.read(name).unwrap()).unwrap()
}

fn outside(name: &str) -> Result<Vec<u8>, FileError> {
    Err(FileError::Outside(name.to_string()))
}

fn missing(name: &str) -> Result<Vec<u8>, FileError> {
    Err(FileError::NotFound(name.to_string()))
}

#[test]
fn reads_a_plain_folder() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("routes.rhai"), "a");
    write(&dir.path().join("tables/keys.json"), "{}");
    let folder = open(dir.path());
    assert_eq!(text(&folder, "routes.rhai"), "a");
    assert_eq!(text(&folder, "./tables/keys.json"), "{}");
    assert_eq!(folder.read("absent.json"), missing("absent.json"));
    assert_eq!(folder.read("routes.rhai/x"), missing("routes.rhai/x"));
    assert_eq!(
        folder.watched_dirs(),
        [dir.path().to_path_buf(), dir.path().join("./tables")]
    );
}

#[test]
fn a_swap_between_two_reads_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let mut volume = Volume::new(dir.path());
    volume.update(&[("tls.crt", "cert 1"), ("tls.key", "key 1")]);

    let folder = open(dir.path());
    assert_eq!(text(&folder, "tls.crt"), "cert 1");
    volume.update(&[("tls.crt", "cert 2"), ("tls.key", "key 2")]);
    assert_eq!(folder.read("tls.key"), Err(FileError::Changed));

    let again = open(dir.path());
    assert_eq!(text(&again, "tls.crt"), "cert 2");
    assert_eq!(text(&again, "tls.key"), "key 2");
}

#[test]
fn one_revision_is_read_while_the_old_one_still_exists() {
    let dir = tempfile::tempdir().unwrap();
    let mut volume = Volume::new(dir.path());
    volume.update(&[("tls.crt", "cert 1"), ("tls.key", "key 1")]);
    let folder = open(dir.path());
    assert_eq!(text(&folder, "tls.crt"), "cert 1");
    // The rename alone: the moment before the old folder is removed.
    write(&dir.path().join("..new/tls.key"), "key 2");
    symlink("..new", dir.path().join("..data_tmp")).unwrap();
    fs::rename(dir.path().join("..data_tmp"), dir.path().join("..data")).unwrap();
    assert_eq!(text(&folder, "tls.key"), "key 1");
}

#[test]
fn a_file_missing_from_the_volume_is_missing_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let mut volume = Volume::new(dir.path());
    volume.update(&[("routes.rhai", "a")]);
    let folder = open(dir.path());
    text(&folder, "routes.rhai");
    assert_eq!(folder.read("edgewright.toml"), missing("edgewright.toml"));
    volume.update(&[("routes.rhai", "b"), ("edgewright.toml", "")]);
    volume.update(&[("routes.rhai", "b")]);
    assert_eq!(folder.read("other.json"), Err(FileError::Changed));
}

#[test]
fn a_volume_inside_the_folder_is_pinned_too() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("routes.rhai"), "a");
    let mut tls = Volume::new(&dir.path().join("tls"));
    tls.update(&[("tls.crt", "cert 1"), ("tls.key", "key 1")]);
    let folder = open(dir.path());
    text(&folder, "routes.rhai");
    text(&folder, "tls/tls.crt");
    tls.update(&[("tls.crt", "cert 2"), ("tls.key", "key 2")]);
    assert_eq!(folder.read("tls/tls.key"), Err(FileError::Changed));
    assert_eq!(
        folder.watched_dirs(),
        [dir.path().to_path_buf(), dir.path().join("tls")]
    );
}

#[test]
fn the_folder_itself_may_be_one_of_a_volume() {
    let dir = tempfile::tempdir().unwrap();
    let mut volume = Volume::new(dir.path());
    volume.update(&[("edge/routes.rhai", "1"), ("edge/keys.json", "1")]);
    let root = dir.path().join("edge");
    let folder = open(&root);
    assert_eq!(text(&folder, "routes.rhai"), "1");
    volume.update(&[("edge/routes.rhai", "2"), ("edge/keys.json", "2")]);
    assert_eq!(folder.read("keys.json"), Err(FileError::Changed));
    assert!(!folder.fingerprint().is_current(&root));
    assert!(folder.watched_dirs().contains(&volume.dir), "holds ..data");
    assert_eq!(text(&open(&root), "keys.json"), "2");
}

#[test]
fn watched_folders_outlive_a_swap() {
    let dir = tempfile::tempdir().unwrap();
    let mut volume = Volume::new(dir.path());
    volume.update(&[("routes.rhai", "a"), ("tables/keys.json", "{}")]);
    let folder = open(dir.path());
    text(&folder, "routes.rhai");
    text(&folder, "tables/keys.json");
    let dated = |path: &PathBuf| path.to_string_lossy().contains("..2026");
    assert_eq!(
        folder.watched_dirs(),
        [dir.path().to_path_buf(), dir.path().join("tables")]
    );
    assert!(!folder.watched_dirs().iter().any(dated));
}

#[test]
fn a_linked_file_is_watched_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    write(&root.join("real/routes.rhai"), "a");
    symlink("real/routes.rhai", root.join("routes.rhai")).unwrap();
    let folder = open(&root);
    assert_eq!(text(&folder, "routes.rhai"), "a");
    assert_eq!(folder.watched_dirs(), [root.clone(), root.join("real")]);
}

#[test]
fn names_that_leave_the_folder_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("conf");
    write(&dir.path().join("secret"), "s");
    write(&root.join("sub/x"), "x");
    symlink("../secret", root.join("link")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink(root.join("sub/x"), root.join("inside")).unwrap();
    let folder = open(&root);
    let absolute = dir.path().join("secret").display().to_string();
    for name in [
        "../secret",
        "sub/../../secret",
        "sub/../sub/x",
        "link",
        "up/secret",
        &absolute,
        "",
    ] {
        assert_eq!(folder.read(name), outside(name), "{name:?}");
    }
    assert_eq!(text(&folder, "inside"), "x");
    assert!(matches!(folder.read("loop"), Err(FileError::Io { .. })));
    assert!(matches!(folder.read("sub"), Err(FileError::Io { .. })));
}

#[test]
fn a_sibling_with_the_same_beginning_is_outside() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("conf");
    write(&root.join("x"), "x");
    write(&dir.path().join("conf-secret/s"), "s");
    symlink("../conf-secret/s", root.join("link")).unwrap();
    assert_eq!(open(&root).read("link"), outside("link"));
}

#[test]
fn allowed_folders_can_be_read_and_are_pinned() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("conf");
    write(&root.join("routes.rhai"), "a");
    write(&dir.path().join("other/s"), "other");
    let mut secrets = Volume::new(&dir.path().join("secrets"));
    secrets.update(&[("token", "t1"), ("user", "u1")]);
    symlink(dir.path().join("other/s"), secrets.dir.join("leak")).unwrap();
    let name = |file: &str| dir.path().join("secrets").join(file).display().to_string();

    let folder = open(&root);
    assert_eq!(folder.read(&name("token")), outside(&name("token")));
    let folder = open(&root);
    folder.allow(&[dir.path().join("secrets"), dir.path().join("not-there")]);
    assert_eq!(text(&folder, &name("token")), "t1");
    let climbing = name("../other/s");
    assert_eq!(folder.read(&climbing), outside(&climbing));
    assert_eq!(folder.read(&name("leak")), outside(&name("leak")));
    assert!(folder.watched_dirs().contains(&dir.path().join("secrets")));

    let fingerprint = folder.fingerprint();
    assert!(fingerprint.is_current(&root));
    secrets.update(&[("token", "t2"), ("user", "u2")]);
    assert_eq!(folder.read(&name("user")), Err(FileError::Changed));
    assert!(!fingerprint.is_current(&root));
}

#[test]
fn fingerprint_follows_content_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let mut volume = Volume::new(dir.path());
    volume.update(&[("routes.rhai", "a")]);
    let read = || {
        let folder = open(dir.path());
        text(&folder, "routes.rhai");
        let _ = folder.read("edgewright.toml");
        folder.fingerprint()
    };
    let first = read();
    assert_eq!(first.revision().len(), 12);
    assert!(first.is_current(dir.path()));

    volume.update(&[("routes.rhai", "a")]);
    assert!(first.is_current(dir.path()), "same content, new folder");
    assert_eq!(read(), first);

    volume.update(&[("routes.rhai", "b")]);
    assert!(!first.is_current(dir.path()));
    let second = read();
    assert_ne!(second, first);
    assert_ne!(second.revision(), first.revision());

    volume.update(&[("routes.rhai", "a")]);
    assert!(first.is_current(dir.path()), "back again");
    assert_eq!(read().revision(), first.revision());

    volume.update(&[("routes.rhai", "a"), ("edgewright.toml", "")]);
    assert!(!first.is_current(dir.path()), "an optional file came");
    assert_ne!(read().revision(), first.revision());
}

#[test]
fn fingerprint_of_a_removed_folder_is_not_current() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("conf");
    write(&root.join("routes.rhai"), "a");
    let folder = open(&root);
    text(&folder, "routes.rhai");
    fs::remove_dir_all(&root).unwrap();
    assert!(!folder.fingerprint().is_current(&root));
    assert_eq!(folder.read("keys.json"), Err(FileError::Changed));
    let error = Folder::open(&root, &[]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn reading_a_file_again_after_an_edit_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("keys.json"), "1");
    let folder = open(dir.path());
    assert_eq!(text(&folder, "keys.json"), "1");
    assert_eq!(text(&folder, "keys.json"), "1");
    write(&dir.path().join("keys.json"), "2");
    assert_eq!(folder.read("keys.json"), Err(FileError::Changed));
}

#[test]
fn size_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let file = File::create(dir.path().join("big")).unwrap();
    file.set_len(MAX_FILE_SIZE + 1).unwrap();
    let folder = open(dir.path());
    let too_large = FileError::TooLarge {
        name: "big".to_string(),
        limit: MAX_FILE_SIZE,
    };
    assert_eq!(folder.read("big"), Err(too_large));
    file.set_len(3).unwrap();
    assert!(!folder.fingerprint().is_current(dir.path()), "shortened");
}

#[test]
fn only_folders_can_be_opened() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("file"), "x");
    assert!(Folder::open(&dir.path().join("file"), &[]).is_err());
    assert!(Folder::open(&dir.path().join("absent"), &[]).is_err());
}

fn program(folder: &Folder, name: &str) -> Result<(String, PathBuf), FileError> {
    let file = folder.read_program(name)?;
    Ok((String::from_utf8(file.content).unwrap(), file.path))
}

#[test]
fn a_program_is_one_file_by_all_its_names() {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    write(&root.join("lib/auth.rhai"), "auth");
    symlink("lib/auth.rhai", root.join("link.rhai")).unwrap();
    symlink("lib", root.join("folder")).unwrap();
    let folder = open(dir.path());
    let expected = ("auth".to_owned(), root.join("lib/auth.rhai"));
    for name in [
        "lib/auth.rhai",
        "./lib//auth.rhai",
        "link.rhai",
        "folder/auth.rhai",
    ] {
        assert_eq!(program(&folder, name).unwrap(), expected, "{name}");
    }
    // Each is one that was read.
    assert!(folder.fingerprint().is_current(dir.path()));
    write(&root.join("lib/auth.rhai"), "changed");
    assert!(!folder.fingerprint().is_current(dir.path()));
}

#[test]
fn a_program_comes_from_the_folder_itself_only() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let elsewhere = fs::canonicalize(elsewhere.path()).unwrap();
    write(&elsewhere.join("secret.rhai"), "secret");
    write(&dir.path().join("routes.rhai"), "a");
    symlink(elsewhere.join("secret.rhai"), dir.path().join("link.rhai")).unwrap();
    symlink(&elsewhere, dir.path().join("folder")).unwrap();

    let absolute = elsewhere.join("secret.rhai");
    let names = [
        "link.rhai",
        "folder/secret.rhai",
        "folder/../routes.rhai",
        "../routes.rhai",
        absolute.to_str().unwrap(),
    ];
    let folder = open(dir.path());
    for name in names {
        assert_eq!(
            program(&folder, name),
            Err(FileError::Outside(name.to_owned())),
            "{name}"
        );
    }
    // What may be read otherwise is no program all the same.
    let folder = Folder::open(dir.path(), std::slice::from_ref(&elsewhere)).unwrap();
    assert_eq!(text(&folder, "link.rhai"), "secret");
    for name in names {
        assert_eq!(
            program(&folder, name),
            Err(FileError::Outside(name.to_owned())),
            "{name}"
        );
    }
    assert!(folder.fingerprint().is_current(dir.path()));
}

#[test]
fn programs_of_a_volume_come_from_one_revision() {
    let dir = tempfile::tempdir().unwrap();
    let mut volume = Volume::new(dir.path());
    volume.update(&[("routes.rhai", "one"), ("auth.rhai", "auth one")]);
    let folder = open(dir.path());
    assert_eq!(program(&folder, "routes.rhai").unwrap().0, "one");
    assert_eq!(program(&folder, "auth.rhai").unwrap().0, "auth one");
    volume.update(&[("routes.rhai", "two"), ("auth.rhai", "auth two")]);
    assert_eq!(program(&folder, "auth.rhai"), Err(FileError::Changed));
    assert_eq!(
        program(&open(dir.path()), "auth.rhai").unwrap().0,
        "auth two"
    );
}
