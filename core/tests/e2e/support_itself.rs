//! The tests' own tools: a tool that sees nothing would let everything pass.

use std::io::Write;
use std::time::Duration;

use crate::support::client::{Connection, exchange, get, post, request};
use crate::support::load::{Until, load};
use crate::support::log::Log;
use crate::support::metrics;
use crate::support::nginx::Nginx;
use crate::support::upstream::{Action, Upstream, answer, ok, response};
use crate::support::wait::{Gate, SOON};

#[test]
fn metrics_are_summed_over_the_samples_that_carry_the_labels() {
    let text = "# TYPE a counter\n\
                a{route=\"/x/{*rest}\",status=\"200\"} 2\n\
                a{route=\"/x/{*rest}\",status=\"404\"} 3\n\
                a{route=\"q\\\"uote\",status=\"200\"} 5\n\
                b 7.5\n";
    let value = |name, labels: &[(&str, &str)]| metrics::value(text, name, labels);
    assert_eq!(value("a", &[("route", "/x/{*rest}")]), 5.0);
    assert_eq!(value("a", &[("status", "200")]), 7.0);
    assert_eq!(value("a", &[("route", "q\"uote")]), 5.0);
    assert_eq!(value("a", &[]), 10.0);
    assert_eq!(value("b", &[]), 7.5);
    assert_eq!(value("c", &[]), 0.0);
    assert!(metrics::present(text, "b") && !metrics::present(text, "c"));
}

#[test]
fn client_and_upstream_speak_with_each_other() {
    let upstream = Upstream::start(|seen| {
        match seen.target().as_str() {
        "/chunked" => Action::Bytes(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
                .to_vec(),
        ),
        "/interim" => Action::Bytes([b"HTTP/1.1 103 Early\r\n\r\n", &response(200, &[], "x")[..]].concat()),
        "/cut" => Action::BytesThenClose(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc".to_vec()),
        "/gone" => Action::Hangup,
        "/echo" => ok(&seen.body),
        _ => answer(404, &[("X-A", "1")], "none"),
    }
    });
    let mut connection = Connection::open(upstream.address()).unwrap();
    assert_eq!(connection.send(&get("/chunked")).unwrap().text(), "abcde");
    assert_eq!(connection.send(&get("/interim")).unwrap().text(), "x");
    assert_eq!(
        connection.send(&post("/echo", "body")).unwrap().text(),
        "body"
    );
    let chunked = request("POST", "/echo").header("Transfer-Encoding", "chunked");
    connection.write(&chunked.bytes()).unwrap();
    connection.write(b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n").unwrap();
    assert_eq!(connection.read_response("POST").unwrap().text(), "abc");
    let none = connection.send(&get("/x")).unwrap();
    assert_eq!((none.status, none.header("x-a")), (404, Some("1")));
    assert_eq!(upstream.connections(), 1);
    assert!(get("/cut").try_send(upstream.address()).is_err());
    assert!(exchange(upstream.address(), &get("/gone").bytes()).is_none());
    assert_eq!(upstream.connections(), 3);
    let seen = &upstream.requests()[4];
    assert_eq!(seen.head, get("/x").bytes());
    assert_eq!((seen.connection, seen.nth), (0, 4));
    assert_eq!(upstream.last_request().method(), "GET");
}

#[test]
fn a_load_counts_what_comes_back() {
    let nginx = Nginx::start(
        [127, 0, 0, 1].into(),
        "location / { return 200 \"ok\"; } location /missing { return 404 \"no\"; }",
    );
    let fine = load(nginx.address(), "/x", 8, Until::Requests(500));
    fine.assert_all_ok();
    assert_eq!(fine.answered(), 500);
    let missing = load(nginx.address(), "/missing", 8, Until::Requests(100));
    assert_eq!(missing.statuses.get(&404), Some(&100));
    let closes = Upstream::start(|_| Action::Hangup);
    let failed = load(closes.address(), "/x", 2, Until::Requests(10));
    assert_eq!((failed.failed, failed.answered()), (10, 0));
    let timed = load(
        nginx.address(),
        "/x",
        2,
        Until::Elapsed(Duration::from_millis(100)),
    );
    timed.assert_all_ok();
}

#[test]
fn a_log_gives_lines_as_they_come() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let (log, thread) = Log::follow(reader);
    writer.write_all(b"one\ntwo words\n").unwrap();
    assert_eq!(log.wait("words", SOON), "two words");
    writer.write_all(b"three words\n").unwrap();
    assert_eq!(log.wait_nth("words", 2, SOON), "three words");
    drop(writer);
    thread.join().unwrap();
    assert_eq!(log.count("words"), 2);
    assert_eq!(log.text(), "one\ntwo words\nthree words");
}

#[test]
fn a_gate_holds_until_it_is_opened() {
    let gate = Gate::new();
    assert!(!gate.pass(Duration::from_millis(10)));
    gate.clone().open();
    assert!(gate.pass(SOON));
}
