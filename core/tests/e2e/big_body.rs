//! Case big-body: a body that is larger than a buffer, chunked, or without a length is nil or cut in a
//! hook (lua-nginx-module 2201, kong 8088, apisix 11362).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

use sha2::{Digest, Sha256};

use crate::support::client::{Connection, post};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::{Upstream, ok};

const MIB: usize = 1024 * 1024;

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 31 % 251) as u8).collect()
}

fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn proxy() -> (Upstream, Proxy) {
    let web = Upstream::start(|seen| ok(digest(&seen.body)));
    let proxy = serving(
        r#"
        route("/{*rest}").on_request_body(|req| {
            req.set_header("x-length", req.body().len());
            req.set_header("x-digest", hex(sha256(req.body())));
        }).to("web");
        "#,
    )
    .settings("[script]\nbody = \"16MiB\"\n")
    .pool("web", web.address())
    .start();
    (web, proxy)
}

fn chunked(body: &[u8], size: usize) -> Vec<u8> {
    let mut all = b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for chunk in body.chunks(size) {
        all.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        all.extend_from_slice(chunk);
        all.extend_from_slice(b"\r\n");
    }
    all.extend_from_slice(b"0\r\n\r\n");
    all
}

fn check(web: &Upstream, body: &[u8], answer: &str, what: &str) {
    let seen = web.last_request();
    assert_eq!(answer, digest(body), "{what}");
    assert_eq!(
        seen.header("x-length"),
        Some(body.len().to_string()),
        "{what}"
    );
    assert_eq!(seen.header("x-digest"), Some(digest(body)), "{what}");
    assert_eq!(
        seen.headers("content-length"),
        [body.len().to_string()],
        "{what}"
    );
    assert_eq!(seen.header("transfer-encoding"), None, "{what}");
    web.take_requests();
}

#[test]
fn a_hook_sees_all_bytes_and_so_does_the_upstream() {
    let (web, proxy) = proxy();
    for length in [1, 1024, 64 * 1024, 64 * 1024 + 1, 300_000, MIB, 16 * MIB] {
        let body = bytes(length);
        let mut connection = Connection::open(proxy.address()).unwrap();
        let response = connection.send(&post("/", body.clone())).unwrap();
        check(
            &web,
            &body,
            &response.text(),
            &format!("{length} with a length"),
        );
        // The connection stays.
        let again = connection.send(&post("/", body.clone())).unwrap();
        check(&web, &body, &again.text(), &format!("{length} again"));
        for size in [1000, 70_000, 10 * MIB] {
            if length / size > 2000 {
                continue;
            }
            let mut connection = Connection::open(proxy.address()).unwrap();
            connection.write(&chunked(&body, size)).unwrap();
            let response = connection.read_response("POST").unwrap();
            check(
                &web,
                &body,
                &response.text(),
                &format!("{length} in chunks of {size}"),
            );
        }
    }
}

#[test]
fn a_client_that_waits_to_be_asked_is_asked() {
    let (web, proxy) = proxy();
    let body = bytes(100_000);
    let mut connection = Connection::open(proxy.address()).unwrap();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    connection.write(head.as_bytes()).unwrap();
    assert!(
        connection
            .read_until(b"\r\n\r\n")
            .starts_with(b"HTTP/1.1 100 ")
    );
    assert_eq!(web.hits(), 0);
    connection.write(&body).unwrap();
    let response = connection.read_response("POST").unwrap();
    assert_eq!(web.last_request().header("expect"), None);
    check(&web, &body, &response.text(), "after 100");
}

#[test]
fn past_the_limit_is_413_and_the_upstream_sees_nothing() {
    let web = Upstream::fixed("taken");
    let proxy =
        serving(r#"route("/{*rest}").on_request_body(|req| { req.body().len(); }).to("web");"#)
            .settings("[script]\nbody = \"100KiB\"\n")
            .pool("web", web.address())
            .start();
    let body = bytes(100 * 1024 + 1);
    assert_eq!(proxy.send(&post("/", body.clone())).status, 413);
    let mut connection = Connection::open(proxy.address()).unwrap();
    connection.write(&chunked(&body, 10_000)).unwrap();
    assert_eq!(connection.read_response("POST").unwrap().status, 413);
    assert_eq!(web.hits(), 0);
    let hits = proxy.metric("limit_hits_total", &[("limit", "body")]);
    assert_eq!(hits as u64, 2);
    assert_eq!(proxy.metric("script_body_bytes", &[]) as u64, 0);
}

#[test]
fn a_client_that_breaks_off_reaches_no_upstream() {
    let (web, proxy) = proxy();
    let mut connection = Connection::open(proxy.address()).unwrap();
    connection
        .write(b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000\r\n\r\nabc")
        .unwrap();
    drop(connection);
    // The next one is served: nothing waits for ever.
    assert_eq!(proxy.send(&post("/", "x")).text(), digest(b"x"));
    assert_eq!(web.hits(), 1);
}

#[test]
fn a_hook_changes_the_body_and_the_framing_follows() {
    let web = Upstream::start(|seen| ok(&seen.body));
    let proxy = serving(
        r#"
        route("/json").on_request_body(|req| {
            let order = req.json();
            if order == () { return respond(400, "no JSON"); }
            order.checked = true;
            req.set_body(order);
        }).to("web");
        route("/none").on_request_body(|req| { req.set_body(()); }).to("web");
        route("/made").on_request_body(|req| { req.set_body("made"); }).to("web");
        route("/by/body").on_request_body(|req| {}).to(|req| if req.body().text() == "b" { "other" } else { "web" });
        "#,
    )
    .pool("web", web.address())
    .pool("other", Upstream::fixed("other").address())
    .start();
    assert_eq!(
        proxy.send(&post("/json", "{ \"b\": 1 }")).text(),
        "{\"b\":1,\"checked\":true}"
    );
    assert_eq!(proxy.send(&post("/json", "{")).status, 400);
    assert_eq!(proxy.send(&post("/none", "x")).text(), "");
    assert_eq!(web.last_request().headers("content-length"), ["0"]);
    assert_eq!(proxy.get("/made").text(), "made");
    assert_eq!(proxy.send(&post("/by/body", "a")).text(), "a");
}

/// An upstream that reads each request's body to its end, keeps none of it, and answers.
fn sink(length: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut buffer = vec![0; 64 * 1024];
            let mut left = length;
            while left > 0 {
                match stream.read(&mut buffer) {
                    Ok(read @ 1..) => {
                        // The header is counted too: no more than a few hundred bytes of it.
                        left = left.saturating_sub(read as u64);
                    }
                    _ => break,
                }
            }
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        }
    });
    address
}

fn upload(proxy: &Proxy, length: u64) {
    let mut connection = Connection::open(proxy.address()).unwrap();
    let head = format!("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {length}\r\n\r\n");
    connection.write(head.as_bytes()).unwrap();
    let piece = bytes(MIB);
    for _ in 0..length / MIB as u64 {
        connection.write(&piece).unwrap();
    }
    assert_eq!(connection.read_response("POST").unwrap().status, 200);
}

#[test]
fn without_a_hook_a_body_streams_through_with_flat_memory() {
    // The full form is 1 GiB.
    let soak = std::env::var_os("EDGEWRIGHT_SOAK").is_some();
    let length = if soak { 1024 } else { 64 } * MIB as u64;
    let proxy = serving(r#"route("/{*rest}").to("web");"#)
        .pool("web", sink(length))
        .start();
    // What is set up with the first request is no part of it.
    upload(&proxy, length);
    let before = resident(&proxy);
    upload(&proxy, length);
    let grown = resident(&proxy).saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} KiB more are resident");
}

/// Resident memory of the proxy, in KiB.
fn resident(proxy: &Proxy) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", proxy.pid())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
