//! The PROXY protocol: from proxies in front, and to targets behind.

use std::io::Read as _;
use std::net::TcpListener;

use crate::support::client::{Connection, get};
use crate::support::http2::{Client, request};
use crate::support::launch::{Builder, serving};
use crate::support::upstream::Upstream;
use crate::support::wait::SOON;

const WHO: &str =
    r#"route("/{*rest}").respond(|req| respond(200, `${req.client_ip} ${req.peer_ip}`));"#;

fn listening(routes: &str, trusted: &str) -> Builder {
    serving(routes)
        .settings(&format!("[trusted_proxies]\ncidrs = [\"{trusted}\"]"))
        .listener("proxy_protocol = true\nhttp2 = true")
}

const V1: &[u8] = b"PROXY TCP4 192.0.2.7 10.0.0.1 40000 80\r\n";
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\x0a\0\0\x01\x9c\x40\0\x50";

fn said(proxy: &crate::support::proxy::Proxy, header: &[u8]) -> String {
    let mut connection = Connection::open(proxy.address()).unwrap();
    connection.write(header).unwrap();
    let first = connection.send(&get("/")).unwrap().text();
    // The header speaks for all requests of the connection.
    assert_eq!(connection.send(&get("/again")).unwrap().text(), first);
    first
}

#[test]
fn the_header_says_who_the_client_is() {
    let proxy = listening(WHO, "127.0.0.0/8").start();
    for header in [V1, V2] {
        assert_eq!(said(&proxy, header), "192.0.2.7 192.0.2.7");
    }
    // The proxy in front speaks for itself: its own health checks.
    for header in [&b"PROXY UNKNOWN\r\n"[..], b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"] {
        assert_eq!(said(&proxy, header), "127.0.0.1 127.0.0.1");
    }
}

#[test]
fn upstreams_are_told_the_same_client() {
    let upstream = Upstream::fixed("web");
    let proxy = listening(r#"route("/{*rest}").to("web");"#, "127.0.0.0/8")
        .pool("web", upstream.address())
        .start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    connection.write(V2).unwrap();
    connection
        .send(&get("/").header("X-Forwarded-For", "10.9.9.9"))
        .unwrap();
    // The client is none of the trusted proxies, whoever has connected.
    assert_eq!(
        upstream.only_request().headers("x-forwarded-for"),
        ["192.0.2.7"]
    );
}

#[test]
fn http_2_may_follow() {
    let proxy = listening(WHO, "127.0.0.0/8").start();
    let client = Client::begin(proxy.address(), V2);
    let answer = client
        .send(request("GET", "/").body(()).unwrap(), b"")
        .unwrap();
    assert_eq!(answer.message.text(), "192.0.2.7 192.0.2.7");
}

#[test]
fn a_header_in_pieces_is_one() {
    let proxy = listening(WHO, "127.0.0.0/8").start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    for byte in V2 {
        connection.write(&[*byte]).unwrap();
    }
    assert_eq!(
        connection.send(&get("/")).unwrap().text(),
        "192.0.2.7 192.0.2.7"
    );
}

#[test]
fn what_has_no_header_is_closed_and_counted() {
    let proxy = listening(WHO, "127.0.0.0/8")
        .settings("[limits]\nrequest_read_timeout = \"300ms\"")
        .start();
    for (reason, bytes) in [
        ("no_proxy_header", &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..]),
        ("no_proxy_header", b"PROXY TCP4 192.0.2.7 10.0.0.1 x 80\r\n"),
        ("late", b"PROXY TCP4 192"),
        ("late", b""),
    ] {
        let before = proxy.metric("refused_connections_total", &[("reason", reason)]);
        let mut connection = Connection::open(proxy.address()).unwrap();
        connection.write(bytes).unwrap();
        assert!(connection.closed_within(SOON), "{reason}");
        let after = proxy.metric("refused_connections_total", &[("reason", reason)]);
        assert_eq!(after, before + 1.0, "{reason}");
    }
}

#[test]
fn nobody_else_may_say_so() {
    let proxy = listening(WHO, "10.0.0.0/8").start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    let _ = connection.write(&[V1, &get("/").bytes()].concat());
    assert!(connection.closed_within(SOON));
    let refused = proxy.metric("refused_connections_total", &[("reason", "untrusted")]);
    assert!(refused >= 1.0, "{refused}");
}

/// An upstream that gives back the first line of each connection.
fn listener() -> (TcpListener, std::net::SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

#[test]
fn targets_are_told_the_client_at_the_beginning_of_each_connection() {
    for (version, expected) in [
        ("v1", "PROXY TCP4 127.0.0.1 127.0.0.1 "),
        ("v2", "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"),
    ] {
        let (upstream, address) = listener();
        let proxy = serving(r#"route("/{*rest}").to("web");"#)
            .settings(&format!(
                "[server]\nthreads = 1\n[pools.web]\ntargets = [\"{address}\"]\nproxy_protocol = \"{version}\""
            ))
            .start();
        let mut one = Connection::open(proxy.address()).unwrap();
        let mut two = Connection::open(proxy.address()).unwrap();
        let served = std::thread::spawn(move || {
            let mut begun = Vec::new();
            // Two connections: the second client does not get the first one's.
            for requests in [2, 1] {
                let (mut stream, _) = upstream.accept().unwrap();
                let mut all = Vec::new();
                for _ in 0..requests {
                    let from = all.len();
                    while !all[from..].ends_with(b"\r\n\r\n") || all.len() < 40 {
                        let mut piece = [0; 1024];
                        let read = stream.read(&mut piece).unwrap();
                        assert!(read > 0);
                        all.extend_from_slice(&piece[..read]);
                    }
                    std::io::Write::write_all(
                        &mut stream,
                        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
                    )
                    .unwrap();
                }
                begun.push((String::from_utf8_lossy(&all).into_owned(), stream));
            }
            begun
        });
        // The first client's connection is used again for it.
        assert_eq!(one.send(&get("/1")).unwrap().text(), "ok");
        assert_eq!(one.send(&get("/2")).unwrap().text(), "ok");
        assert_eq!(two.send(&get("/3")).unwrap().text(), "ok");
        for (begun, _) in served.join().unwrap() {
            assert!(begun.starts_with(expected), "{version}: {begun:?}");
            assert_eq!(
                begun.matches("PROXY").count() + begun.matches("QUIT").count(),
                1,
                "{begun:?}"
            );
        }
    }
}

#[test]
fn calls_of_hooks_speak_for_the_proxy() {
    let (upstream, address) = listener();
    let proxy =
        serving(r#"route("/{*rest}").on_request(|req| { return respond(200, fetch("web", #{ path: "/" }).body().text()); }).to("web");"#)
            .settings(&format!(
                "[pools.web]\ntargets = [\"{address}\"]\nproxy_protocol = \"v1\""
            ))
            .start();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = upstream.accept().unwrap();
        let mut all = Vec::new();
        while !all.ends_with(b"\r\n\r\n") {
            let mut piece = [0; 1024];
            let read = stream.read(&mut piece).unwrap();
            assert!(read > 0);
            all.extend_from_slice(&piece[..read]);
        }
        std::io::Write::write_all(
            &mut stream,
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        )
        .unwrap();
        String::from_utf8_lossy(&all).into_owned()
    });
    assert_eq!(proxy.text("/"), "ok");
    assert!(
        served
            .join()
            .unwrap()
            .starts_with("PROXY UNKNOWN\r\nGET / HTTP/1.1\r\n")
    );
}
