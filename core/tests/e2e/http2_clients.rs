//! Clients that speak HTTP/2 without TLS, on listeners that know it; and what they must not get past.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use crate::support::client::{Connection, exchange, get};
use crate::support::http2::{Client, request};
use crate::support::launch::{Builder, serving};
use crate::support::upstream::{Upstream, answer, ok};
use crate::support::wait::{SOON, until};

const ROUTES: &str = r#"route("/{*rest}").to("web");"#;

fn listening(routes: &str, upstream: &Upstream) -> Builder {
    serving(routes)
        .pool("web", upstream.address())
        .listener("http2 = true")
}

fn asked(path: &str) -> http::Request<()> {
    request("GET", path).body(()).unwrap()
}

#[test]
fn both_protocols_are_spoken() {
    let upstream = Upstream::start(|seen| ok(seen.target()));
    let proxy = listening(ROUTES, &upstream).start();
    let client = Client::connect(proxy.address());
    for path in ["/a", "/b?c"] {
        let answer = client.send(asked(path), b"").unwrap();
        assert_eq!((answer.status, answer.message.text().as_str()), (200, path));
    }
    assert_eq!(proxy.text("/one"), "/one");
    let seen = &upstream.requests()[0];
    assert_eq!(seen.header("host").as_deref(), Some("edge.test"));
    assert_eq!(seen.header("x-forwarded-for").as_deref(), Some("127.0.0.1"));
    assert_eq!(seen.header("x-forwarded-proto").as_deref(), Some("http"));
}

/// What hangs with Pingora's own way of telling the two apart.
#[test]
fn short_requests_of_http_1_are_answered() {
    let upstream = Upstream::fixed("web");
    let proxy = listening(ROUTES, &upstream).start();
    for bytes in [
        &b"GET / HTTP/1.0\r\n\r\n"[..],
        b"OPTIONS / HTTP/1.0\r\n\r\n",
        b"P / HTTP/1.0\r\n\r\n",
    ] {
        let response = exchange(proxy.address(), bytes).unwrap();
        assert_eq!(response.status, 200, "{:?}", String::from_utf8_lossy(bytes));
    }
    let mut kept = Connection::open(proxy.address()).unwrap();
    for _ in 0..3 {
        assert_eq!(kept.send(&get("/")).unwrap().status, 200);
    }
}

#[test]
fn silence_and_half_a_preface_are_closed() {
    let upstream = Upstream::fixed("web");
    let proxy = listening(ROUTES, &upstream)
        .settings("[limits]\nrequest_read_timeout = \"200ms\"")
        .start();
    for bytes in [&b""[..], b"PRI * HTTP/2.0\r\n"] {
        let mut connection = Connection::open(proxy.address()).unwrap();
        connection.write(bytes).unwrap();
        assert!(connection.closed_within(SOON), "{bytes:?}");
    }
    until("the count", SOON, || {
        proxy.metric("refused_connections_total", &[("reason", "late")]) == 2.0
    });
}

#[test]
fn without_the_key_it_is_no_protocol() {
    let upstream = Upstream::fixed("web");
    let proxy = serving(ROUTES).pool("web", upstream.address()).start();
    let response = exchange(proxy.address(), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert!(response.is_none_or(|response| response.status >= 400));
}

#[test]
fn an_idle_connection_is_closed() {
    let upstream = Upstream::fixed("web");
    let proxy = listening(ROUTES, &upstream)
        .settings("[limits]\nkeepalive_timeout = \"1s\"")
        .start();
    let mut connection = TcpStream::connect(proxy.address()).unwrap();
    connection.set_read_timeout(Some(SOON)).unwrap();
    // The preface and empty settings, and then nothing.
    connection
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .unwrap();
    let mut all = Vec::new();
    std::io::Read::read_to_end(&mut connection, &mut all).expect("closed before the time is up");
}

#[test]
fn requests_of_one_connection_are_served_at_the_same_time() {
    let together = Arc::new(Barrier::new(3));
    let upstream = Upstream::start(move |_| {
        together.wait();
        ok("together")
    });
    let proxy = listening(ROUTES, &upstream).start();
    let client = Client::connect(proxy.address());
    for answer in client.send_all(vec![asked("/1"), asked("/2"), asked("/3")]) {
        assert_eq!(answer.unwrap().message.text(), "together");
    }
}

#[test]
fn what_is_refused_in_http_1_is_refused_here() {
    let upstream = Upstream::fixed("web");
    let proxy = listening(ROUTES, &upstream).start();
    let client = Client::connect(proxy.address());
    let long = format!("/{}", "a".repeat(9 * 1024));
    let mut many = request("GET", "/");
    for number in 0..101 {
        many = many.header(format!("x-{number}"), "y");
    }
    for (what, request, expected) in [
        ("a long target", asked(&long), 414),
        ("many fields", many.body(()).unwrap(), 431),
        ("TRACE", request("TRACE", "/").body(()).unwrap(), 405),
        (
            "a method in lower case",
            request("get", "/").body(()).unwrap(),
            400,
        ),
        (
            "an expectation",
            request("GET", "/").header("expect", "x").body(()).unwrap(),
            417,
        ),
        ("a path over its root", asked("/a/%2e%2e/%2f"), 400),
        (
            "two lengths",
            request("GET", "/")
                .header("content-length", "x")
                .body(())
                .unwrap(),
            0,
        ),
    ] {
        let answered = client.send(request, b"").map_or(0, |answer| answer.status);
        assert_eq!(answered, expected, "{what}");
    }
    let odd = http::Request::builder()
        .uri("http://a_b..c/")
        .body(())
        .unwrap();
    assert_eq!(client.send(odd, b"").unwrap().status, 400);
    let other = request("GET", "/")
        .header("host", "other.test")
        .body(())
        .unwrap();
    assert_eq!(
        client.send(other, b"").unwrap().status,
        400,
        "Host and :authority differ"
    );
    assert_eq!(upstream.hits(), 0);
    // None of this ended the connection.
    assert_eq!(client.send(asked("/"), b"").unwrap().status, 200);
}

#[test]
fn a_header_that_is_too_large_is_refused() {
    let upstream = Upstream::fixed("web");
    let proxy = listening(ROUTES, &upstream).start();
    let client = Client::connect(proxy.address());
    for size in [32 * 1024, 200 * 1024] {
        let request = request("GET", "/")
            .header("x", "y".repeat(size))
            .body(())
            .unwrap();
        assert_eq!(
            client
                .send(request, b"")
                .map_or(431, |answer| answer.status),
            431,
            "{size}"
        );
    }
    assert_eq!(upstream.hits(), 0);
}

#[test]
fn claims_of_clients_are_not_believed() {
    let upstream = Upstream::fixed("web");
    let proxy = listening(ROUTES, &upstream).start();
    let client = Client::connect(proxy.address());
    let request = request("GET", "/")
        .header("x-forwarded-for", "10.9.9.9")
        .header("x-real-ip", "10.9.9.9")
        .header("forwarded", "for=10.9.9.9")
        .body(())
        .unwrap();
    client.send(request, b"").unwrap();
    let seen = upstream.only_request();
    assert_eq!(seen.headers("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(seen.header("x-real-ip"), None);
    assert_eq!(seen.header("forwarded"), None);
}

#[test]
fn hosts_and_cookies_have_one_form() {
    let upstream = Upstream::fixed("any");
    let proxy = listening(
        r#"
        let admin = site("admin.test");
        admin.route("/{*rest}").respond(|req| respond(200, `${req.host} ${req.cookie("b")} ${req.protocol}`));
        route("/{*rest}").to("web");
        "#,
        &upstream,
    )
    .start();
    let client = Client::connect(proxy.address());
    let request = http::Request::builder()
        .uri("http://ADMIN.test.:8443/x")
        .header("cookie", "a=1")
        .header("cookie", "b=2")
        .body(())
        .unwrap();
    assert_eq!(
        client.send(request, b"").unwrap().message.text(),
        "admin.test 2 HTTP/2"
    );
}

#[test]
fn bodies_reach_the_upstream_and_hooks() {
    let upstream = Upstream::start(|seen| ok(seen.body.len().to_string()));
    let proxy = listening(
        r#"
        route("/plain").to("web");
        route("/hook").on_request_body(|req| { if req.body().len() < 100 { req.set_body(req.body().text() + "!"); } }).to("web");
        route("/response").on_response_body(|req, res| { res.set_body("<" + res.body().text() + ">"); }).to("web");
        route("/limited").max_body("1KiB").to("web");
        "#,
        &upstream,
    )
    .start();
    let client = Client::connect(proxy.address());
    let post = |path: &str| request("POST", path);
    let body = vec![b'a'; 200_000];
    let sized = |path: &str| {
        post(path)
            .header("content-length", body.len())
            .body(())
            .unwrap()
    };
    let plain = client
        .send(post("/plain").body(()).unwrap(), &body)
        .unwrap();
    assert_eq!(plain.message.text(), "200000");
    assert_eq!(
        client.send(sized("/hook"), &body).unwrap().message.text(),
        "200000"
    );
    let short = client
        .send(post("/hook").body(()).unwrap(), b"short")
        .unwrap();
    assert_eq!(short.message.text(), "6");
    let refused = client
        .send(post("/hook").body(()).unwrap(), &body)
        .map_or(0, |answer| answer.status);
    assert_eq!(
        refused, 411,
        "Pingora keeps 64 KiB of a body whose length isn't told"
    );
    assert_eq!(
        client.send(asked("/response"), b"").unwrap().message.text(),
        "<0>"
    );
    assert_eq!(
        client
            .send(sized("/limited"), &body)
            .map_or(413, |answer| answer.status),
        413
    );
}

#[test]
fn a_late_upstream_is_504_and_an_absent_one_502() {
    let upstream = Upstream::start(|seen| {
        if seen.target() == "/late" {
            std::thread::sleep(Duration::from_secs(2));
        }
        answer(200, &[], "late")
    });
    let proxy = listening(
        r#"
        route("/late").timeout("200ms").to("web");
        route("/absent").to("gone");
        pool("gone", ["127.0.0.1:1"]);
        "#,
        &upstream,
    )
    .start();
    let client = Client::connect(proxy.address());
    assert_eq!(client.send(asked("/late"), b"").unwrap().status, 504);
    assert_eq!(client.send(asked("/absent"), b"").unwrap().status, 502);
    assert_eq!(client.send(asked("/none"), b"").unwrap().status, 404);
}
