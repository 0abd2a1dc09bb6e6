//! When the kernel doesn't tell of changes, or of too many: no inotify instance is left, its queue runs over, or
//! somebody writes all the time.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::skip::not_run;
use crate::support::two_files::LIVE;
use crate::support::upstream::Upstream;
use crate::support::versions::{replace, version};
use crate::support::wait::{SOON, timed, until};

fn is_live(proxy: &Proxy, name: &str) -> Duration {
    let (_, took) = timed(name, SOON, || {
        (proxy.text("/version") == name).then_some(())
    });
    took
}

/// Whoever may do this in a user namespace of its own has no inotify instance there.
const USE_UP: &str = "echo 0 > /proc/sys/user/max_inotify_instances";

/// A shell in a user namespace of its own.
const NAMESPACE: [&str; 5] = ["unshare", "--user", "--map-root-user", "sh", "-c"];

#[test]
fn without_an_inotify_instance_changes_are_found_by_looking() {
    let mut probe = Command::new(NAMESPACE[0]);
    probe.args(&NAMESPACE[1..]).arg(USE_UP);
    let possible = probe.stderr(Stdio::null()).status();
    if !possible.is_ok_and(|status| status.success()) {
        return not_run(
            "without an inotify instance",
            "no user namespace whose limit can be set",
        );
    }
    let web = Upstream::fixed("ok");
    let shell = format!("{USE_UP} && exec \"$0\" \"$@\"");
    let words = NAMESPACE.map(str::to_owned).into_iter().chain([shell]);
    let proxy = serving(&version("one"))
        .pool("web", web.address())
        .through(words)
        .start();
    until("the poll to be all there is", SOON, || {
        let status = proxy.status();
        status["polling"] == true && status["watching"] == serde_json::json!([])
    });
    let line = proxy.log.wait("fs.inotify.max_user_instances", SOON);
    assert!(line.contains("WARN"), "{line}");
    assert!(proxy.metric("config_watch_errors_total", &[]) >= 1.0);
    replace(&proxy, &version("two"));
    is_live(&proxy, "two");
    assert_eq!(proxy.log.count("max_user_instances"), 1, "told once");
}

/// While the process is stopped the kernel collects more events than it keeps; what was changed after that is in none.
#[test]
fn an_event_that_the_kernel_dropped_is_not_missed() {
    let web = Upstream::fixed("ok");
    let proxy = serving(&version("one")).pool("web", web.address()).start();
    until("the watch", SOON, || {
        proxy.status()["watching"] != serde_json::json!([])
    });
    let kept = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let kept: usize = kept.trim().parse().unwrap();
    proxy.signal("STOP");
    let noise = proxy.file("noise");
    // Each is made, closed and removed: at least three events.
    for _ in 0..kept / 3 + 1000 {
        fs::write(&noise, "").unwrap();
        fs::remove_file(&noise).unwrap();
    }
    replace(&proxy, &version("two"));
    proxy.signal("CONT");
    is_live(&proxy, "two");
    // And the watch is as good as before.
    replace(&proxy, &version("three"));
    let took = is_live(&proxy, "three");
    assert!(took <= LIVE, "live after {took:?}");
}

#[test]
fn a_storm_of_changes_is_few_reloads_and_the_newest_wins() {
    let web = Upstream::fixed("ok");
    let proxy = serving(&version("v0")).pool("web", web.address()).start();
    let begin = Instant::now();
    for number in 1..=300 {
        replace(&proxy, &version(&format!("v{number}")));
    }
    is_live(&proxy, "v300");
    let seconds = begin.elapsed().as_secs() as f64;
    let loaded = proxy.metric("config_reloads_total", &[("result", "loaded")]);
    assert!(
        (1.0..=seconds + 2.0).contains(&loaded),
        "{loaded} reloads in {seconds} s"
    );
    assert_eq!(
        proxy.metric("config_reloads_total", &[("result", "failed")]),
        0.0
    );
}
