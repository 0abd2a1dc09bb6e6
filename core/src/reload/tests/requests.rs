//! Explicit requests, SIGHUP, and the end.

use super::super::{RequestError, reload_on_hangup};
use super::*;

fn loaded(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Loaded { revision, .. } => revision,
        other => panic!("{other:?}"),
    }
}

#[test]
fn while_idle() {
    let site = Site::new("one");
    // Nothing but the requests causes a reload.
    site.watch_only(&[]);
    let reload = site.start(EVENTS_ONLY);
    let outcome = reload.request(DEADLINE).unwrap();
    assert!(
        matches!(&outcome, Outcome::Unchanged { revision: r } if *r == revision("one")),
        "{outcome:?}"
    );
    assert_eq!(site.probe.attempts(), 0, "unchanged needs no reading");
    assert_eq!(reload.status().counts.unchanged, 1);

    // Without a wait between them, whatever `min_interval` says.
    let begin = Instant::now();
    for number in 0..20 {
        let content = format!("content {number}");
        fs::write(site.file(), &content).unwrap();
        let outcome = reload.request(DEADLINE).unwrap();
        assert_eq!(loaded(&outcome), revision(&content));
        assert_eq!(reload.status().revision, revision(&content));
    }
    assert!(begin.elapsed() < EVENTS_ONLY.min_interval * 20);
}

#[test]
fn after_a_failure_the_errors_are_told_again() {
    let site = Site::new("one");
    site.watch_only(&[]);
    let reload = site.start(EVENTS_ONLY);
    fs::write(site.file(), "bad").unwrap();
    for count in 1..=3 {
        let outcome = reload.request(DEADLINE).unwrap();
        let Outcome::Failed { errors } = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(errors[0].message, "bad");
        assert_eq!(reload.status().counts.failed, count);
    }
}

#[test]
fn during_a_reload_they_share_one_more() {
    let site = Site::new("one");
    site.watch_only(&[]);
    let reload = site.start(EVENTS_ONLY);
    site.probe.set_closed(true);
    fs::write(site.file(), "two").unwrap();
    let first = reload.submit();
    eventually("the first has read", || site.probe.attempts() == 1);

    fs::write(site.file(), "three").unwrap();
    let late = reload.request(Duration::from_millis(1));
    let limit = Duration::from_millis(1);
    assert_eq!(late.unwrap_err(), RequestError::TimedOut(limit));
    let more = [reload.submit(), reload.submit()];
    site.probe.set_closed(false);

    assert_eq!(loaded(&first.blocking_recv().unwrap()), revision("two"));
    for answer in more {
        assert_eq!(loaded(&answer.blocking_recv().unwrap()), revision("three"));
    }
    assert_eq!(site.probe.attempts(), 2);
    assert_eq!(reload.status().revision, revision("three"));
}

#[test]
fn a_change_during_a_reload_is_noticed_after_it() {
    let site = Site::new("one");
    let reload = site.start(EVENTS_ONLY);
    site.probe.set_closed(true);
    fs::write(site.file(), "two").unwrap();
    eventually("the first has read", || site.probe.attempts() == 1);
    fs::write(site.file(), "three").unwrap();
    site.probe.set_closed(false);
    let status = serves(&reload, "three");
    assert_eq!(status.counts.loaded, 2);
}

#[test]
fn sighup() {
    let site = Site::new("one");
    site.watch_only(&[]);
    let reload = site.start(EVENTS_ONLY);
    let hangup = reload_on_hangup(&reload).unwrap();
    for content in ["two", "three"] {
        fs::write(site.file(), content).unwrap();
        signal_hook::low_level::raise(signal_hook::consts::SIGHUP).unwrap();
        serves(&reload, content);
    }
    drop(hangup);
}

#[test]
fn the_last_handle_ends_the_thread() {
    let site = Site::new("one");
    let reload = site.start(EVENTS_ONLY);
    let hangup = reload_on_hangup(&reload).unwrap();
    let other = reload.clone();
    drop(reload);
    other.request(DEADLINE).unwrap();
    assert_eq!(Arc::strong_count(&site.probe), 2);
    drop(other);
    // The drop has joined the thread, which owned the target.
    assert_eq!(Arc::strong_count(&site.probe), 1);
    drop(hangup);
}

#[test]
fn a_stopped_pipeline_refuses_requests_and_keeps_its_status() {
    let site = Site::new("one");
    let reload = site.start(EVENTS_ONLY);
    reload.stop();
    reload.stop();
    let refused = reload.request(DEADLINE).unwrap_err();
    assert_eq!(refused, RequestError::Stopped);
    assert!(reload.submit().blocking_recv().is_err());
    assert_eq!(reload.status().revision, revision("one"));
}

#[test]
fn a_stop_waits_for_a_running_attempt_but_not_for_ever() {
    let site = Site::new("one");
    let reload = site.start(EVENTS_ONLY);
    site.probe.set_closed(true);
    fs::write(site.file(), "two").unwrap();
    eventually("the attempt runs", || site.probe.attempts() == 1);
    let waits = reload.submit();
    let begin = Instant::now();
    reload.stop();
    assert!(begin.elapsed() >= super::super::STOP_WAIT);
    assert!(begin.elapsed() < DEADLINE);
    site.probe.set_closed(false);
    assert!(waits.blocking_recv().is_err(), "stopped, not answered");
    eventually("the thread ends", || Arc::strong_count(&site.probe) == 1);
}
