//! What lasts longer than a configuration: slow responses, event streams, calls of gRPC and uploads go on over
//! reloads, in the program that they began with. Case slow-stream-reload (kubernetes 54505, ingress-nginx 1552).

use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::client::{Connection, get};
use crate::support::http2_call::{Call, Echo};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::{Action, Upstream, ok};
use crate::support::versions::{put_in_force, soak, version, wait_generations};
use crate::support::wait::SOON;

const RELOADS: usize = 10;

/// A proxy of version `v0` in front of a target.
fn before(target: SocketAddr) -> Proxy {
    serving(&version("v0")).pool("web", target).start()
}

/// An upstream that begins a chunked response and sends what it is told to, until the sender is dropped.
fn fed(kind: &'static str) -> (Upstream, Sender<String>) {
    let (feed, pieces) = channel::<String>();
    let pieces = Arc::new(Mutex::new(pieces));
    let upstream = Upstream::start(move |seen| {
        if seen.target() != "/slow" {
            return ok("fast");
        }
        let pieces = Arc::clone(&pieces);
        Action::Write(Box::new(move |stream| {
            use std::io::Write as _;
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
            )?;
            for piece in pieces.lock().unwrap().iter() {
                write!(stream, "{:x}\r\n{piece}\r\n", piece.len())?;
            }
            stream.write_all(b"0\r\n\r\n")
        }))
    });
    (upstream, feed)
}

/// A response of 100 pieces, with a reload after each tenth: all arrive, each when it was sent.
fn a_stream_goes_on(kind: &'static str) {
    let (upstream, feed) = fed(kind);
    let proxy = before(upstream.address());
    let mut client = Connection::open(proxy.address()).unwrap();
    client.write(&get("/slow").bytes()).unwrap();
    let head = client.read_until(b"\r\n\r\n");
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert!(head.contains("x-version: v0"), "{head}");
    for number in 0..100 {
        if soak() {
            // As slow as in the report: ten seconds for all.
            std::thread::sleep(Duration::from_millis(100));
        }
        let piece = format!("data: piece {number:03}\n\n");
        feed.send(piece.clone()).unwrap();
        let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
        let arrived = client.read_until(chunk.as_bytes());
        assert_eq!(String::from_utf8_lossy(&arrived), chunk);
        if number % 10 == 5 {
            let name = format!("v{}", number / 10 + 1);
            put_in_force(&proxy, &name);
            let fresh = proxy.get("/fast");
            assert_eq!(fresh.header("x-version"), Some(name.as_str()));
        }
    }
    // Those in between are gone; the first is the one that the stream uses.
    wait_generations(&proxy, 2);
    drop(feed);
    assert_eq!(client.read_until(b"0\r\n\r\n"), b"0\r\n\r\n");
    proxy.log.wait("/slow ended in v0", SOON);
    wait_generations(&proxy, 1);
}

#[test]
fn every_chunk_of_a_slow_response_arrives() {
    a_stream_goes_on("application/octet-stream");
}

#[test]
fn server_sent_events_go_on() {
    a_stream_goes_on("text/event-stream");
}

#[test]
fn a_call_of_grpc_goes_on_in_both_directions() {
    let echo = Echo::start();
    let target = echo.address();
    let proxy = serving(&version("v0"))
        .settings(&format!(
            "[pools.web]\nprotocol = \"http2\"\ntargets = [\"{target}\"]"
        ))
        .listener("http2 = true")
        .start();
    let mut call = Call::begin(proxy.address(), "/a.B/Talk");
    for number in 1..=RELOADS {
        put_in_force(&proxy, &format!("v{number}"));
        call.echoes(format!("message {number}").as_bytes());
    }
    wait_generations(&proxy, 2);
    let trailers = call.end().expect("trailers");
    assert_eq!(trailers["grpc-status"], "0");
    proxy.log.wait("/a.B/Talk ended in v0", SOON);
    wait_generations(&proxy, 1);
}

#[test]
fn a_slow_upload_goes_on() {
    let upstream = Upstream::start(|seen| ok(format!("{} bytes", seen.body.len())));
    let proxy = before(upstream.address());
    let mut client = Connection::open(proxy.address()).unwrap();
    let piece = vec![b'x'; 40_000];
    let all = piece.len() * (RELOADS + 1);
    let head = format!("POST /upload HTTP/1.1\r\nHost: a.test\r\nContent-Length: {all}\r\n\r\n");
    client.write(head.as_bytes()).unwrap();
    client.write(&piece).unwrap();
    for number in 1..=RELOADS {
        put_in_force(&proxy, &format!("v{number}"));
        wait_generations(&proxy, 2);
        client.write(&piece).unwrap();
    }
    let response = client.read_response("POST").unwrap();
    assert_eq!(response.text(), format!("{all} bytes"));
    assert_eq!(response.header("x-version"), Some("v0"));
    proxy.log.wait("/upload ended in v0", SOON);
    // The connection stays, and has no generation.
    wait_generations(&proxy, 1);
    let next = client.send(&get("/next")).unwrap();
    assert_eq!(next.header("x-version"), Some("v10"));
}
