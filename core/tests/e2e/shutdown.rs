//! SIGTERM neither hangs nor cuts requests (pingora 98).

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::support::client::{Connection, get};
use crate::support::launch::serving;
use crate::support::upstream::{Action, Upstream, ok};
use crate::support::wait::{AT_ONCE, Gate, SOON, until};

const ROUTES: &str = r#"route("/{*rest}").to("web");"#;

#[test]
fn an_idle_proxy_ends_at_once() {
    let web = Upstream::fixed("ok");
    // Several times: what can hang here is a race.
    for signal in ["TERM", "INT", "INT", "INT"] {
        let mut proxy = serving(ROUTES).pool("web", web.address()).start();
        assert_eq!(proxy.get("/x").status, 200);
        proxy.signal(signal);
        let (status, _) = proxy.wait_exit(AT_ONCE);
        assert_eq!(status.code(), Some(0), "{signal}: {}", proxy.log.text());
        assert_eq!(proxy.log.count("shutting down"), 1);
        // Ctrl-C is somebody who does not want to wait.
        assert_eq!(proxy.log.count("drained"), usize::from(signal == "TERM"));
    }
}

#[test]
fn an_idle_keep_alive_connection_holds_nothing_up() {
    let web = Upstream::fixed("ok");
    let mut proxy = serving(ROUTES).pool("web", web.address()).start();
    let mut used = Connection::open(proxy.address()).unwrap();
    assert_eq!(used.send(&get("/x")).unwrap().status, 200);
    let mut fresh = Connection::open(proxy.address()).unwrap();
    proxy.signal("TERM");
    let (status, _) = proxy.wait_exit(AT_ONCE);
    assert_eq!(status.code(), Some(0));
    assert!(used.closed_within(SOON) && fresh.closed_within(SOON));
}

#[test]
fn a_response_in_flight_is_completed() {
    let started = Gate::new();
    let starting = started.clone();
    // Ten pieces over five seconds: the pace of this upstream is what the case is about.
    let web = Upstream::start(move |_| {
        let starting = starting.clone();
        Action::Write(Box::new(move |stream: &mut TcpStream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")?;
            for piece in 0..10 {
                stream.write_all(format!("{piece}").as_bytes())?;
                starting.open();
                std::thread::sleep(Duration::from_millis(500));
            }
            Ok(())
        }))
    });
    let mut proxy = serving(ROUTES).pool("web", web.address()).start();
    let address = proxy.address();
    let slow = std::thread::spawn(move || get("/slow").try_send(address));
    assert!(started.pass(SOON));
    let begin = Instant::now();
    proxy.signal("TERM");
    proxy.log.wait("shutting down", SOON);
    let response = slow.join().unwrap().expect("the response was cut");
    assert_eq!(
        (response.status, response.text().as_str()),
        (200, "0123456789")
    );
    // It took the response's time and did not wait for the end of the drain (25 s).
    let (status, _) = proxy.wait_exit(AT_ONCE);
    assert_eq!(status.code(), Some(0));
    assert!(
        begin.elapsed() >= Duration::from_secs(3),
        "{:?}",
        begin.elapsed()
    );
    assert_eq!(proxy.log.count("drained"), 1);
}

#[test]
fn a_request_whose_answer_has_not_begun_is_completed() {
    let gate = Gate::new();
    let held = gate.clone();
    let web = Upstream::start(move |_| {
        held.pass(SOON);
        ok("late")
    });
    let mut proxy = serving(ROUTES).pool("web", web.address()).start();
    let address = proxy.address();
    let waiting = std::thread::spawn(move || get("/x").try_send(address));
    web.wait_hits(1, SOON);
    proxy.signal("TERM");
    // New connections are refused from then on.
    until("the listener to close", SOON, || {
        TcpStream::connect(address).is_err()
    });
    assert!(proxy.running(), "it ended with a request in flight");
    gate.open();
    let response = waiting.join().unwrap().expect("the request was cut");
    assert_eq!((response.status, response.text().as_str()), (200, "late"));
    let (status, _) = proxy.wait_exit(AT_ONCE);
    assert_eq!(status.code(), Some(0));
}

#[test]
fn readiness_fails_first_and_traffic_is_served_meanwhile() {
    let web = Upstream::fixed("ok");
    let mut proxy = serving(ROUTES)
        .pool("web", web.address())
        .settings("[server.shutdown]\ndelay = \"3s\"\ndrain = \"30s\"")
        .start();
    assert_eq!(proxy.ask_health("/readyz").status, 200);
    let begin = Instant::now();
    proxy.signal("TERM");
    proxy.log.wait("shutting down", SOON);
    let not_ready = proxy.ask_health("/readyz");
    assert_eq!(not_ready.status, 503);
    assert!(!not_ready.text().trim().is_empty());
    assert_eq!(proxy.ask_health("/healthz").status, 200);
    // Whoever has not heard of it yet is served: on new connections too.
    assert_eq!(proxy.text("/x"), "ok");
    let (status, _) = proxy.wait_exit(Duration::from_secs(3) + AT_ONCE);
    assert_eq!(status.code(), Some(0));
    let took = begin.elapsed();
    assert!(
        took >= Duration::from_millis(2900),
        "the delay was cut short: {took:?}"
    );
}

#[test]
fn a_request_that_outlasts_the_drain_is_given_up() {
    let gate = Gate::new();
    let held = gate.clone();
    let web = Upstream::start(move |_| {
        held.pass(2 * SOON);
        ok("too late")
    });
    let mut proxy = serving(ROUTES)
        .pool("web", web.address())
        .settings("[server.shutdown]\ndrain = \"2s\"")
        .start();
    let address = proxy.address();
    let stuck = std::thread::spawn(move || get("/x").try_send(address));
    web.wait_hits(1, SOON);
    let begin = Instant::now();
    proxy.signal("TERM");
    proxy.wait_exit(Duration::from_secs(2) + AT_ONCE);
    assert!(
        begin.elapsed() >= Duration::from_millis(1900),
        "{:?}",
        begin.elapsed()
    );
    gate.open();
    assert!(stuck.join().unwrap().is_err());
}
