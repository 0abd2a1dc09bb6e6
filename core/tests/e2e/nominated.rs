//! Fields that a client's Connection nominates: gone before any hook runs, so that what a hook or
//! a filter sets can't be named away (RFC 9110 section 7.6.1).

use crate::support::client::{Connection, Request, exchange, get, post};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::Upstream;

/// Writes down what the hook saw, and sets what upstreams rely on.
const ROUTES: &str = r#"
fn identify(req) {
    req.set_header("x-hook-saw", req.header("x-client") ?? "nothing");
    req.set_header("x-client", "alice");
}
route("/{*rest}").on_request(identify).set_header("x-native", "set").to("web");
"#;

fn proxy(web: &Upstream) -> Proxy {
    serving(ROUTES).pool("web", web.address()).start()
}

/// The ways in which a client can name `x-client` and `x-native`.
fn nominations() -> Vec<(&'static str, Request)> {
    let lines = |lines: &[&str]| {
        lines.iter().fold(get("/x"), |request, line| {
            request.header("Connection", line)
        })
    };
    vec![
        ("alone", lines(&["x-client"])),
        ("with another case", lines(&["X-Client, X-NATIVE"])),
        ("after close", lines(&["close, x-client, x-native"])),
        ("before close", lines(&["x-client,x-native , close"])),
        ("among empty elements", lines(&[", ,x-client,, x-native,"])),
        (
            "in a second line",
            lines(&["keep-alive", "x-client, x-native"]),
        ),
        ("in the first line", lines(&["x-client, x-native", "close"])),
        ("with an upgrade", lines(&["upgrade, x-client, x-native"])),
    ]
}

#[test]
fn what_a_hook_or_filter_sets_cannot_be_named_away() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web);
    for (how, request) in nominations() {
        assert_eq!(proxy.send(&request).status, 200, "{how}");
        let seen = web.last_request();
        assert_eq!(seen.headers("x-client"), ["alice"], "{how}");
        assert_eq!(seen.headers("x-native"), ["set"], "{how}");
        let connection = seen.headers("connection").join(",").to_lowercase();
        assert!(!connection.contains("x-"), "{how}: {connection}");
    }
}

#[test]
fn a_nominated_field_of_the_client_is_gone_before_the_hook() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web);
    for (how, request) in nominations() {
        let request = request
            .header("X-Client", "mallory")
            .header("x-client", "twice");
        assert_eq!(proxy.send(&request).status, 200, "{how}");
        let seen = web.last_request();
        assert_eq!(seen.headers("x-hook-saw"), ["nothing"], "{how}");
        assert_eq!(seen.headers("x-client"), ["alice"], "{how}");
    }
    // Without a nomination the hook sees it: the check above looks at the right thing.
    proxy.send(&get("/x").header("X-Client", "mallory"));
    assert_eq!(web.last_request().headers("x-hook-saw"), ["mallory"]);
}

#[test]
fn what_the_proxy_tells_upstreams_cannot_be_named_away() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web);
    let request = get("/x")
        .header("Connection", "x-forwarded-for, x-forwarded-proto")
        .header("X-Forwarded-For", "192.0.2.1");
    assert_eq!(proxy.send(&request).status, 200);
    let seen = web.only_request();
    assert_eq!(seen.headers("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(seen.headers("x-forwarded-proto"), ["http"]);
}

#[test]
fn close_stays_close() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web);
    let mut connection = Connection::open(proxy.address()).unwrap();
    let request = get("/x").header("Connection", "close, x-client");
    let response = connection.send(&request).unwrap();
    assert!(response.closes(), "{response:?}");
    assert!(connection.closed_within(crate::support::wait::SOON));
    // And a nomination alone closes nothing.
    let mut connection = Connection::open(proxy.address()).unwrap();
    let request = get("/x").header("Connection", "x-client");
    for _ in 0..2 {
        assert!(!connection.send(&request).unwrap().closes());
    }
}

#[test]
fn the_host_cannot_be_nominated() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web);
    for value in ["host", "Host", "close, host", "x-client,HOST"] {
        let request = get("/x").header("Connection", value);
        assert_eq!(proxy.send(&request).status, 400, "{value}");
    }
    let request = get("/x")
        .header("Connection", "close")
        .header("Connection", "host");
    assert_eq!(proxy.send(&request).status, 400);
    assert_eq!(web.hits(), 0);
}

/// A body whose framing were named away would be read as the next request.
#[test]
fn a_body_stays_a_body_when_its_framing_is_nominated() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web);
    let hidden = "GET /hidden HTTP/1.1\r\nHost: edge.test\r\n\r\n";
    let plain = post("/x", hidden).header("Connection", "content-length");
    let chunked = format!(
        "POST /x HTTP/1.1\r\nHost: edge.test\r\nConnection: transfer-encoding\r\n\
         Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{hidden}\r\n0\r\n\r\n",
        hidden.len()
    );
    for bytes in [plain.bytes(), chunked.into_bytes()] {
        let status = exchange(proxy.address(), &bytes).map(|response| response.status);
        assert!(matches!(status, Some(200 | 400)), "{status:?}");
        // What is sent after it comes after whatever the first bytes were taken for.
        proxy.send(&get("/after"));
        web.wait_hits(1, crate::support::wait::SOON);
        let seen = web.take_requests();
        for request in &seen {
            assert_ne!(request.target(), "/hidden", "{seen:?}");
        }
        if status == Some(200) {
            assert_eq!(seen[0].body, hidden.as_bytes());
        }
    }
}
