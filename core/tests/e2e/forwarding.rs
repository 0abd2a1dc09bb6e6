//! What the proxy takes from and adds to the headers on the way through.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use crate::support::client::{Connection, get, post, request};
use crate::support::launch::serving;
use crate::support::upstream::{Upstream, answer, ok};
use crate::support::wait::{Gate, SOON, until};

const ROUTES: &str = r#"
    route("/{*rest}").on_request(mark).to("web");
    fn mark(req) { req.set_header("x-client-ip", req.client_ip); }
"#;

#[test]
fn hop_by_hop_headers_end_at_the_proxy() {
    let web = Upstream::start(|_| {
        answer(
            200,
            &[
                ("Connection", "x-inner"),
                ("X-Inner", "1"),
                ("Keep-Alive", "timeout=5"),
                ("X-Kept", "1"),
            ],
            "ok",
        )
    });
    let proxy = serving(ROUTES).pool("web", web.address()).start();
    let request = get("/")
        .header("Connection", "keep-alive, X-Nominated")
        .header("X-Nominated", "1")
        .header("Keep-Alive", "timeout=5")
        .header("Proxy-Connection", "keep-alive")
        .header("TE", "trailers")
        .header("X-Kept", "1");
    let response = proxy.send(&request);
    assert_eq!(response.status, 200);
    let seen = web.only_request();
    for gone in ["x-nominated", "keep-alive", "proxy-connection", "te"] {
        assert_eq!(seen.headers(gone), Vec::<String>::new(), "{gone}");
    }
    assert_eq!(seen.headers("x-kept"), ["1"]);
    assert_eq!(seen.headers("host"), ["edge.test"]);
    for gone in ["x-inner", "keep-alive"] {
        assert_eq!(response.header(gone), None, "{gone}");
    }
    assert_eq!(response.header("x-kept"), Some("1"));
}

/// Pingora is asked to look for them only where there is one, of any kind; also one that a hook has set.
#[test]
fn each_field_of_the_connection_ends_at_the_proxy_when_it_is_the_only_one() {
    let web = Upstream::fixed("ok");
    let proxy = serving(
        r#"
        route("/{*rest}").to("web");
        route("/hook").on_request(|req| req.set_header("proxy-authorization", "x")).to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    let fields = [
        ("Connection", "close"),
        ("HTTP2-Settings", "AAMAAABkAAQAAP__"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Authenticate", "Basic"),
        ("Proxy-Authorization", "Basic eDp5"),
        ("Proxy-Connection", "keep-alive"),
        ("TE", "trailers"),
        ("Trailer", "x-sum"),
        ("Upgrade", "h2c"),
    ];
    for (name, value) in fields {
        let response = proxy.send(&get("/").header(name, value));
        assert_eq!(response.status, 200, "{name}");
    }
    assert_eq!(proxy.send(&get("/hook")).status, 200);
    let seen = web.requests();
    assert_eq!(seen.len(), fields.len() + 1);
    for request in seen {
        for (gone, _) in fields {
            assert_eq!(request.headers(gone), Vec::<String>::new(), "{gone}");
        }
    }
}

#[test]
fn a_client_can_not_nominate_what_the_proxy_adds() {
    let web = Upstream::fixed("ok");
    let proxy = serving(
        r#"
        route("/{*rest}").on_request(|req| req.set_header("x-client", "alice")).to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    let response = proxy.send(&get("/").header("Connection", "x-client, x-forwarded-for"));
    // Refused, or the nomination has no effect on what is added behind it.
    if response.status != 400 {
        let seen = web.only_request();
        assert_eq!(seen.headers("x-client"), ["alice"]);
        assert_eq!(seen.headers("x-forwarded-for"), ["127.0.0.1"]);
    }
}

#[test]
fn forwarded_headers_of_an_untrusted_peer_are_replaced() {
    let web = Upstream::fixed("ok");
    let proxy = serving(ROUTES).pool("web", web.address()).start();
    let request = get("/")
        .header("X-Forwarded-For", "203.0.113.9")
        .header("X-Forwarded-For", "10.0.0.1")
        .header("X-Forwarded-Proto", "https");
    assert_eq!(proxy.send(&request).status, 200);
    let seen = web.only_request();
    assert_eq!(seen.headers("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(seen.headers("x-forwarded-proto"), ["http"]);
    assert_eq!(seen.headers("x-client-ip"), ["127.0.0.1"]);
}

#[test]
fn a_trusted_peer_is_believed_up_to_the_last_untrusted_hop() {
    let web = Upstream::fixed("ok");
    let proxy = serving(ROUTES)
        .settings("[trusted_proxies]\ncidrs = [\"127.0.0.0/8\", \"10.0.0.0/8\"]")
        .pool("web", web.address())
        .start();
    for (lines, client, forwarded) in [
        (vec!["203.0.113.9"], "203.0.113.9", "203.0.113.9, 127.0.0.1"),
        (
            vec!["1.1.1.1, 203.0.113.9, 10.0.0.5"],
            "203.0.113.9",
            "1.1.1.1, 203.0.113.9, 10.0.0.5, 127.0.0.1",
        ),
        // Two lines are one list (RFC 9110 section 5.3).
        (
            vec!["1.1.1.1", "203.0.113.9, 10.0.0.5"],
            "203.0.113.9",
            "1.1.1.1, 203.0.113.9, 10.0.0.5, 127.0.0.1",
        ),
    ] {
        let request = lines.iter().fold(get("/"), |request, line| {
            request.header("X-Forwarded-For", line)
        });
        assert_eq!(proxy.send(&request).status, 200);
        let seen = web.last_request();
        assert_eq!(seen.headers("x-client-ip"), [client], "{lines:?}");
        assert_eq!(
            seen.headers("x-forwarded-for").join(", "),
            forwarded,
            "{lines:?}"
        );
    }
}

#[test]
fn bodies_pass_both_ways_in_both_framings() {
    let web = Upstream::start(|seen| {
        let body = String::from_utf8_lossy(&seen.body).to_uppercase();
        if seen.target() == "/chunked" {
            let text = format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
                body.len()
            );
            return crate::support::upstream::Action::Bytes(text.into_bytes());
        }
        answer(200, &[], body)
    });
    let proxy = serving(r#"route("/{*rest}").to("web");"#)
        .pool("web", web.address())
        .start();
    let long = "abcdefgh".repeat(100_000);
    let mut connection = Connection::open(proxy.address()).unwrap();
    for target in ["/plain", "/chunked"] {
        let response = connection.send(&post(target, long.clone())).unwrap();
        assert_eq!(response.status, 200);
        assert_eq!(response.text(), long.to_uppercase());
    }
    let chunks = request("POST", "/plain").header("Transfer-Encoding", "chunked");
    connection.write(&chunks.bytes()).unwrap();
    connection
        .write(b"5\r\nhello\r\n6;x=1\r\n world\r\n0\r\n\r\n")
        .unwrap();
    let response = connection.read_response("POST").unwrap();
    assert_eq!(
        (response.status, response.text().as_str()),
        (200, "HELLO WORLD")
    );
}

/// CGI and WSGI make `_` of each `-`, so these would stand beside what the proxy says, or in its place.
#[test]
fn what_a_client_claims_with_underscores_goes_too() {
    let web = Upstream::fixed("ok");
    let proxy = serving(ROUTES).pool("web", web.address()).start();
    let request = get("/")
        .header("X_Forwarded_For", "2.2.2.2")
        .header("x-forwarded_proto", "https")
        .header("X_Real_IP", "3.3.3.3")
        .header("X_Other", "1");
    assert_eq!(proxy.send(&request).status, 200);
    let seen = web.only_request();
    for gone in ["x_forwarded_for", "x-forwarded_proto", "x_real_ip"] {
        assert_eq!(seen.headers(gone), Vec::<String>::new(), "{gone}");
    }
    assert_eq!(seen.headers("x_other"), ["1"]);
}

/// TCP doesn't tell a client that only has nothing more to say from one that has closed both sides.
#[test]
fn a_client_that_closes_its_side_has_left() {
    let gate = Gate::new();
    let held = gate.clone();
    let web = Upstream::start(move |_| {
        held.pass(2 * SOON);
        ok("late")
    });
    let proxy = serving(r#"route("/own").respond(200, "own"); route("/{*rest}").to("web");"#)
        .pool("web", web.address())
        .start();
    let ask = |target: &str| {
        let mut stream = TcpStream::connect(proxy.address()).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream.write_all(&get(target).bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let own = ask("/own");
    assert!(
        own.starts_with("HTTP/1.1 200 ") && own.ends_with("own"),
        "{own}"
    );
    assert_eq!(ask("/x"), "");
    until("it to be counted", SOON, || {
        proxy.metric("requests_total", &[("status", "499")]) == 1.0
    });
    gate.open();
}
