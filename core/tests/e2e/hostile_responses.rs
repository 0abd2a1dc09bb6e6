//! Upstreams that answer what nobody asked for, or in a form that must not pass.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::Duration;

use crate::support::client::{Connection, Response, get};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::{Action, Upstream};
use crate::support::wait::SOON;

const ROUTES: &str = r#"route("/{*rest}").to("web");"#;

fn proxy(web: &Upstream) -> Proxy {
    serving(ROUTES).pool("web", web.address()).start()
}

/// An upstream that answers everything with these bytes and closes.
fn saying(bytes: impl Into<Vec<u8>>) -> Upstream {
    let bytes = bytes.into();
    Upstream::start(move |_| Action::BytesThenClose(bytes.clone()))
}

/// What the client gets from an upstream that says `bytes`.
fn answer_to(bytes: impl Into<Vec<u8>>) -> Response {
    let web = saying(bytes);
    proxy(&web).get("/x")
}

/// Everything that comes back on a new connection until its end.
fn raw(proxy: &Proxy, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    // A reset after the answer is an end too.
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            panic!("not closed: {}", String::from_utf8_lossy(&answer))
        }
        _ => String::from_utf8_lossy(&answer).into_owned(),
    }
}

#[test]
fn an_unasked_101_is_502_and_no_tunnel() {
    for head in [
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nINJECTED",
        "HTTP/1.1 101 Switching Protocols\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nINJECTED",
    ] {
        let (sender, received) = mpsc::channel();
        let web = Upstream::start(move |_| {
            let sender = sender.clone();
            Action::Write(Box::new(move |stream: &mut TcpStream| {
                stream.write_all(head.as_bytes())?;
                let mut tunnelled = Vec::new();
                let _ = stream.read_to_end(&mut tunnelled);
                let _ = sender.send(tunnelled);
                Ok(())
            }))
        });
        let proxy = proxy(&web);
        let answer = raw(
            &proxy,
            b"GET /x HTTP/1.1\r\nHost: edge.test\r\n\r\nraw bytes of a tunnel",
        );
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
        assert!(!answer.contains("101"), "{answer}");
        assert!(!answer.contains("INJECTED"), "{answer}");
        let tunnelled = received.recv_timeout(SOON).unwrap();
        assert_eq!(String::from_utf8_lossy(&tunnelled), "");
        assert_eq!(proxy.ask_admin("/healthz").status, 200);
    }
}

/// Answers 101 and sends back what comes, each time after `pace`.
fn echo(pace: Duration) -> Upstream {
    Upstream::start(move |_| {
        Action::Write(Box::new(move |stream: &mut TcpStream| {
            stream.write_all(
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            )?;
            let mut buffer = [0; 1024];
            loop {
                match stream.read(&mut buffer)? {
                    0 => return Ok(()),
                    length => {
                        std::thread::sleep(pace);
                        stream.write_all(&buffer[..length])?;
                    }
                }
            }
        }))
    })
}

/// The head of a response, read byte by byte so that nothing behind it is taken.
fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap().to_lowercase()
}

#[test]
fn an_upgrade_works_and_a_timeout_does_not_cut_it() {
    // Slower than the timeout: the pace of this upstream is what the case is about.
    let web = echo(Duration::from_millis(500));
    let proxy = serving(r#"route("/{*rest}").timeout("300ms").to("web");"#)
        .pool("web", web.address())
        .start();
    // Browsers differ in what else they name.
    for connection in ["Upgrade", "keep-alive, Upgrade"] {
        let mut stream = TcpStream::connect(proxy.address()).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let request = get("/socket")
            .header("Connection", connection)
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Version", "13");
        stream.write_all(&request.bytes()).unwrap();
        let head = read_head(&mut stream);
        assert!(head.starts_with("http/1.1 101 "), "{connection}: {head}");
        assert!(head.contains("\r\nupgrade: websocket\r\n"), "{head}");
        assert!(head.contains("\r\nconnection: upgrade\r\n"), "{head}");
        // Bytes that are no HTTP, either way.
        for message in [b"\x81\x05\x00hello".as_slice(), b"\r\n\r\n\xff\xfe"] {
            stream.write_all(message).unwrap();
            let mut echoed = vec![0; message.len()];
            stream.read_exact(&mut echoed).unwrap();
            assert_eq!(echoed, message, "{connection}");
        }
        let seen = web.last_request();
        assert_eq!(seen.headers("upgrade"), ["websocket"], "{connection}");
        let passed = seen.headers("connection").join(", ").to_lowercase();
        assert!(passed.contains("upgrade"), "{connection}: {passed}");
    }
    assert_eq!(web.hits(), 2);
}

/// What an HTTP/1.0 client gets from an upstream that says `bytes`: head and body.
fn http_1_0_answer(fields: &str, bytes: &'static str) -> (String, String) {
    let web = saying(bytes);
    let request = format!("GET /x HTTP/1.0\r\n{fields}\r\n");
    let answer = raw(&proxy(&web), request.as_bytes());
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

/// HTTP/1.0 knows no chunks (RFC 9112 section 6.1); the end of the connection ends the body.
#[test]
fn http_1_0_gets_no_chunks() {
    for fields in [
        "Host: edge.test\r\n",
        "Host: edge.test\r\nConnection: keep-alive\r\n",
    ] {
        let (head, body) = http_1_0_answer(
            fields,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
        );
        assert!(head.contains(" 200 "), "{head}");
        assert!(!head.contains("transfer-encoding"), "{head}");
        assert!(!head.contains("keep-alive"), "{head}");
        assert_eq!(body, "hello world");
    }
}

/// A server must not send 1xx to an HTTP/1.0 client (RFC 9110 section 15.2).
#[test]
fn http_1_0_gets_no_interim_responses() {
    for interim in ["100 Continue", "103 Early Hints"] {
        let answer = format!("HTTP/1.1 {interim}\r\n\r\n");
        let answer = answer + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        let (head, body) = http_1_0_answer("Host: edge.test\r\n", answer.leak());
        assert!(head.contains(" 200 "), "{interim}: {head}\n\n{body}");
        assert_eq!(body, "ok", "{interim}");
    }
}

#[test]
fn a_foreign_transfer_coding_is_502() {
    let body = "5\r\nhello\r\n0\r\n\r\n";
    for coding in [
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: gzip",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked, chunked",
    ] {
        let response = answer_to(format!("HTTP/1.1 200 OK\r\n{coding}\r\n\r\n{body}"));
        assert_eq!(response.status, 502, "{coding}");
        assert!(!response.text().contains("hello"), "{coding}");
    }
}

#[test]
fn an_equal_length_said_twice_arrives_once() {
    let response =
        answer_to("HTTP/1.1 200 OK\r\nContent-Length: 5\r\ncontent-length: 5\r\n\r\nhello");
    let lengths = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("content-length");
    assert_eq!(response.headers.iter().filter(lengths).count(), 1);
    assert_eq!((response.status, response.text().as_str()), (200, "hello"));
    let response =
        answer_to("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 4\r\n\r\nhello");
    assert_eq!(response.status, 502);
}

#[test]
fn fields_of_the_other_connection_do_not_pass() {
    let response = answer_to(
        "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nConnection: X-First, x-second\r\nX-First: 1\r\n\
         X-Second: 2\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\n\
         Trailer: x-sum\r\nUpgrade: h2c\r\nX-Kept: 3\r\nContent-Length: 2\r\n\r\nok",
    );
    assert_eq!((response.status, response.text().as_str()), (200, "ok"));
    assert_eq!(response.header("x-kept"), Some("3"));
    for name in [
        "x-first",
        "x-second",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "upgrade",
    ] {
        assert_eq!(response.header(name), None, "{name}");
    }
    let connection = response.header("connection").unwrap_or_default();
    assert!(!connection.to_lowercase().contains("x-"), "{connection}");
}

#[test]
fn interim_responses_are_passed_on_but_not_without_end() {
    let with = |count: usize| {
        let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(count);
        format!("{hints}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    };
    let response = answer_to(with(16));
    assert_eq!((response.status, response.text().as_str()), (200, "ok"));
    for count in [17, 1000] {
        let web = saying(with(count));
        let proxy = proxy(&web);
        let mut connection = Connection::open(proxy.address()).unwrap();
        assert_eq!(connection.send(&get("/x")).unwrap().status, 502, "{count}");
        // Nothing of the rest comes behind it.
        assert!(connection.closed_within(SOON));
    }
}
