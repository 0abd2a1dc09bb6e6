use std::io::ErrorKind;
use std::time::Instant;

use super::*;
use crate::client::Client;

/// A test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(20);
/// An answer that never comes within a test.
const FOREVER: Duration = Duration::from_secs(600);

fn ask(client: &mut Client) -> u16 {
    let answer = client.exchange(&load::measured_request()).unwrap();
    assert_eq!(answer.body, load::body().as_bytes());
    answer.status
}

/// Waits until the target has this many requests, answered or not.
fn wait_for_requests(target: &Target, count: u64) {
    let deadline = Instant::now() + PATIENCE;
    while target.requests() < count {
        assert!(Instant::now() < deadline, "no request arrived");
        thread::yield_now();
    }
}

#[test]
fn answers_come_after_the_delay_over_a_kept_connection() {
    let target = Target::start(Duration::from_millis(30)).unwrap();
    let mut client = Client::connect(target.address(), PATIENCE).unwrap();
    let begun = Instant::now();
    assert_eq!((ask(&mut client), ask(&mut client)), (200, 200));
    assert!(begun.elapsed() >= Duration::from_millis(60));
    target.set_delay(Duration::from_millis(200));
    let begun = Instant::now();
    assert_eq!(ask(&mut client), 200);
    assert!(begun.elapsed() >= Duration::from_millis(200));
    assert_eq!((target.requests(), target.checks()), (3, 0));
}

#[test]
fn health_checks_count_apart_and_may_end_the_connection() {
    let target = Target::start(Duration::ZERO).unwrap();
    let mut stream = TcpStream::connect(target.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.contains("Connection: close\r\n"), "{text}");
    assert_eq!((target.requests(), target.checks()), (0, 1));
}

#[test]
fn a_killed_one_refuses_and_resets() {
    let mut target = Target::start(Duration::ZERO).unwrap();
    let mut idle = TcpStream::connect(target.address()).unwrap();
    idle.set_read_timeout(Some(PATIENCE)).unwrap();
    // An exchange, so that the connection has been accepted.
    idle.write_all(&load::measured_request()).unwrap();
    idle.read_exact(&mut vec![0; target.shared.answer.len()])
        .unwrap();

    target.set_delay(FOREVER);
    let mut waiting = TcpStream::connect(target.address()).unwrap();
    waiting.set_read_timeout(Some(PATIENCE)).unwrap();
    waiting.write_all(&load::measured_request()).unwrap();
    wait_for_requests(&target, 2);

    target.kill();
    for stream in [&mut idle, &mut waiting] {
        let error = stream.read(&mut [0; 16]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    let error = TcpStream::connect(target.address()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn one_that_is_back_answers_at_its_old_address() {
    let mut target = Target::start(Duration::ZERO).unwrap();
    for _ in 0..3 {
        let mut client = Client::connect(target.address(), PATIENCE).unwrap();
        assert_eq!(ask(&mut client), 200);
        assert!(target.revive().is_err());
        target.kill();
        target.kill();
        target.revive().unwrap();
    }
    assert_eq!(target.requests(), 3);
}

#[test]
fn nonsense_ends_the_connection() {
    let target = Target::start(Duration::ZERO).unwrap();
    let mut stream = TcpStream::connect(target.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"\x16\x03\x01 no HTTP\r\n\r\n").unwrap();
    // An orderly end or a reset, depending on what it had read.
    match stream.read(&mut [0; 16]) {
        Ok(count) => assert_eq!(count, 0),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    assert_eq!(target.requests(), 0);
}
