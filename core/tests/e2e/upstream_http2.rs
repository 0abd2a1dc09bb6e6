//! HTTP/2 towards the targets of a pool: without TLS, and as agreed upon in the handshake.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use crate::support::certificates::Authority;
use crate::support::client::{get, post};
use crate::support::http2::{self, answer};
use crate::support::launch::{Builder, serving};
use crate::support::tls_server::{Demands, TlsServer};
use crate::support::upstream::Upstream;
use crate::support::wait::{SOON, until};

const ROUTES: &str = r#"
    route("/{*rest}").to("web");
    route("/short").timeout("300ms").to("web");
"#;

fn to(upstream: &http2::Upstream) -> Builder {
    let target = upstream.address();
    serving(ROUTES).settings(&format!(
        "[server]\nthreads = 1\n[pools.web]\nprotocol = \"http2\"\ntargets = [\"{target}\"]\n"
    ))
}

#[test]
fn requests_of_http_1_become_requests_of_http_2() {
    let upstream = http2::Upstream::start(|seen| {
        let body = format!("{} {}", seen.method, seen.message.text());
        Some(answer(200, &body).header("x-up", "1"))
    });
    let proxy = to(&upstream).start();
    let response = proxy.send(&post("/a?b=c", "hello").header("Connection", "keep-alive"));
    assert_eq!(
        (response.status, response.text().as_str()),
        (200, "POST hello")
    );
    assert_eq!(response.header("x-up"), Some("1"));
    let seen = &upstream.seen()[0];
    assert_eq!(seen.uri, "http://edge.test/a?b=c");
    assert_eq!(seen.message.header("x-forwarded-for"), Some("127.0.0.1"));
    for name in ["connection", "host", "transfer-encoding"] {
        assert_eq!(seen.message.header(name), None, "{name}");
    }
}

#[test]
fn requests_share_a_connection_up_to_its_streams() {
    let together = Arc::new(Barrier::new(3));
    let upstream = http2::Upstream::start(move |seen| {
        if seen.uri.ends_with("/first") {
            return Some(answer(200, "first"));
        }
        // All three are here at the same time, or nobody is answered.
        together.wait();
        Some(answer(200, "together"))
    });
    let proxy = to(&upstream)
        .settings("[pools.web.connections]\nstreams = 2")
        .start();
    assert_eq!(proxy.text("/first"), "first");
    let address = proxy.address();
    let threads: Vec<_> = (0..3)
        .map(|_| std::thread::spawn(move || get("/x").send(address).text()))
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), "together");
    }
    // The third needs another one; Pingora may make one more when two look for one at the same moment.
    let connections = upstream.connections();
    assert!((2..=3).contains(&connections), "{connections}");
}

/// A target that takes its leave after each request (GOAWAY, RFC 9113 section 6.8). What can be repeated never fails of it;
/// what can't is sent once at the most, although a client is told of it when it comes in between.
#[test]
fn a_target_may_leave_after_each_request() {
    let upstream = http2::Upstream::leaving(|_| Some(answer(200, "ok")));
    let proxy = to(&upstream).start();
    for round in 0..20 {
        assert_eq!(proxy.text(&format!("/get/{round}")), "ok");
        let status = proxy.send(&post(&format!("/post/{round}"), "body")).status;
        assert!(matches!(status, 200 | 502), "{status}");
    }
    let seen = upstream.seen();
    for round in 0..20 {
        let copies = |path: String| seen.iter().filter(|one| one.uri.ends_with(&path)).count();
        assert_eq!(copies(format!("/get/{round}")), 1);
        assert!(copies(format!("/post/{round}")) <= 1);
    }
    assert!(upstream.connections() > 1, "nobody left");
}

#[test]
fn a_timeout_cuts_its_own_request_only() {
    let upstream = http2::Upstream::start(|seen| {
        if seen.uri.ends_with("/short") {
            return None;
        }
        if seen.uri.ends_with("/slow") {
            // Longer than the other's time.
            std::thread::sleep(Duration::from_secs(1));
        }
        Some(answer(200, "done"))
    });
    let proxy = to(&upstream).start();
    assert_eq!(proxy.text("/first"), "done");
    let address = proxy.address();
    let slow = std::thread::spawn(move || get("/slow").send(address).text());
    until("the slow request", SOON, || upstream.seen().len() == 2);
    assert_eq!(proxy.get("/short").status, 504);
    assert_eq!(slow.join().unwrap(), "done");
}

#[test]
fn a_body_that_is_kept_for_hooks_is_sent_on() {
    let upstream =
        http2::Upstream::start(|seen| Some(answer(200, &seen.message.body.len().to_string())));
    let proxy = serving(
        r#"route("/{*rest}").on_request_body(|req| { if req.body().len() < 100 { req.set_body(req.body().text() + "!"); } }).to("web");"#,
    )
    .settings(&format!(
        "[pools.web]\nprotocol = \"http2\"\ntargets = [\"{}\"]",
        upstream.address()
    ))
    .start();
    assert_eq!(proxy.send(&post("/", "a".repeat(100_000))).text(), "100000");
    assert_eq!(proxy.send(&post("/", "hello")).text(), "6");
}

#[test]
fn what_the_server_agrees_to_is_spoken() {
    let authority = Authority::new("of the test");
    let own = authority.issue(&["web.test"]);
    let two = http2::Upstream::start(|_| Some(answer(200, "two")));
    let one = Upstream::fixed("one");
    for (inner, alpn, spoken) in [
        (two.address(), &["h2", "http/1.1"][..], "two"),
        (one.address(), &["http/1.1"], "one"),
        (one.address(), &[], "one"),
    ] {
        let demands = Demands {
            alpn,
            ..Demands::default()
        };
        let server = TlsServer::start(&own, inner, &demands);
        let proxy = serving(ROUTES)
            .file("ca.pem", &authority.pem())
            .settings(&format!(
                "[pools.web]\nprotocol = \"auto\"\ntargets = [\"{}\"]\n\
                 [pools.web.tls]\nca = \"ca.pem\"\nserver_name = \"web.test\"",
                server.address()
            ))
            .start();
        for _ in 0..2 {
            assert_eq!(proxy.text("/"), spoken);
        }
        let agreed = server.shaken()[0].alpn.clone();
        assert_eq!(agreed.as_deref(), alpn.first().copied());
    }
}

#[test]
fn a_server_of_http_1_is_no_upstream_of_http_2() {
    let upstream = Upstream::fixed("one");
    let proxy = serving(ROUTES)
        .settings(&format!(
            "[pools.web]\nprotocol = \"http2\"\ntargets = [\"{}\"]",
            upstream.address()
        ))
        .start();
    assert_eq!(proxy.get("/").status, 502);
}

#[test]
fn calls_of_hooks_say_that_they_can_t_go_there() {
    let upstream = http2::Upstream::start(|_| Some(answer(200, "two")));
    let proxy = serving(r#"route("/{*rest}").on_request(|req| { return respond(200, fetch("web", #{ path: "/" }).error); }).to("web");"#)
        .settings(&format!(
            "[pools.web]\nprotocol = \"http2\"\ntargets = [\"{}\"]",
            upstream.address()
        ))
        .start();
    let said = proxy.text("/");
    assert!(said.contains("called in HTTP/2"), "{said}");
    assert_eq!(upstream.connections(), 0);
}

/// With HTTP/2 a request without a body ends with its header; its answer is waited for no longer than that of others.
#[test]
fn a_silent_target_has_its_time_for_the_first_byte() {
    let upstream = http2::Upstream::start(|_| None);
    let proxy = to(&upstream)
        .settings("[pools.web.timeouts]\nfirst_byte = \"300ms\"\n[pools.web.retries]\nattempts = 0")
        .start();
    let empty = get("/x").header("Content-Length", "0");
    for request in [get("/x"), empty, post("/x", "body")] {
        let late = proxy.send(&request);
        assert_eq!(
            (late.status, late.text().as_str()),
            (504, "504 the upstream did not begin to answer in time\n")
        );
    }
    assert_eq!(upstream.seen().len(), 3);
}

/// Pingora ends such a request with its header: no length may announce what doesn't follow.
#[test]
fn a_body_out_of_nothing_is_refused() {
    let upstream = http2::Upstream::start(|seen| Some(answer(200, &seen.message.text())));
    let target = upstream.address();
    let routes = r#"route("/").on_request_body(|req| { req.set_body("made"); }).to("web");"#;
    let proxy = serving(routes)
        .settings(&format!(
            "[pools.web]\nprotocol = \"http2\"\ntargets = [\"{target}\"]\n"
        ))
        .start();
    assert_eq!(proxy.get("/").status, 500);
    proxy.log.wait("can't be sent in HTTP/2", SOON);
    assert!(upstream.seen().is_empty());
    assert_eq!(proxy.send(&post("/", "given")).text(), "made");
}
