//! Attempts that fail or panic, and what the log says.

use super::super::watch;
use super::log::start_logged;
use super::*;

#[test]
fn one_line_for_each_attempt() {
    let site = Site::new("one");
    let (reload, log) = start_logged(&site, QUICK_POLL, watch::inotify);
    replace(&site, "bad");
    refused(&reload, "bad");
    let before = site.probe.checks();
    eventually("five more polls", || site.probe.checks() > before + 5);
    replace(&site, "two");
    serves(&reload, "two");
    reload.request(DEADLINE).unwrap();
    reload.stop();

    let (one, two) = (revision("one"), revision("two"));
    let expected = [
        format!("ERROR reload refused, revision {one} keeps serving: routes.rhai:1:1: error: bad"),
        format!(
            " INFO reloaded revision={two} bytes=3 changed: routes +0 -0 ~0, pools +0 -0 ~0, files ~routes.rhai"
        ),
        format!(" INFO reload: nothing changed, revision {two} keeps serving"),
    ];
    assert_eq!(log.lines(), expected);
}

#[test]
fn the_poll_does_not_repeat_a_refusal() {
    let site = Site::new("one");
    site.watch_only(&[]);
    let reload = site.start(QUICK_POLL);
    replace(&site, "bad");
    refused(&reload, "bad");
    let before = site.probe.checks();
    eventually("five more polls", || site.probe.checks() > before + 5);
    assert_eq!(site.probe.attempts(), 1);
    replace(&site, "bad in another way");
    refused(&reload, "bad in another way");
    replace(&site, "two");
    serves(&reload, "two");
    assert_eq!(site.probe.attempts(), 3);
}

#[test]
fn without_any_event_the_poll_notices() {
    let site = Site::new("one");
    site.watch_only(&[]);
    let reload = site.start(QUICK_POLL);
    for content in ["two", "three", "four"] {
        replace(&site, content);
        serves(&reload, content);
    }
    assert_eq!(site.probe.attempts(), 3);
    assert!(reload.status().watching.is_empty());
}

#[test]
fn a_panic_is_a_failed_attempt() {
    let site = Site::new("one");
    let reload = site.start(EVENTS_ONLY);
    replace(&site, "panic");
    let status = refused(&reload, "panicked: of the target");
    assert_eq!(status.revision, revision("one"));
    assert_eq!(status.counts.failed, 1);
    let outcome = reload.request(DEADLINE).unwrap();
    assert_eq!(outcome.kind().as_str(), "failed");
    replace(&site, "two");
    serves(&reload, "two");
}

#[test]
fn a_panic_at_each_look_is_logged_once() {
    let site = Site::new("one");
    site.watch_only(&[]);
    let (reload, log) = start_logged(&site, QUICK_POLL, watch::inotify);
    replace(&site, "panic at once");
    refused(&reload, "panicked: of the target when asked");
    eventually("it goes on", || reload.status().counts.failed > 3);
    replace(&site, "two");
    serves(&reload, "two");
    reload.stop();
    let lines = log.lines();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].contains("reload refused"), "{lines:#?}");
    assert!(lines[1].contains("reloaded revision="), "{lines:#?}");
}

#[test]
fn the_status_as_json() {
    let site = Site::new("one");
    site.watch_only(&[]);
    let reload = site.start(EVENTS_ONLY);
    replace(&site, "bad");
    reload.request(DEADLINE).unwrap();
    let json = serde_json::to_value(&*reload.status()).unwrap();
    assert_eq!(json["revision"], revision("one"));
    assert_eq!(json["last_attempt"]["result"], "failed");
    assert!(json["last_attempt"]["at"].as_f64() >= json["loaded_at"].as_f64());
    assert!(json["last_attempt"]["duration"].as_f64() >= Some(0.0));
    assert!(json["last_attempt"]["changes"].is_null());
    assert_eq!(json["last_error"], "routes.rhai:1:1: error: bad");
    let counts = serde_json::json!({"loaded": 0, "unchanged": 0, "failed": 1});
    assert_eq!(json["counts"], counts);
    assert_eq!(json["watch_errors"], 0);
    assert_eq!(json["polling"], false);
    assert_eq!(json["watching"], serde_json::json!([]));

    replace(&site, "two");
    reload.request(DEADLINE).unwrap();
    let json = serde_json::to_value(&*reload.status()).unwrap();
    let changes = &json["last_attempt"]["changes"];
    assert_eq!(changes["named"], serde_json::json!(["~routes.rhai"]));
    let counts = serde_json::json!({"added": 0, "removed": 0, "changed": 1});
    assert_eq!(changes["files"], counts);
}

#[test]
fn many_errors_stay_one_line() {
    let mut errors = vec![Diagnostic::warning("only a warning")];
    errors.extend((1..=10).map(|line| Diagnostic::error("wrong").at("a.rhai", line, 1)));
    let mut status = ReloadStatus::new(&Initial {
        revision: revision("one"),
        loaded_at: SystemTime::now(),
        refused: Vec::new(),
    });
    let outcome = Outcome::Failed { errors };
    status.record(&outcome, SystemTime::now(), Duration::ZERO);
    let text = status.last_error.unwrap();
    assert!(
        text.starts_with("a.rhai:1:1: error: wrong; a.rhai:2:1:"),
        "{text}"
    );
    assert!(
        text.ends_with("a.rhai:8:1: error: wrong; and 2 more"),
        "{text}"
    );
}
