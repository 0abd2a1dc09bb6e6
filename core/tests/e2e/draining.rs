//! What becomes of each kind of connection when the process is told to end.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::support::client::{Connection, get};
use crate::support::http2::{Client, request};
use crate::support::launch::{Builder, serving};
use crate::support::load::{Both, Load, Until};
use crate::support::proxy::Proxy;
use crate::support::upstream::{Upstream, ok};
use crate::support::wait::{AT_ONCE, Gate, SOON, until};
use crate::support::websocket;

const ROUTES: &str = r#"route("/{*rest}").to("web");"#;

/// RFC 9113 section 3.4, with SETTINGS that allow 16 MiB to be sent ahead on a stream and (WINDOW_UPDATE) on
/// the connection.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\
    \x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x01\x00\x00\x00\
    \x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\xff\x00\x00";

/// HEADERS of stream 1: `GET http://edge.test/` in HPACK's plainest words (RFC 7541 section 6).
const HTTP2_GET: &[u8] = b"\x00\x00\x0e\x01\x05\x00\x00\x00\x01\x82\x84\x86\x01\x09edge.test";

fn plain(web: &Upstream) -> Builder {
    serving(ROUTES).pool("web", web.address())
}

fn both(web: &Upstream) -> Builder {
    plain(web).listener("http2 = true")
}

fn ends_at_once(proxy: &mut Proxy) {
    let (status, _) = proxy.wait_exit(AT_ONCE);
    assert_eq!(status.code(), Some(0), "{}", proxy.log.text());
    assert_eq!(proxy.log.count("drained"), 1);
}

/// Type, stream and payload of each frame (RFC 9113 section 4.1).
fn frames(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while bytes.len() >= 9 {
        let length =
            usize::from(bytes[0]) << 16 | usize::from(bytes[1]) << 8 | usize::from(bytes[2]);
        let end = (9 + length).min(bytes.len());
        frames.push((bytes[3], bytes[9..end].to_vec()));
        bytes = &bytes[end..];
    }
    frames
}

fn goaway(frames: &[(u8, Vec<u8>)]) -> Option<u32> {
    let (_, payload) = frames.iter().rfind(|(kind, _)| *kind == 7)?;
    Some(u32::from_be_bytes(payload.get(4..8)?.try_into().unwrap()))
}

#[test]
fn a_connection_in_the_queue_is_served() {
    let web = Upstream::fixed("ok");
    let mut proxy = plain(&web).start();
    // Connections are established, and nobody has accepted them when the signal comes.
    proxy.signal("STOP");
    let mut waiting: Vec<_> = (0..20)
        .map(|_| {
            let mut connection = Connection::open(proxy.address()).unwrap();
            connection.write(&get("/x").bytes()).unwrap();
            connection
        })
        .collect();
    proxy.signal("TERM");
    proxy.signal("CONT");
    for connection in &mut waiting {
        // Whether it says that the connection closes depends on which of the two the process has seen first.
        assert_eq!(connection.read_response("GET").unwrap().status, 200);
    }
    ends_at_once(&mut proxy);
}

/// With no `delay` at all: whoever has a connection is told to leave with an answer.
#[test]
fn busy_connections_lose_no_request() {
    let web = Upstream::fixed("ok");
    let mut proxy = plain(&web).start();
    let load = Load::start(proxy.address(), "/x", 8, Until::LastAnswer);
    web.wait_hits(200, SOON);
    proxy.signal("TERM");
    load.finish().assert_all_ok();
    ends_at_once(&mut proxy);
}

#[test]
fn during_the_delay_nothing_fails() {
    let soak = std::env::var_os("EDGEWRIGHT_SOAK").is_some_and(|value| value == "1");
    let seconds = if soak { 30 } else { 3 };
    let web = Upstream::fixed("ok");
    let mut proxy = plain(&web)
        .settings(&format!("[server.shutdown]\ndelay = \"{}s\"", seconds + 10))
        .start();
    let until = Until::Elapsed(Duration::from_secs(seconds));
    proxy.signal("TERM");
    proxy.log.wait("shutting down", SOON);
    Both::start(proxy.address(), until).finish_all_ok();
    assert!(proxy.running());
    proxy.signal("INT");
    assert_eq!(proxy.wait_exit(AT_ONCE).0.code(), Some(0));
}

#[test]
fn a_connection_that_has_said_nothing_yet_is_no_reason_to_wait() {
    let web = Upstream::fixed("ok");
    let mut proxy = both(&web).start();
    let mut silent = Connection::open(proxy.address()).unwrap();
    let mut half = Connection::open(proxy.address()).unwrap();
    half.write(b"PRI * HT").unwrap();
    until("both to be accepted", SOON, || {
        proxy.metric("connections_open", &[]) >= 2.0
    });
    proxy.signal("TERM");
    ends_at_once(&mut proxy);
    assert!(silent.closed_within(SOON) && half.closed_within(SOON));
}

#[test]
fn streams_of_http2_end_and_their_connection_with_them() {
    let gate = Gate::new();
    let held = gate.clone();
    let web = Upstream::start(move |_| {
        held.pass(SOON);
        ok("late")
    });
    let mut proxy = both(&web).start();
    let address = proxy.address();
    let streams = std::thread::spawn(move || {
        let asked = |path: &str| request("GET", path).body(()).unwrap();
        let client = Client::connect(address);
        let answers = client.send_all(vec![asked("/a"), asked("/b")]);
        (answers, client.send(asked("/c"), b""))
    });
    web.wait_hits(2, SOON);
    proxy.signal("TERM");
    until("the listener to close", SOON, || {
        TcpStream::connect(address).is_err()
    });
    assert!(proxy.running(), "it ended with streams in flight");
    gate.open();
    let (answers, after) = streams.join().unwrap();
    for answer in answers {
        let answer = answer.expect("a stream was cut");
        assert_eq!(
            (answer.status, answer.message.text().as_str()),
            (200, "late")
        );
    }
    assert!(after.is_err(), "a new stream after the connection's end");
    ends_at_once(&mut proxy);
}

#[test]
fn an_idle_connection_of_http2_is_told_to_go() {
    let web = Upstream::fixed("ok");
    let mut proxy = both(&web).start();
    let mut idle = TcpStream::connect(proxy.address()).unwrap();
    idle.write_all(HTTP2).unwrap();
    idle.set_read_timeout(Some(SOON)).unwrap();
    // It has been heard when SETTINGS come back.
    let mut first = vec![0; 1024];
    let length = idle.read(&mut first).unwrap();
    first.truncate(length);
    proxy.signal("TERM");
    // This client never answers the PING by which the proxy finds out what it has heard of.
    ends_at_once(&mut proxy);
    let mut rest = Vec::new();
    let _ = idle.read_to_end(&mut rest);
    let all = frames(&[first, rest].concat());
    assert_eq!(goaway(&all), Some(0), "{all:?}");
}

/// Most of the body waits in buffers, of the proxy and of the kernel, when its stream has ended for the proxy.
#[test]
fn what_a_slow_client_of_http2_has_not_read_yet_is_sent() {
    const LENGTH: usize = 8 * 1024 * 1024;
    let web = Upstream::start(|_| ok(vec![b'x'; LENGTH]));
    let mut proxy = both(&web).start();
    let mut slow = TcpStream::connect(proxy.address()).unwrap();
    slow.write_all(&[HTTP2, HTTP2_GET].concat()).unwrap();
    web.wait_hits(1, SOON);
    proxy.signal("TERM");
    proxy.log.wait("shutting down", SOON);
    slow.set_read_timeout(Some(SOON)).unwrap();
    let mut all = Vec::new();
    let mut acknowledged = false;
    let mut piece = vec![0; 64 * 1024];
    loop {
        match slow.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => all.extend_from_slice(&piece[..length]),
            Err(error) => panic!("{error} after {} bytes", all.len()),
        }
        // Answers the PING, so that the connection can end by itself.
        let ping = frames(&all).into_iter().find(|(kind, _)| *kind == 6);
        if let (Some((_, payload)), false) = (ping, acknowledged) {
            acknowledged = true;
            slow.write_all(&[b"\x00\x00\x08\x06\x01\x00\x00\x00\x00", &payload[..]].concat())
                .unwrap();
        }
    }
    let data = frames(&all).into_iter().filter(|(kind, _)| *kind == 0);
    assert_eq!(
        data.map(|(_, payload)| payload.len()).sum::<usize>(),
        LENGTH
    );
    let (status, _) = proxy.wait_exit(AT_ONCE);
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_websocket_goes_on_until_the_drain_is_over() {
    let web = websocket::echo();
    let drain = Duration::from_secs(3);
    let mut proxy = plain(&web)
        .settings("[server.shutdown]\ndrain = \"3s\"")
        .start();
    let mut stays = websocket::open(proxy.address());
    let begin = Instant::now();
    proxy.signal("TERM");
    let address = proxy.address();
    until("the listener to close", SOON, || {
        TcpStream::connect(address).is_err()
    });
    websocket::echoes(&mut stays, b"hello");
    let (status, _) = proxy.wait_exit(drain + AT_ONCE);
    assert_eq!(status.code(), Some(0));
    assert!(begin.elapsed() >= drain, "{:?}", begin.elapsed());
    assert_eq!(proxy.log.count("1 requests are cut"), 1);
    assert!(stays.closed_within(SOON));

    // One that ends by itself is not waited for any longer.
    let mut proxy = plain(&web).start();
    let ends = websocket::open(proxy.address());
    proxy.signal("TERM");
    proxy.log.wait("shutting down", SOON);
    drop(ends);
    ends_at_once(&mut proxy);
}

/// A client that has closed its side without reading is no reason to wait either.
#[test]
fn a_half_closed_connection_ends() {
    let web = Upstream::fixed("ok");
    let mut proxy = plain(&web).start();
    let half = TcpStream::connect(proxy.address()).unwrap();
    half.shutdown(Shutdown::Write).unwrap();
    proxy.signal("TERM");
    ends_at_once(&mut proxy);
}
