//! `first_byte` and `request` of `[pools.NAME.timeouts]`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::client::{Connection, get};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::{Action, Upstream, ok};
use crate::support::wait::{Gate, SOON, until};

fn proxy(web: &Upstream, timeouts: &str) -> Proxy {
    serving(r#"route("/{*rest}").to("web");"#)
        .pool("web", web.address())
        .settings(&format!("[pools.web.timeouts]\n{timeouts}"))
        .start()
}

fn failed(proxy: &Proxy, reason: &str) -> f64 {
    let labels = [("pool", "web"), ("reason", reason)];
    proxy.metric("upstream_errors_total", &labels)
}

fn until_idle(proxy: &Proxy) {
    until("nothing to be in flight", SOON, || {
        proxy.metric("upstream_requests_in_flight", &[]) == 0.0
            && proxy.metric("requests_in_flight", &[]) == 0.0
    });
}

#[test]
fn no_first_byte_is_504() {
    let gate = Gate::new();
    let held = gate.clone();
    let web = Upstream::start(move |_| {
        held.pass(3 * SOON);
        ok("late")
    });
    let proxy = proxy(&web, "first_byte = \"300ms\"");
    let late = proxy.get("/x");
    assert_eq!(
        (late.status, late.text().as_str()),
        (504, "504 the upstream did not begin to answer in time\n")
    );
    assert_eq!(failed(&proxy, "first_byte_timeout"), 1.0);
    assert_eq!(web.hits(), 1);
    proxy.log.wait("reason=first_byte_timeout", SOON);
    until_idle(&proxy);
    gate.open();
}

/// The clock begins with the end of the request; and once the header is there, a body may pause.
#[test]
fn an_upload_and_a_slow_body_are_not_counted() {
    let pace = Duration::from_secs(3);
    let web = Upstream::start(move |_| {
        Action::Write(Box::new(move |stream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nsl")?;
            // Longer than the time for the first byte: the pause is what the case is about.
            std::thread::sleep(pace);
            stream.write_all(b"ow")
        }))
    });
    let proxy = proxy(&web, "first_byte = \"2s\"");
    let mut connection = Connection::open(proxy.address()).unwrap();
    connection
        .write(b"POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nab")
        .unwrap();
    std::thread::sleep(pace);
    connection.write(b"cd").unwrap();
    let response = connection.read_response("POST").unwrap();
    assert_eq!((response.status, response.text().as_str()), (200, "slow"));
    assert_eq!(web.only_request().body, b"abcd");
}

#[test]
fn a_request_that_takes_too_long_is_cut_where_it_stands() {
    let gate = Gate::new();
    let held = gate.clone();
    let web = Upstream::start(move |seen| {
        let (held, target) = (held.clone(), seen.target());
        Action::Write(Box::new(move |stream| {
            if target == "/body" {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")?;
            }
            held.pass(3 * SOON);
            Ok(())
        }))
    });
    let proxy = proxy(&web, "request = \"1s\"");
    // Before the response header.
    let late = proxy.get("/header");
    assert_eq!(
        (late.status, late.text().as_str()),
        (504, "504 the request took too long\n")
    );
    // In the middle of the body: it must not look complete.
    assert!(get("/body").try_send(proxy.address()).is_err());
    // While the client sends.
    let mut connection = Connection::open(proxy.address()).unwrap();
    connection
        .write(b"POST /upload HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nab")
        .unwrap();
    assert_eq!(connection.read_response("POST").unwrap().status, 504);
    until("all three to be counted", SOON, || {
        failed(&proxy, "request_timeout") == 3.0
    });
    until_idle(&proxy);
    gate.open();
}

/// Not even a client that takes nothing holds a request up; a write to it has a time of its own, which is longer.
#[test]
fn a_client_that_reads_nothing_is_cut_too() {
    let web = Upstream::start(|_| {
        Action::Write(Box::new(|stream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
            let block = [b'x'; 64 * 1024];
            loop {
                stream.write_all(&block)?;
            }
        }))
    });
    let proxy = proxy(&web, "request = \"1s\"");
    let mut client = TcpStream::connect(proxy.address()).unwrap();
    client.set_read_timeout(Some(SOON)).unwrap();
    client.write_all(&get("/x").bytes()).unwrap();
    let mut first = [0; 12];
    client.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    until_idle(&proxy);
}

#[test]
fn the_connection_of_the_client_serves_the_next_request() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web, "request = \"2s\"\nfirst_byte = \"2s\"");
    let mut connection = Connection::open(proxy.address()).unwrap();
    for _ in 0..3 {
        assert_eq!(connection.send(&get("/x")).unwrap().status, 200);
    }
    // Longer than the first request's time: its clock must be gone.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(connection.send(&get("/x")).unwrap().status, 200);
}
