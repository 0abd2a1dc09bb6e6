//! Probes against real sockets.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use ::http::Method;

use super::probe::{Failure, Prober};
use crate::config::{HealthCheck, Initial, PoolConfig, Probe};
use crate::pools::Endpoint;

/// Far above what anything takes here.
const LONG: Duration = Duration::from_secs(20);

fn check(probe: Probe, timeout: Duration) -> HealthCheck {
    HealthCheck {
        probe,
        interval: Duration::from_secs(5),
        timeout,
        healthy: 1,
        unhealthy: 1,
        port: None,
        initial: Initial::Healthy,
    }
}

fn get(path: &str) -> Probe {
    Probe::Http {
        method: Method::GET,
        path: path.to_owned(),
        host: None,
        status: Box::new([200..=299]),
    }
}

fn ask(target: &str, check: &HealthCheck, host: Option<&str>) -> Result<(), Failure> {
    let config = PoolConfig::new(Vec::new());
    let endpoint = Endpoint::at(target.parse().unwrap(), &config).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(Prober::default().ask(&endpoint, check, host))
}

/// A server that reads one header, answers with `answer`, and tells what it read.
fn server(
    answer: impl Fn(&mut TcpStream) + Send + 'static,
) -> (SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut read = Vec::new();
            let mut part = [0; 1024];
            while !read.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut part) {
                    Ok(0) | Err(_) => break,
                    Ok(length) => read.extend_from_slice(&part[..length]),
                }
            }
            let _ = sender.send(String::from_utf8_lossy(&read).into_owned());
            answer(&mut stream);
        }
    });
    (address, receiver)
}

fn answering(text: &'static str) -> (SocketAddr, mpsc::Receiver<String>) {
    server(move |stream| drop(stream.write_all(text.as_bytes())))
}

fn reason(result: Result<(), Failure>) -> String {
    result.unwrap_err().reason
}

#[test]
fn a_status_says_it() {
    let (address, seen) = answering("HTTP/1.1 204 No Content\r\n\r\n");
    let check = check(get("/healthz?a=1"), LONG);
    ask(&address.to_string(), &check, None).unwrap();
    let request = seen.recv_timeout(LONG).unwrap();
    assert!(
        request.starts_with("GET /healthz?a=1 HTTP/1.1\r\n"),
        "{request}"
    );
    let lower = request.to_ascii_lowercase();
    assert!(lower.contains(&format!("host: {address}\r\n")), "{request}");
    assert!(
        lower.contains("user-agent: edgewright-health/"),
        "{request}"
    );
    assert!(lower.contains("connection: close\r\n"), "{request}");
    ask(&address.to_string(), &check, Some("web.test:80")).unwrap();
    let request = seen.recv_timeout(LONG).unwrap();
    assert!(
        request
            .to_ascii_lowercase()
            .contains("host: web.test:80\r\n"),
        "{request}"
    );

    // Interim answers are passed over, redirects are not followed.
    let interim = "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    ask(&answering(interim).0.to_string(), &check, None).unwrap();
    let moved = "HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n";
    let (address, seen) = answering(moved);
    assert_eq!(
        reason(ask(&address.to_string(), &check, None)),
        "status 302"
    );
    assert!(seen.recv_timeout(LONG).is_ok() && seen.try_recv().is_err());
}

#[test]
fn what_cannot_be_read_is_a_failure() {
    let check = check(get("/"), LONG);
    for text in [
        "",
        "nonsense\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    ] {
        let (address, _seen) = answering(text);
        let failed = ask(&address.to_string(), &check, None).unwrap_err();
        assert!(
            failed.reason.starts_with("no answer: "),
            "{text:?}: {failed:?}"
        );
        assert!(!failed.timed_out);
    }
    // Interim answers without an end.
    let endless = "HTTP/1.1 102 Processing\r\n\r\n".repeat(30);
    let (address, _seen) = answering(endless.leak());
    assert_eq!(reason(ask(&address.to_string(), &check, None)), "status 0");
}

#[test]
fn silence_ends_with_the_timeout() {
    let (address, seen) = server(|stream| {
        // Until the other side gives up.
        let _ = stream.read(&mut [0; 1]);
    });
    let failed = ask(
        &address.to_string(),
        &check(get("/"), Duration::from_millis(50)),
        None,
    );
    let failed = failed.unwrap_err();
    assert!(failed.timed_out, "{failed:?}");
    assert_eq!(failed.reason, "no answer within 50ms");
    assert!(seen.recv_timeout(LONG).is_ok());
}

#[test]
fn a_body_without_an_end_does_not_hold_up_the_verdict() {
    let (address, _seen) = server(|stream| {
        let _ =
            stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n");
        let _ = stream.read(&mut [0; 1]);
    });
    ask(&address.to_string(), &check(get("/"), LONG), None).unwrap();
}

#[test]
fn a_connection_is_enough_for_tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut check = check(Probe::Tcp, LONG);
    ask(&address.to_string(), &check, None).unwrap();
    // At another port than the target's own.
    check.port = Some(address.port());
    ask("127.0.0.1:9", &check, None).unwrap();
    drop(listener);
    assert_eq!(
        reason(ask("127.0.0.1:9", &check, None)),
        "connection refused"
    );
}

#[test]
fn unix_sockets_are_asked_too() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("a.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let target = format!("unix:{}", path.display());
    let mut check = check(Probe::Tcp, LONG);
    check.port = Some(9);
    ask(&target, &check, None).unwrap();
    check.probe = get("/");
    let server = std::thread::spawn(move || {
        listener.accept().unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut part = [0; 1024];
        let length = stream.read(&mut part).unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            .unwrap();
        String::from_utf8_lossy(&part[..length]).to_ascii_lowercase()
    });
    ask(&target, &check, Some("web.test:80")).unwrap();
    assert!(server.join().unwrap().contains("host: localhost\r\n"));
}

#[test]
fn grpc_needs_http_2() {
    let probe = Probe::Grpc {
        service: String::new(),
        host: None,
    };
    let (address, _seen) = answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let failed = ask(&address.to_string(), &check(probe, LONG), None).unwrap_err();
    assert!(
        failed.reason.starts_with("no answer: ") || failed.reason.starts_with("no connection: "),
        "{failed:?}"
    );
}
