//! A mounted ConfigMap is swapped (traefik 5037, envoy 3928); files of a plain folder are edited
//! in the ways that editors and tools do it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::atomic_writer::AtomicWriter;
use crate::support::client::{Connection, get};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::wait::{SOON, timed, until};

/// How soon a change must be live. The case says 2 s; the rest is for a machine that is busy with
/// other tests.
const LIVE: Duration = Duration::from_millis(3000);

/// A program of two files that answers with the version in each: `one+one`.
fn program(version: &str) -> (String, String) {
    let routes = format!(
        "const DATA = table(\"data.json\");\n\
         route(\"/\").respond(|req| respond(200, \"{version}+\" + DATA.get(\"version\")));\n"
    );
    (routes, format!("{{\"version\": \"{version}\"}}\n"))
}

const BROKEN: &str = "const DATA = table(\"data.json\");\nroute(\"/\").to(\"nowhere\");\n";

fn mounted(version: &str) -> Proxy {
    let (routes, data) = program(version);
    serving(&routes)
        .file("data.json", &data)
        .published_by(|folder, files| {
            AtomicWriter::new(folder).publish(files).unwrap();
        })
        .start()
}

fn publish(proxy: &Proxy, routes: &str, data: &str) {
    let files = [
        ("routes.rhai", routes),
        ("data.json", data),
        ("edgewright.toml", proxy.settings()),
    ];
    AtomicWriter::new(proxy.folder()).publish(&files).unwrap();
}

/// Waits until the proxy answers with `version`, and says how soon that was.
fn live(proxy: &Proxy, version: &str) {
    let expected = format!("{version}+{version}");
    let (_, took) = timed(&format!("version {version}"), SOON, || {
        (proxy.text("/") == expected).then_some(())
    });
    assert!(took <= LIVE, "{version} was live after {took:?}");
}

fn refused(proxy: &Proxy, nth: usize, place: &str) {
    let line = proxy.log.wait_nth("reload refused", nth, SOON);
    assert!(line.contains(place), "{line}");
    until("the refusal in metrics and status", SOON, || {
        proxy.metric("config_reloads_total", &[("result", "failed")]) >= nth as f64
            && proxy.metric("config_last_reload_successful", &[]) == 0.0
            && proxy.status()["last_error"].to_string().contains(place)
    });
}

/// Sends requests without a pause and checks every answer, until told to stop.
struct Hammer(std::thread::JoinHandle<Vec<String>>, Arc<AtomicBool>);

impl Hammer {
    fn start(proxy: &Proxy) -> Self {
        let address = proxy.address();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut seen: Vec<String> = Vec::new();
            let mut connection = Connection::open(address).unwrap();
            while !flag.load(Ordering::Relaxed) {
                let response = connection.send(&get("/")).unwrap();
                let answer = format!("{} {}", response.status, response.text());
                if seen.last() != Some(&answer) {
                    seen.push(answer);
                }
                if response.closes() {
                    connection = Connection::open(address).unwrap();
                }
            }
            seen
        });
        Self(thread, stop)
    }

    /// The different answers in the order in which they came.
    fn finish(self) -> Vec<String> {
        self.1.store(true, Ordering::Relaxed);
        self.0.join().unwrap()
    }
}

#[test]
fn every_swap_is_seen_a_bad_one_is_refused_and_nothing_is_served_half() {
    let proxy = mounted("one");
    assert_eq!(proxy.text("/"), "one+one");
    let hammer = Hammer::start(&proxy);
    for version in ["two", "three", "four"] {
        let (routes, data) = program(version);
        publish(&proxy, &routes, &data);
        live(&proxy, version);
    }
    publish(&proxy, BROKEN, "{\"version\": \"bad\"}");
    refused(&proxy, 1, "routes.rhai:2:");
    assert_eq!(proxy.text("/"), "four+four");
    let (routes, _) = program("five");
    publish(&proxy, &routes, "{ not json");
    refused(&proxy, 2, "data.json");
    assert_eq!(proxy.text("/"), "four+four");
    let (routes, data) = program("five");
    publish(&proxy, &routes, &data);
    live(&proxy, "five");
    until("success in the metric", SOON, || {
        proxy.metric("config_last_reload_successful", &[]) == 1.0
    });
    assert!(proxy.status()["last_error"].is_null());
    // Each version in its turn, whole, and nothing else in between.
    let whole = ["one", "two", "three", "four", "five"].map(|v| format!("200 {v}+{v}"));
    assert_eq!(hammer.finish(), whole);
}

#[test]
fn publishing_the_same_again_changes_nothing() {
    let proxy = mounted("one");
    let revision = proxy.status()["revision"].clone();
    let (routes, data) = program("one");
    // Another dated directory with the same content: the kubelet does so when an unrelated key changes.
    let files = [
        ("routes.rhai", routes.as_str()),
        ("data.json", data.as_str()),
        ("edgewright.toml", proxy.settings()),
        ("unrelated.txt", "new"),
    ];
    AtomicWriter::new(proxy.folder()).publish(&files).unwrap();
    let (status, body) = proxy.reload();
    assert_eq!(
        (status, &body["result"]),
        (200, &"unchanged".into()),
        "{body}"
    );
    assert_eq!(proxy.status()["revision"], revision);
    assert_eq!(proxy.log.count("reloaded revision="), 0);
}

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
