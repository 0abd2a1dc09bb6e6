//! Connections that become something else: WebSockets through the proxy.

use std::io::Read as _;
use std::time::Duration;

use crate::support::client::{Connection, request};
use crate::support::launch::{Builder, serving};
use crate::support::upstream::{Action, Upstream, ok};
use crate::support::websocket::{HELLO, echo, echoes, open, upgrade};

fn to(upstream: &Upstream) -> Builder {
    serving(r#"route("/{*rest}").to("web");"#).pool("web", upstream.address())
}

/// An origin that answers at once, with the first frame right behind: what tears others down (pingora #946).
#[test]
fn a_fast_origin_is_no_problem() {
    let upstream = echo();
    let proxy = to(&upstream).settings("[server]\nthreads = 1").start();
    for _ in 0..200 {
        let mut socket = open(proxy.address());
        echoes(&mut socket, b"\x81\x82abcdpi");
    }
    assert_eq!(upstream.hits(), 200);
}

/// The client's first frame comes with its request, before the origin has switched.
#[test]
fn a_hasty_client_is_no_problem() {
    let upstream = echo();
    let proxy = to(&upstream).start();
    for _ in 0..50 {
        let mut socket = Connection::open(proxy.address()).unwrap();
        let first = b"\x81\x82abcdhi";
        socket
            .write(&[&upgrade("websocket").bytes()[..], first].concat())
            .unwrap();
        let response = socket.read_response("GET").unwrap();
        assert_eq!(response.status, 101);
        let expected = [HELLO, first].concat();
        assert_eq!(socket.read_until(first), expected);
    }
}

#[test]
fn silence_does_not_end_it_but_the_tunnel_s_own_limit() {
    let upstream = echo();
    let proxy = to(&upstream)
        .settings(
            "[pools.web.timeouts]\nread = \"200ms\"\n[limits]\nrequest_read_timeout = \"200ms\"",
        )
        .start();
    let mut socket = open(proxy.address());
    // Longer than what a request and a response have.
    std::thread::sleep(Duration::from_millis(700));
    echoes(&mut socket, b"\x81\x82abcdok");

    let short = to(&upstream)
        .settings("[pools.web.timeouts]\ntunnel = \"200ms\"")
        .start();
    let mut socket = open(short.address());
    assert!(socket.read_to_end().is_empty(), "it is closed by itself");
}

#[test]
fn an_upgrade_is_waited_for_as_long_as_any_response() {
    let upstream = Upstream::start(|_| {
        Action::Write(Box::new(|stream| {
            // Nothing, until the other side has had enough.
            let _ = stream.read(&mut [0; 16]);
            Ok(())
        }))
    });
    let proxy = to(&upstream)
        .settings("[pools.web.timeouts]\nread = \"200ms\"")
        .start();
    assert_eq!(proxy.send(&upgrade("websocket")).status, 504);
}

#[test]
fn it_outlives_a_reload() {
    let upstream = echo();
    let proxy = to(&upstream).start();
    let mut socket = open(proxy.address());
    let routes = "route(\"/{*rest}\").respond(200, \"new\\n\");";
    std::fs::write(proxy.file("routes.rhai"), routes).unwrap();
    assert_eq!(proxy.reload().0, 200);
    echoes(&mut socket, b"\x81\x82abcdgo");
}

#[test]
fn other_upgrades_are_plain_requests() {
    let upstream = Upstream::fixed("plain");
    let proxy = to(&upstream).start();
    for protocol in ["h2c", "tls/1.0", "something"] {
        let response = proxy.send(&upgrade(protocol));
        assert_eq!(
            (response.status, response.text().as_str()),
            (200, "plain"),
            "{protocol}"
        );
        assert_eq!(
            upstream.last_request().header("upgrade"),
            None,
            "{protocol}"
        );
    }
}

#[test]
fn an_origin_that_refuses_is_heard_and_its_connection_is_no_tunnel() {
    let upstream = Upstream::start(|seen| {
        if seen.header("upgrade").is_some() {
            crate::support::upstream::answer(403, &[], "no")
        } else {
            ok("next")
        }
    });
    let proxy = to(&upstream).start();
    let mut client = Connection::open(proxy.address()).unwrap();
    let refused = client.send(&upgrade("websocket")).unwrap();
    assert_eq!((refused.status, refused.text().as_str()), (403, "no"));
}

#[test]
fn a_tunnel_needs_a_101_that_was_asked_for() {
    let upstream = echo();
    let proxy = to(&upstream).start();
    assert_eq!(proxy.get("/").status, 502);
    let connect = proxy.send(&request("CONNECT", "a:80").host("a:80")).status;
    assert!(matches!(connect, 400 | 405), "{connect}");
}
