//! Upstreams that answer before they have the whole request, and what becomes of both.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

use crate::support::client::{Connection, get};
use crate::support::launch::serving;
use crate::support::upstream::{Action, Upstream, ok};
use crate::support::wait::{Gate, SOON, until};

/// An upstream that answers each request as soon as it has its header.
fn hasty() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                head.extend(byte);
            }
            let _ = stream.write_all(b"HTTP/1.1 401 No\r\nContent-Length: 5\r\n\r\nearly");
            // Open until the proxy closes it.
            let _ = stream.read(&mut byte);
        }
    });
    address
}

/// The client waits for the answer before it sends its body: a response that is kept for hooks is sent.
#[test]
fn an_answer_to_whoever_expects_one_is_not_kept_for_ever() {
    let proxy = serving(
        r#"route("/").on_response_body(|req, res| res.set_body(res.body().text() + "!")).to("web");"#,
    )
    .pool("web", hasty())
    .start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    connection
        .write(b"POST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 40\r\n\r\n")
        .unwrap();
    let response = connection.read_response("POST").unwrap();
    assert_eq!((response.status, response.text().as_str()), (401, "early!"));
    assert!(connection.closed_within(SOON));
}

/// Once the header of a response has come, the rest of another one never follows it.
#[test]
fn nothing_is_sent_again_once_a_response_has_begun() {
    let gate = Gate::new();
    let waits = gate.clone();
    let web = Upstream::start(move |seen| {
        if seen.target() == "/first" {
            return ok("kept open");
        }
        let gate = waits.clone();
        Action::Write(Box::new(move |stream| {
            // Less than it announces, while the client is still sending; then the end.
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nX-First: 1\r\nContent-Length: 100\r\n\r\nAAAA")?;
            gate.pass(SOON);
            Ok(())
        }))
    });
    let proxy = serving(r#"route("/{*rest}").to("web");"#)
        .pool("web", web.address())
        .start();
    assert_eq!(proxy.get("/first").status, 200);
    let mut connection = Connection::open(proxy.address()).unwrap();
    let body = "x".repeat(1000);
    let head = "PUT /second HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000\r\n\r\n";
    connection
        .write(format!("{head}{body}").as_bytes())
        .unwrap();
    web.wait_hits(2, SOON);
    gate.open();
    let all = connection.read_to_end();
    let text = String::from_utf8_lossy(&all);
    assert!(text.matches("HTTP/1.1 ").count() == 1, "{text}");
    assert_eq!(web.hits(), 2);
}

/// What follows a switch of protocols is no body, whatever hooks had of the request.
#[test]
fn a_tunnel_behind_a_body_hook_is_a_tunnel() {
    let web = Upstream::start(|_| {
        Action::Write(Box::new(|stream| {
            let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
            stream.write_all(head.as_bytes())?;
            let mut frame = [0; 6];
            stream.read_exact(&mut frame)?;
            stream.write_all(b"echo ")?;
            stream.write_all(&frame)
        }))
    });
    let proxy = serving(r#"route("/").on_request_body(|req| { req.body().len(); }).to("web");"#)
        .pool("web", web.address())
        .start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    let request = get("/")
        .header("Upgrade", "websocket")
        .header("Connection", "Upgrade");
    connection.write(&request.bytes()).unwrap();
    assert_eq!(connection.read_response("GET").unwrap().status, 101);
    connection.write(b"frame1").unwrap();
    assert_eq!(connection.read_until(b"frame1"), b"echo frame1");
}

/// A hook that gets pieces and fails before anything was sent is a 500, and runs no more.
#[test]
fn a_hook_that_failed_on_a_piece_does_not_see_the_error_page() {
    let web = Upstream::fixed("piece");
    let proxy = serving(
        r#"
        route("/").on_response_body(#{ stream: true }, |req, res| {
            log("info", `runs on ${res.body().len()}`);
            res.body().json()
        }).to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    let response = proxy.get("/");
    assert_eq!(
        (response.status, response.text().as_str()),
        (500, "500 internal error\n")
    );
    // The log is written beside the requests.
    proxy.log.wait("script failure", SOON);
    until("the request to be over", SOON, || {
        proxy.metric("requests_total", &[("route", "/"), ("status", "500")]) == 1.0
    });
    assert_eq!(proxy.log.count("runs on"), 1);
}
