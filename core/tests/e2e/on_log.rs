//! `on_log`: a full record of every request, also of one that ended early.

use crate::support::client::{Connection, exchange, get};
use crate::support::launch::serving;
use crate::support::upstream::{Action, Upstream, ok};
use crate::support::wait::{Gate, SOON};

#[test]
fn it_knows_the_way_of_the_request() {
    let web = Upstream::start(|seen| match seen.target().as_str() {
        "/fails" => Action::Hangup,
        _ => ok("hello"),
    });
    let proxy = serving(
        r#"
        route("/{*rest}").on_log(|req, res| {
            let timed = res.duration > 0.0 && (res.upstream_duration ?? 0.0) <= res.duration;
            log("info", "record", #{
                path: req.path, status: res.status, pool: res.pool, upstream: res.upstream,
                attempts: res.attempts, sent: res.bytes_sent, timed: timed,
                failed: res.error != (), answered: res.upstream_duration != (),
            });
        }).to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    assert_eq!(proxy.get("/fine").status, 200);
    let line = proxy.log.wait("record", SOON);
    for part in [
        "status=200",
        "pool=\"web\"",
        "attempts=1",
        "sent=5",
        "timed=true",
        "failed=false",
        "answered=true",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert!(
        line.contains(&format!("upstream=\"{}\"", web.address())),
        "{line}"
    );
    assert_eq!(proxy.get("/fails").status, 502);
    let line = proxy.log.wait_nth("record", 2, SOON);
    for part in ["status=502", "failed=true", "answered=false"] {
        assert!(line.contains(part), "{part} in {line}");
    }
}

#[test]
fn requests_that_end_early_are_logged_by_the_hooks_of_all_sites() {
    let gate = Gate::new();
    let waits = gate.clone();
    let web = Upstream::start(move |_| {
        assert!(waits.pass(SOON));
        ok("late")
    });
    let proxy = serving(
        r#"
        on_log(|req, res| log("info", `ended ${req.path} ${res.status}`));
        site("a.test").route("/").to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    assert_eq!(proxy.send(&get("/none").host("a.test")).status, 404);
    proxy.log.wait("ended /none 404", SOON);
    assert_eq!(proxy.send(&get("/").host("b.test")).status, 404);
    proxy.log.wait("ended / 404", SOON);
    let refused = exchange(
        proxy.address(),
        b"TRACE /t HTTP/1.1\r\nHost: a.test\r\n\r\n",
    );
    assert_eq!(refused.unwrap().status, 405);
    proxy.log.wait("ended /t 405", SOON);
    let mut leaves = Connection::open(proxy.address()).unwrap();
    leaves.write(&get("/").host("a.test").bytes()).unwrap();
    web.wait_hits(1, SOON);
    drop(leaves);
    proxy.log.wait("ended / 499", SOON);
    gate.open();
}

#[test]
fn a_failure_in_it_changes_nothing() {
    let web = Upstream::fixed("fine");
    let proxy = serving(
        r#"
        route("/")
            .on_log(|req, res| { let none = []; none[req.path.len()] })
            .on_log(|req, res| log("info", "second"))
            .to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    assert_eq!(proxy.get("/").text(), "fine");
    proxy.log.wait("second", SOON);
    let failures = proxy.metric("script_failures_total", &[("hook", "on_log")]);
    assert_eq!(failures as u64, 1);
}
