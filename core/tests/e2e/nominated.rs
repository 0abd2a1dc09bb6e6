//! Fields that a client's Connection nominates: gone before any hook runs, so that what a hook or
//! a filter sets can't be named away (RFC 9110 section 7.6.1).

use crate::support::client::{Connection, Request, get};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::Upstream;
use crate::support::wait::SOON;

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
    assert!(connection.closed_within(SOON));
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

/// A body whose framing is named away must not be read as the next request.
#[test]
fn a_body_whose_framing_is_nominated_is_no_request() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web);
    let hidden = "GET /hidden HTTP/1.1\r\nHost: edge.test\r\n\r\n";
    let length = hidden.len();
    let chunk = format!("{length:x}\r\n{hidden}\r\n0\r\n\r\n");
    for (fields, body) in [
        (
            format!("Connection: content-length\r\nContent-Length: {length}"),
            hidden,
        ),
        (
            format!("Connection: keep-alive, Content-Length\r\nContent-Length: {length}"),
            hidden,
        ),
        (
            "Connection: transfer-encoding\r\nTransfer-Encoding: chunked".to_owned(),
            chunk.as_str(),
        ),
    ] {
        let head = format!("POST /x HTTP/1.1\r\nHost: edge.test\r\n{fields}\r\n\r\n");
        let mut connection = Connection::open(proxy.address()).unwrap();
        connection.write(head.as_bytes()).unwrap();
        // Whoever takes the request for one without a body answers now, and then reads the next.
        connection.read_timeout(std::time::Duration::from_millis(500));
        let early = connection.read_response("POST");
        let _ = connection.write(body.as_bytes());
        connection.read_timeout(SOON);
        let status = match early {
            Ok(response) => response.status,
            Err(_) => connection.read_response("POST").unwrap().status,
        };
        assert!(matches!(status, 200 | 400), "{fields}: {status}");
        let _ = connection.write(&get("/last").header("Connection", "close").bytes());
        assert!(connection.closed_within(SOON), "{fields}");
        let seen = web.take_requests();
        let targets: Vec<String> = seen.iter().map(|request| request.target()).collect();
        assert!(
            !targets.iter().any(|target| target == "/hidden"),
            "{fields}: the upstream got {targets:?}"
        );
        if status == 200 {
            assert_eq!(
                String::from_utf8_lossy(&seen[0].body),
                hidden,
                "{fields}: the body is lost"
            );
        }
    }
}
