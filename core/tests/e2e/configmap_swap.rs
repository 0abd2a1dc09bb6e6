//! A mounted ConfigMap is swapped (traefik 5037, envoy 3928).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::atomic_writer::AtomicWriter;
use crate::support::client::{Connection, get};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::two_files::{BROKEN, live, program, refused};
use crate::support::wait::{SOON, until};

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

/// The kubelet may be as quick as it likes, and the reload may come at any moment of it: what is served comes from one
/// revision.
#[test]
fn a_swap_in_the_middle_of_reading_mixes_nothing() {
    const SWAPS: usize = 150;
    let proxy = mounted("v0");
    let hammer = Hammer::start(&proxy);
    let mut attempts = 0;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 1..=SWAPS {
                let (routes, data) = program(&format!("v{number}"));
                publish(&proxy, &routes, &data);
            }
        });
        while !writer.is_finished() {
            let (status, body) = proxy.reload();
            attempts += 1;
            // Swapped under each of its tries: it says so, and tries again at the next occasion.
            let swapped = body["errors"].to_string().contains("while it was read");
            assert!(status == 200 || swapped, "{body}");
        }
    });
    assert!(attempts > 0);
    live(&proxy, &format!("v{SWAPS}"));
    let answers = hammer.finish();
    let mut last = 0;
    for answer in &answers {
        let versions = answer
            .strip_prefix("200 v")
            .and_then(|v| v.split_once("+v"));
        let (routes, data) = versions.unwrap_or_else(|| panic!("{answer}"));
        assert_eq!(routes, data, "half of one revision and half of another");
        let number: usize = routes.parse().unwrap();
        assert!(number >= last, "{number} after {last}");
        last = number;
    }
    assert!(answers.len() > 1, "{answers:?}");
}
