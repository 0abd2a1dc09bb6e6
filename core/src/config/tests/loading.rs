#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use edgewright_script::values::Files as _;

use crate::config::load::{ATTEMPTS, attempt_with};
use crate::config::*;
use crate::files::Folder;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(dir.path().join(name), content).unwrap();
    }
    dir
}

fn loaded(path: &Path) -> Loaded {
    load(path, &Overrides::default()).unwrap()
}

fn refused(path: &Path) -> String {
    load(path, &Overrides::default()).unwrap_err().to_string()
}

fn listen(addresses: &[&str]) -> Overrides {
    Overrides {
        listen: addresses.iter().map(|text| text.parse().unwrap()).collect(),
        ..Overrides::default()
    }
}

const OWN_PORT: &str = "[[listeners]]\naddress = \"127.0.0.1:7001\"\n";

#[test]
fn a_folder_with_a_program_alone_has_the_defaults() {
    let dir = folder(&[("routes.rhai", "")]);
    let loaded = loaded(dir.path());
    assert_eq!(loaded.config, Config::default());
    assert_eq!(loaded.folder.root(), dir.path());
    assert!(loaded.folder.read("routes.rhai").is_ok());
}

#[test]
fn a_folder_s_own_configuration_is_used() {
    let text = format!("routes = \"edge.rhai\"\n{OWN_PORT}");
    let dir = folder(&[("edge.rhai", ""), (CONFIG_FILE, &text)]);
    let config = loaded(dir.path()).config;
    assert_eq!(config.file, Some(dir.path().join(CONFIG_FILE)));
    assert_eq!(config.routes, "edge.rhai");
    assert_eq!(config.listeners[0].address.port(), 7001);
    let defaults = Config {
        file: None,
        routes: Config::default().routes,
        listeners: Config::default().listeners,
        ..config
    };
    assert_eq!(defaults, Config::default());
}

#[test]
fn a_toml_file_may_have_any_name() {
    let dir = folder(&[("routes.rhai", ""), ("prod.toml", OWN_PORT)]);
    let path = dir.path().join("prod.toml");
    let config = loaded(&path).config;
    assert_eq!(config.file, Some(path));
    assert_eq!(config.listeners[0].address.port(), 7001);
    assert_eq!(loaded(dir.path()).config.file, None);
}

#[test]
fn a_program_s_neighbour_is_used_but_for_its_routes() {
    let text = format!("routes = \"absent.rhai\"\n{OWN_PORT}");
    let dir = folder(&[("mine.rhai", ""), (CONFIG_FILE, &text)]);
    let config = loaded(&dir.path().join("mine.rhai")).config;
    assert_eq!(config.routes, "mine.rhai");
    assert_eq!(config.listeners[0].address.port(), 7001);
}

#[test]
fn listeners_of_the_command_line_replace_those_of_the_file() {
    let dir = folder(&[("routes.rhai", ""), (CONFIG_FILE, OWN_PORT)]);
    let load = |addresses| load(dir.path(), &listen(addresses));
    let config = load(&["0.0.0.0:7002", "127.0.0.1:7001"]).unwrap().config;
    let ports: Vec<_> = config
        .listeners
        .iter()
        .map(|listener| listener.address.port())
        .collect();
    assert_eq!(ports, [7002, 7001]);

    let error = |addresses| load(addresses).unwrap_err().to_string();
    assert!(error(&["127.0.0.1:0"]).contains("the port can't be 0"));
    assert!(error(&["0.0.0.0:1", "127.0.0.1:1"]).contains("`--listen`: 127.0.0.1:1 is taken"));
    assert!(
        error(&["127.0.0.1:9180"]).contains("[admin]: 127.0.0.1:9180 is taken: `--listen` has")
    );
}

#[test]
fn a_missing_program_is_explained() {
    let dir = folder(&[]);
    assert_eq!(
        refused(dir.path()),
        "error: no program: there is no file `routes.rhai` in the configuration's folder \
         (a program stands in `routes.rhai`, or in the file that `routes` in `edgewright.toml` \
         names)"
    );
    fs::write(dir.path().join(CONFIG_FILE), "\nroutes = \"x.rhai\"").unwrap();
    assert!(refused(dir.path()).starts_with("edgewright.toml:2:10: error: no program: "));
    fs::write(dir.path().join(CONFIG_FILE), "routes = \"../x.rhai\"").unwrap();
    assert!(refused(dir.path()).contains("1:10: error: no program: `../x.rhai` lies outside"));
}

#[test]
fn a_path_that_is_nothing_of_ours_is_explained() {
    let dir = folder(&[("readme.md", "")]);
    assert!(refused(&dir.path().join("readme.md")).contains("no folder, no .toml and no .rhai"));
    assert!(refused(&dir.path().join("absent")).contains("can't open `"));
    assert!(refused(&dir.path().join("absent.toml")).contains("can't open `"));
}

#[test]
fn a_file_that_is_no_text_is_refused() {
    let dir = folder(&[("routes.rhai", "")]);
    fs::write(dir.path().join(CONFIG_FILE), b"routes = \"\xff\"").unwrap();
    assert!(refused(dir.path()).contains("`edgewright.toml` is not UTF-8"));
}

#[test]
fn allowed_folders_reach_the_folder() {
    let secrets = folder(&[("token", "t")]);
    let text = format!("[files]\nallow = [{:?}]", secrets.path());
    let dir = folder(&[("routes.rhai", ""), (CONFIG_FILE, &text)]);
    let token = secrets.path().join("token");
    let read = loaded(dir.path()).folder.read(token.to_str().unwrap());
    assert_eq!(read.unwrap(), b"t");
}

#[test]
fn a_failure_keeps_the_fingerprint_of_what_was_read() {
    let dir = folder(&[("routes.rhai", ""), (CONFIG_FILE, "thread = 1")]);
    let error = attempt(dir.path(), &Overrides::default()).unwrap_err();
    let fingerprint = error.folder.unwrap().fingerprint();
    assert!(fingerprint.is_current(dir.path()));
    fs::write(dir.path().join(CONFIG_FILE), "").unwrap();
    assert!(!fingerprint.is_current(dir.path()));
}

#[test]
fn a_folder_that_changes_while_it_is_read_is_read_again() {
    let dir = folder(&[("routes.rhai", "0")]);
    let program = dir.path().join("routes.rhai");
    let load_after = |changes: usize| {
        let mut opened = 0;
        attempt_with(dir.path(), &Overrides::default(), |path| {
            opened += 1;
            let folder = Folder::open(path, &[])?;
            if opened <= changes {
                // A file read twice with two contents stands for any change.
                folder.read("routes.rhai").unwrap();
                fs::write(&program, format!("{changes} {opened}"))?;
            }
            Ok(folder)
        })
    };
    let loaded = load_after(ATTEMPTS - 1).unwrap();
    assert_eq!(loaded.folder.read("routes.rhai").unwrap(), b"4 4");

    let error = load_after(ATTEMPTS).unwrap_err();
    assert!(error.diagnostics.to_string().contains("changed 5 times"));
    assert!(error.folder.is_some());
}

#[test]
fn an_optional_configuration_that_appears_is_a_change() {
    let dir = folder(&[("routes.rhai", "")]);
    let fingerprint = loaded(dir.path()).folder.fingerprint();
    assert!(fingerprint.is_current(dir.path()));
    fs::write(dir.path().join(CONFIG_FILE), "").unwrap();
    assert!(!fingerprint.is_current(dir.path()));
}

#[test]
fn a_configmap_can_be_loaded_by_each_of_its_names() {
    let dir = tempfile::tempdir().unwrap();
    let dated = dir.path().join("..2026_11_30_08_00_00.123");
    fs::create_dir(&dated).unwrap();
    symlink(dated.file_name().unwrap(), dir.path().join("..data")).unwrap();
    for (name, content) in [("routes.rhai", ""), (CONFIG_FILE, OWN_PORT)] {
        fs::write(dated.join(name), content).unwrap();
        symlink(Path::new("..data").join(name), dir.path().join(name)).unwrap();
    }
    for path in [
        dir.path().to_path_buf(),
        dir.path().join(CONFIG_FILE),
        dir.path().join("routes.rhai"),
    ] {
        let loaded = loaded(&path);
        assert_eq!(loaded.config.listeners[0].address.port(), 7001, "{path:?}");
        assert_eq!(loaded.config.file, Some(dir.path().join(CONFIG_FILE)));
        assert_eq!(loaded.folder.watched_dirs(), [dir.path()]);
    }
}

#[test]
fn the_environment_names_addresses_that_nothing_else_does() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("routes.rhai"), "").unwrap();
    let overrides = Overrides {
        default_listen: Some("0.0.0.0:8080".parse().unwrap()),
        default_health: Some("0.0.0.0:9181".parse().unwrap()),
        ..Overrides::default()
    };
    let addresses = |overrides: &Overrides| {
        let config = load(folder.path(), overrides).unwrap().config;
        let health = config.health.map(|address| address.to_string());
        (config.listeners[0].address.to_string(), health)
    };
    let of_the_environment = ("0.0.0.0:8080".to_string(), Some("0.0.0.0:9181".to_string()));
    assert_eq!(addresses(&overrides), of_the_environment);
    let file = "[[listeners]]\naddress = \"127.0.0.1:81\"\n[health]\naddress = \"off\"";
    fs::write(folder.path().join("edgewright.toml"), file).unwrap();
    assert_eq!(addresses(&overrides), ("127.0.0.1:81".to_string(), None));
}
