//! Calls of gRPC: HTTP/2 on both sides, trailers, deadlines, and failures that clients understand.

use std::time::Duration;

use crate::support::http2::{Answer, Client, Upstream, answer, request};
use crate::support::launch::{Builder, serving};
use crate::support::wait::{SOON, until};

/// A message of gRPC: not compressed, of two bytes.
const MESSAGE: &[u8] = b"\0\0\0\0\x02\x08\x01";

fn call(path: &str) -> http::request::Builder {
    request("POST", path)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
}

fn served(upstream: &Upstream) -> Builder {
    let target = upstream.address();
    serving(r#"route("/{*rest}").to("web"); route("/closed/{*rest}").to("gone"); pool("gone", ["127.0.0.1:1"]);"#)
        .settings(&format!("[pools.web]\nprotocol = \"http2\"\ntargets = [\"{target}\"]"))
        .listener("http2 = true")
}

fn good() -> Answer {
    answer(200, std::str::from_utf8(MESSAGE).unwrap())
        .header("content-type", "application/grpc")
        .trailer("grpc-status", "0")
}

/// Status and message of a response without a body.
fn said(answer: &Answer) -> (Option<&str>, Option<&str>) {
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.message.header("content-type"),
        Some("application/grpc")
    );
    assert!(answer.message.body.is_empty());
    let header = |name| answer.message.header(name);
    (header("grpc-status"), header("grpc-message"))
}

#[test]
fn a_call_comes_back_with_its_trailers() {
    let upstream = Upstream::start(|_| Some(good()));
    let proxy = served(&upstream).start();
    let client = Client::connect(proxy.address());
    let answer = client
        .send(call("/a.B/C").body(()).unwrap(), MESSAGE)
        .unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.message.body, MESSAGE);
    assert_eq!(answer.message.trailer("grpc-status"), Some("0"));
    let seen = &upstream.seen()[0];
    assert_eq!(seen.message.header("te"), Some("trailers"));
    assert_eq!(seen.message.body, MESSAGE);
    assert_eq!(seen.uri, "http://edge.test/a.B/C");
}

#[test]
fn a_failure_of_the_service_passes_as_it_is() {
    let upstream = Upstream::start(|_| {
        Some(
            answer(200, "")
                .header("grpc-status", "5")
                .header("content-type", "application/grpc"),
        )
    });
    let proxy = served(&upstream).start();
    let client = Client::connect(proxy.address());
    let answer = client
        .send(call("/a.B/C").body(()).unwrap(), MESSAGE)
        .unwrap();
    assert_eq!(said(&answer).0, Some("5"));
}

#[test]
fn failures_of_the_proxy_are_statuses_of_grpc() {
    let upstream = Upstream::start(|_| Some(good()));
    let proxy = served(&upstream).start();
    let client = Client::connect(proxy.address());
    let unreachable = client
        .send(call("/closed/x").body(()).unwrap(), MESSAGE)
        .unwrap();
    assert_eq!(
        said(&unreachable),
        (Some("14"), Some("the upstream can't be reached"))
    );
    let long = format!("/{}", "a".repeat(9 * 1024));
    let long = client.send(call(&long).body(()).unwrap(), b"").unwrap();
    assert_eq!(said(&long).0, Some("2"));
    // Others get what they understand.
    let other = request("POST", "/closed/x").body(()).unwrap();
    assert_eq!(client.send(other, b"").unwrap().status, 502);
}

#[test]
fn the_time_of_a_call_ends_it_at_the_upstream_too() {
    let upstream = Upstream::start(|seen| {
        if seen.uri.ends_with("/Never") {
            return None;
        }
        Some(good())
    });
    let proxy = served(&upstream).settings("[server]\nthreads = 1").start();
    let client = Client::connect(proxy.address());
    let never = call("/a.B/Never").header("grpc-timeout", "200m");
    let late = client.send(never.body(()).unwrap(), MESSAGE).unwrap();
    assert_eq!(said(&late).0, Some("4"), "DEADLINE_EXCEEDED");
    until("the upstream to be told", SOON, || upstream.resets() == 1);
    assert_eq!(
        upstream.seen()[0].message.header("grpc-timeout"),
        Some("200m")
    );
    // A call in time is not touched.
    let in_time = call("/a.B/C").header("grpc-timeout", "20S");
    let answer = client.send(in_time.body(()).unwrap(), MESSAGE).unwrap();
    assert_eq!(answer.message.trailer("grpc-status"), Some("0"));
}

#[test]
fn one_call_s_time_does_not_end_another() {
    let upstream = Upstream::start(|seen| {
        if seen.uri.ends_with("/Never") {
            return None;
        }
        std::thread::sleep(Duration::from_millis(800));
        Some(good())
    });
    let proxy = served(&upstream).settings("[server]\nthreads = 1").start();
    let client = Client::connect(proxy.address());
    let never = call("/a.B/Never")
        .header("grpc-timeout", "200m")
        .body(())
        .unwrap();
    let slow = call("/a.B/Slow").body(()).unwrap();
    let answers = client.send_all(vec![slow, never]);
    let status = |index: usize| {
        let message = &answers[index].as_ref().unwrap().message;
        message
            .trailer("grpc-status")
            .or(message.header("grpc-status"))
            .map(str::to_owned)
    };
    assert_eq!(
        (status(0).as_deref(), status(1).as_deref()),
        (Some("0"), Some("4"))
    );
}
