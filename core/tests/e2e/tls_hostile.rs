//! Clients of a TLS listener that mean no good, or have come to the wrong door.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::support::certificates::Authority;
use crate::support::client::{Connection, get};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::tls_client::asking_for;
use crate::support::wait::{SOON, until};

fn listening(settings: &str) -> Proxy {
    let own = Authority::new("of the test").issue(&["a.test"]);
    serving("route(\"/\").respond(200, \"ok\");")
        .settings(settings)
        .listener("[listeners.tls]\ncertificates = [{ cert = \"0.crt\", key = \"0.key\" }]")
        .file("0.crt", &own.chain)
        .file("0.key", &own.key)
        .start()
}

fn refused(proxy: &Proxy, reason: &str) -> f64 {
    proxy.metric("refused_connections_total", &[("reason", reason)])
}

/// The beginning of a handshake of 512 bytes.
const BEGUN: &[u8] = &[22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];

#[test]
fn who_speaks_plain_http_is_told_so() {
    let proxy = listening("");
    // Longer than what is looked at.
    let request = get("/").header("x-long", &"x".repeat(4000));
    let answer = request.send(proxy.address());
    assert_eq!(answer.status, 400);
    assert!(answer.closes());
    assert!(answer.text().contains("HTTPS"), "{}", answer.text());
    until("it to be counted", SOON, || {
        refused(&proxy, "not_tls") == 1.0
    });
}

#[test]
fn what_is_no_handshake_is_closed_and_counted() {
    let proxy = listening("");
    for (reason, bytes) in [
        ("not_tls", &b"\0\x01\x02garbage"[..]),
        ("not_tls", b"SSH-2.0-x\r\n"),
        ("tls_invalid", b"\x16\x03\x01\0\x08notahello"),
        ("tls_invalid", &[22, 3, 1, 0xff, 0xff, 1, 2, 3]),
        // A handshake that begins with what only a server says.
        ("tls_invalid", &[22, 3, 1, 0, 4, 2, 0, 0, 0]),
    ] {
        let before = refused(&proxy, reason);
        let mut connection = Connection::open(proxy.address()).unwrap();
        connection.write(bytes).unwrap();
        assert!(connection.closed_within(SOON), "{bytes:?}");
        until("it to be counted", SOON, || {
            refused(&proxy, reason) == before + 1.0
        });
    }
    assert_eq!(
        proxy.metric("tls_handshakes_total", &[("result", "failed")]),
        5.0
    );
}

/// The TLS and HTTP stacks warn of what is odd in a message, each time: whoever likes could fill the disk.
#[test]
fn clients_do_not_fill_the_log() {
    let own = Authority::new("of the test").issue(&["a.test"]);
    let routes = "route(\"/\").respond(200, \"ok\");";
    let tls = serving(routes)
        .settings("[limits]\ntls_handshake_timeout = \"1s\"")
        .listener("[listeners.tls]\ncertificates = [{ cert = \"0.crt\", key = \"0.key\" }]")
        .file("0.crt", &own.chain)
        .file("0.key", &own.key)
        .start();
    // A handshake that begins with what only a server says, and one that asks for an address as a name.
    let wrong: &[u8] = &[22, 3, 1, 0, 4, 2, 0, 0, 0];
    for bytes in [wrong.to_vec(), hello_for("127.0.0.1")] {
        let mut connection = Connection::open(tls.address()).unwrap();
        connection.write(&bytes).unwrap();
        assert!(connection.closed_within(SOON));
    }
    let plain = serving(routes).listener("http2 = true").start();
    // SETTINGS, an answer to a PING that nobody has sent, and a frame that is too long.
    let mut connection = Connection::open(plain.address()).unwrap();
    connection
        .write(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00\
              \x00\x00\x08\x06\x01\x00\x00\x00\x0012345678\xff\xff\xff\x00\x00\x00\x00\x00\x00",
        )
        .unwrap();
    assert!(connection.closed_within(SOON));
    // A preface with something else behind it.
    let mut connection = Connection::open(plain.address()).unwrap();
    connection
        .write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnothing of the kind at all")
        .unwrap();
    assert!(connection.closed_within(SOON));
    for proxy in [tls, plain] {
        // Lines are written in their order.
        proxy.signal("HUP");
        proxy.log.wait("reload: nothing changed", SOON);
        let text = proxy.log.text();
        let told = text.lines().filter(|line| {
            [" WARN ", " ERROR "]
                .iter()
                .any(|level| line.contains(level))
        });
        assert_eq!(told.count(), 0, "{text}");
    }
}

/// A ClientHello of TLS 1.2 that asks for this name.
fn hello_for(name: &str) -> Vec<u8> {
    fn sized(length: usize, bytes: &[u8]) -> Vec<u8> {
        let size = bytes.len().to_be_bytes();
        [&size[size.len() - length..], bytes].concat()
    }
    let server_name = sized(2, &[&[0], &*sized(2, name.as_bytes())].concat());
    let extensions = [
        &[0, 0][..],
        &sized(2, &server_name),
        // P-256, and ECDSA with it.
        &[0, 10, 0, 4, 0, 2, 0, 23],
        &[0, 13, 0, 4, 0, 2, 4, 3],
    ]
    .concat();
    let body = [
        &[3, 3][..],
        &[7; 32],
        &[0],
        &sized(2, &[0xc0, 0x2b]),
        &[1, 0],
        &sized(2, &extensions),
    ]
    .concat();
    let message = [&[1], &*sized(3, &body)].concat();
    [&[22, 3, 1], &*sized(2, &message)].concat()
}

#[test]
fn a_connection_that_ends_in_the_handshake_is_one_that_was_cut_and_an_empty_one_is_no_news() {
    let proxy = listening("");
    drop(TcpStream::connect(proxy.address()).unwrap());
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    stream.write_all(BEGUN).unwrap();
    drop(stream);
    until("it to be counted", SOON, || refused(&proxy, "cut") == 1.0);
    let failed = proxy.metric("tls_handshakes_total", &[("result", "failed")]);
    assert_eq!(
        failed, 1.0,
        "looking whether the port is open counts for nothing"
    );
}

#[test]
fn the_handshake_has_a_limit_as_a_whole() {
    let proxy = listening("[limits]\ntls_handshake_timeout = \"400ms\"");
    for bytes in [&b""[..], BEGUN] {
        let mut connection = Connection::open(proxy.address()).unwrap();
        connection.write(bytes).unwrap();
        assert!(connection.closed_within(SOON), "{bytes:?}");
    }
    // A byte now and then is no progress: each of them comes long before the limit.
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    stream.write_all(BEGUN).unwrap();
    let begun = Instant::now();
    while stream.write_all(b"\0").is_ok() {
        assert!(begun.elapsed() < SOON, "it goes on for ever");
        std::thread::sleep(Duration::from_millis(20));
    }
    until("all to be counted", SOON, || refused(&proxy, "late") == 3.0);
}

#[test]
fn who_agrees_to_http_2_has_to_begin_with_it() {
    let proxy = listening("[limits]\ntls_handshake_timeout = \"1s\"");
    let tunnel = asking_for("a.test").alpn(&["h2"]).to(proxy.address());
    let mut silent = Connection::open(tunnel.address()).unwrap();
    assert!(silent.closed_within(SOON));
    until("it to be counted", SOON, || refused(&proxy, "late") == 1.0);
    let mut other = Connection::open(tunnel.address()).unwrap();
    other.write(&get("/").bytes()).unwrap();
    assert!(other.closed_within(SOON));
    until("it to be counted", SOON, || {
        refused(&proxy, "tls_invalid") == 1.0
    });
    assert_eq!(tunnel.met().len(), 2, "the handshakes themselves were done");
}

#[test]
fn a_crowd_that_says_nothing_is_not_in_the_way() {
    let proxy = listening("[server]\nthreads = 1\n[limits]\ntls_handshake_timeout = \"60s\"");
    let crowd: Vec<TcpStream> = (0..200)
        .map(|number| {
            let mut stream = TcpStream::connect(proxy.address()).unwrap();
            if number % 2 == 0 {
                stream.write_all(BEGUN).unwrap();
            }
            stream
        })
        .collect();
    let tunnel = asking_for("a.test").to(proxy.address());
    for _ in 0..10 {
        assert_eq!(get("/").send(tunnel.address()).text(), "ok");
    }
    assert_eq!(refused(&proxy, "late"), 0.0, "they are all still there");
    drop(crowd);
}
