//! `.compress`: responses that are compressed for clients that want it.

use std::io::{Read, Write};

use crate::support::client::{Connection, Response, get};
use crate::support::launch::serving;
use crate::support::upstream::{Action, Upstream, answer};
use crate::support::wait::{Gate, SOON};

fn plain(response: &Response) -> String {
    let mut text = String::new();
    let body = &response.body[..];
    match response.header("content-encoding") {
        Some("gzip") => {
            let mut decoder = flate2::read::GzDecoder::new(body);
            decoder.read_to_string(&mut text).unwrap();
        }
        Some("br") => {
            let mut decoder = brotli::Decompressor::new(body, 4096);
            decoder.read_to_string(&mut text).unwrap();
        }
        Some("zstd") => text = String::from_utf8(zstd::stream::decode_all(body).unwrap()).unwrap(),
        _ => text = response.text(),
    }
    text
}

fn page() -> String {
    "All work and no play makes Jack a dull boy. ".repeat(100)
}

const ROUTES: &str = r#"
    route("/{*rest}").compress().to("web");
    route("/hook").compress().on_response_body(|req, res| res.set_body(res.body().text() + "!")).to("web");
    route("/pieces").compress().on_response_body(#{ stream: true }, |req, res| {}).to("web");
    route("/local").compress(#{ min: "10B", codings: ["gzip"] }).respond(200, "a text of the program's own");
"#;

#[test]
fn a_client_gets_what_it_likes_most() {
    let web = Upstream::start(|seen| match seen.target().as_str() {
        "/png" => answer(200, &[("Content-Type", "image/png")], page()),
        "/short" => answer(200, &[("Content-Type", "text/plain")], "short"),
        "/coded" => {
            let coded = [("Content-Type", "text/plain"), ("Content-Encoding", "br")];
            answer(200, &coded, page())
        }
        "/kept" => {
            let kept = [
                ("Content-Type", "text/plain"),
                ("Cache-Control", "public, no-transform"),
            ];
            answer(200, &kept, page())
        }
        _ => {
            let tagged = [
                ("Content-Type", "text/html; charset=utf-8"),
                ("ETag", "\"1\""),
            ];
            answer(200, &tagged, page())
        }
    });
    let proxy = serving(ROUTES).pool("web", web.address()).start();
    let with =
        |target: &str, accepted: &str| proxy.send(&get(target).header("Accept-Encoding", accepted));
    for (accepted, coding) in [
        ("gzip", Some("gzip")),
        ("gzip, br", Some("br")),
        ("gzip, br, zstd", Some("zstd")),
        ("zstd;q=0.5, gzip", Some("gzip")),
        ("identity", None),
        ("gzip;q=0", None),
    ] {
        for target in ["/", "/hook", "/pieces"] {
            let response = with(target, accepted);
            assert_eq!(
                response.header("content-encoding"),
                coding,
                "{target} {accepted}"
            );
            let expected = page() + if target == "/hook" { "!" } else { "" };
            assert_eq!(plain(&response), expected, "{target} {accepted}");
            assert_eq!(response.header("vary"), Some("accept-encoding"));
            if coding.is_some() {
                assert!(response.body.len() < 1000);
                assert_eq!(response.header("etag"), Some("W/\"1\""));
            }
        }
    }
    for target in ["/png", "/short", "/kept"] {
        assert_eq!(
            with(target, "gzip").header("content-encoding"),
            None,
            "{target}"
        );
    }
    assert_eq!(
        with("/coded", "gzip").header("content-encoding"),
        Some("br")
    );
    let local = with("/local", "gzip, br");
    assert_eq!(local.header("content-encoding"), Some("gzip"));
    assert_eq!(plain(&local), "a text of the program's own");
    let length = local.body.len().to_string();
    assert_eq!(local.header("content-length"), Some(length.as_str()));
}

/// What can be decoded of a response in chunks of which only a part has come.
fn decoded(seen: &[u8]) -> Vec<u8> {
    let mut decoder = flate2::write::GzDecoder::new(Vec::new());
    let head = seen.windows(4).position(|four| four == b"\r\n\r\n");
    let mut rest = head.map_or(&[][..], |head| &seen[head + 4..]);
    while let Some(line) = rest.windows(2).position(|two| two == b"\r\n") {
        let length = std::str::from_utf8(&rest[..line]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        let Some(chunk) = rest.get(line + 2..line + 2 + length) else {
            break;
        };
        decoder.write_all(chunk).unwrap();
        rest = rest.get(line + 4 + length..).unwrap_or_default();
    }
    decoder.flush().unwrap();
    decoder.get_ref().clone()
}

#[test]
fn a_stream_stays_a_stream() {
    let gate = Gate::new();
    let waits = gate.clone();
    let web = Upstream::start(move |_| {
        let gate = waits.clone();
        Action::Write(Box::new(move |stream| {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
            stream.write_all(head.as_bytes())?;
            stream.write_all(b"9\r\ndata: 1\n\n\r\n")?;
            assert!(gate.pass(SOON));
            stream.write_all(b"9\r\ndata: 2\n\n\r\n0\r\n\r\n")
        }))
    });
    let proxy = serving(ROUTES).pool("web", web.address()).start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    let request = get("/").header("Accept-Encoding", "gzip");
    connection.write(&request.bytes()).unwrap();
    // The first piece can be decoded before the second one is sent.
    let mut seen = Vec::new();
    while decoded(&seen) != b"data: 1\n\n" {
        seen.extend(connection.read_until(b"\r\n"));
    }
    gate.open();
    seen.extend(connection.read_until(b"\r\n0\r\n\r\n"));
    assert_eq!(decoded(&seen), b"data: 1\n\ndata: 2\n\n");
}

#[test]
fn http_1_0_gets_it_plain() {
    let web = Upstream::start(|_| answer(200, &[("Content-Type", "text/html")], page()));
    let proxy = serving(ROUTES).pool("web", web.address()).start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    connection
        .write(b"GET / HTTP/1.0\r\nHost: a.test\r\nAccept-Encoding: gzip\r\n\r\n")
        .unwrap();
    let response = connection.read_response("GET").unwrap();
    assert_eq!(response.header("content-encoding"), None);
    assert_eq!(response.text(), page());
}
