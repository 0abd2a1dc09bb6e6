//! The second signal, and what the last responses say.

use std::time::Duration;

use crate::support::client::{Connection, Response, get};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::{Upstream, ok};
use crate::support::wait::{AT_ONCE, Gate, SOON, until};

const ROUTES: &str = r#"route("/{*rest}").to("web");"#;

/// An upstream that answers `late` when the gate opens.
fn gated(gate: &Gate) -> Upstream {
    let held = gate.clone();
    Upstream::start(move |_| {
        held.pass(3 * SOON);
        ok("late")
    })
}

type InFlight = std::thread::JoinHandle<std::io::Result<Response>>;

/// A proxy that has begun to drain with one request in flight.
fn draining(web: &Upstream) -> (Proxy, InFlight) {
    let proxy = serving(ROUTES).pool("web", web.address()).start();
    let address = proxy.address();
    let waiting = std::thread::spawn(move || get("/x").try_send(address));
    web.wait_hits(1, SOON);
    proxy.signal("TERM");
    until("the listener to close", SOON, || {
        Connection::open(address).is_err()
    });
    (proxy, waiting)
}

/// Whether a signal sent to the process still waits to be taken (proc_pid_status(5)).
fn has_pending_signals(proxy: &Proxy) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", proxy.pid())).unwrap();
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
    pending.unwrap().trim().contains(|digit| digit != '0')
}

#[test]
fn a_second_sigterm_cuts_nothing() {
    let gate = Gate::new();
    let web = gated(&gate);
    let (mut proxy, waiting) = draining(&web);
    for signal in ["TERM", "QUIT", "TERM", "TERM"] {
        proxy.signal(signal);
        until("the signal to be taken", SOON, || {
            !has_pending_signals(&proxy)
        });
        // A whole exchange later it still runs.
        assert_eq!(proxy.ask_health("/healthz").status, 200, "{signal}");
        assert!(proxy.running() && !waiting.is_finished(), "{signal}");
    }
    gate.open();
    let response = waiting.join().unwrap().expect("the response was cut");
    assert_eq!((response.status, response.text().as_str()), (200, "late"));
    let (status, _) = proxy.wait_exit(AT_ONCE);
    assert_eq!(status.code(), Some(0));
    assert_eq!(proxy.log.count("drained"), 1);
    assert_eq!(proxy.log.count("shutting down"), 1);
}

#[test]
fn a_second_sigterm_does_not_cut_the_delay_short() {
    let web = Upstream::fixed("ok");
    let mut proxy = serving(ROUTES)
        .pool("web", web.address())
        .settings("[server.shutdown]\ndelay = \"2s\"")
        .start();
    let begin = std::time::Instant::now();
    proxy.signal("TERM");
    proxy.log.wait("shutting down", SOON);
    proxy.signal("TERM");
    until("the signal to be taken", SOON, || {
        !has_pending_signals(&proxy)
    });
    assert_eq!(proxy.text("/x"), "ok");
    let (status, _) = proxy.wait_exit(Duration::from_secs(2) + AT_ONCE);
    assert_eq!(status.code(), Some(0));
    assert!(
        begin.elapsed() >= Duration::from_millis(1900),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn sigint_while_draining_ends_it_at_once() {
    let gate = Gate::new();
    let web = gated(&gate);
    let (mut proxy, waiting) = draining(&web);
    proxy.signal("INT");
    let (status, _) = proxy.wait_exit(AT_ONCE);
    assert_eq!(status.code(), Some(0));
    assert!(waiting.join().unwrap().is_err(), "nobody had answered");
    assert_eq!(proxy.log.count("shutting down: at once"), 1);
    assert_eq!(proxy.log.count("drained"), 0);
    gate.open();
}

#[test]
fn sigint_ends_the_delay_too() {
    let web = Upstream::fixed("ok");
    let mut proxy = serving(ROUTES)
        .pool("web", web.address())
        .settings("[server.shutdown]\ndelay = \"25s\"")
        .start();
    proxy.signal("TERM");
    proxy.log.wait("shutting down", SOON);
    proxy.signal("INT");
    let (status, _) = proxy.wait_exit(AT_ONCE);
    assert_eq!(status.code(), Some(0));
}

#[test]
fn the_last_response_of_a_connection_says_so() {
    let gate = Gate::new();
    let web = gated(&gate);
    let proxy = serving(ROUTES).pool("web", web.address()).start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    connection.write(&get("/x").bytes()).unwrap();
    web.wait_hits(1, SOON);
    proxy.signal("TERM");
    proxy.log.wait("shutting down", SOON);
    gate.open();
    let response = connection.read_response("GET").unwrap();
    assert_eq!((response.status, response.text().as_str()), (200, "late"));
    assert!(response.closes(), "{response:?}");
    assert!(connection.closed_within(SOON));
}

#[test]
fn an_answer_of_the_proxy_itself_says_so_too() {
    let proxy = serving(r#"route("/").respond(200, "own");"#)
        .settings("[server.shutdown]\ndelay = \"5s\"")
        .start();
    let mut kept = Connection::open(proxy.address()).unwrap();
    assert!(!kept.send(&get("/")).unwrap().closes());
    proxy.signal("TERM");
    proxy.log.wait("shutting down", SOON);
    let response = kept.send(&get("/")).unwrap();
    assert_eq!((response.status, response.text().as_str()), (200, "own"));
    assert!(response.closes(), "{response:?}");
    assert!(kept.closed_within(SOON));
}

#[test]
fn ctrl_c_on_an_idle_proxy_is_no_error() {
    let web = Upstream::fixed("ok");
    for _ in 0..5 {
        let mut proxy = serving(ROUTES).pool("web", web.address()).start();
        let mut kept = Connection::open(proxy.address()).unwrap();
        assert_eq!(kept.send(&get("/x")).unwrap().status, 200);
        proxy.signal("INT");
        let (status, _) = proxy.wait_exit(AT_ONCE);
        assert_eq!(status.code(), Some(0));
        for word in ["ERROR", "WARN", "panicked"] {
            assert_eq!(proxy.log.count(word), 0, "{}", proxy.log.text());
        }
    }
}
