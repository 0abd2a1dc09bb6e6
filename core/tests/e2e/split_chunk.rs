//! Case split-chunk: what a hook replaces in a response is split over two chunks
//! (lua-nginx-module 1813).

use std::io::Write;
use std::net::TcpStream;

use crate::support::client::{Connection, get};
use crate::support::launch::serving;
use crate::support::upstream::{Action, Upstream, ok};
use crate::support::wait::{Gate, SOON};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

fn chunk(stream: &mut TcpStream, text: &str) -> std::io::Result<()> {
    write!(stream, "{:x}\r\n{text}\r\n", text.len())
}

/// Sends the first chunk at once, the second when the gate opens.
fn in_two(gate: &Gate) -> Upstream {
    let gate = gate.clone();
    Upstream::start(move |_| {
        let gate = gate.clone();
        Action::Write(Box::new(move |stream| {
            stream.write_all(HEAD)?;
            chunk(stream, "This is a will-be-repla")?;
            assert!(gate.pass(SOON));
            chunk(stream, "ced-text, ok")?;
            stream.write_all(b"0\r\n\r\n")
        }))
    })
}

const HOOKS: &str = r#"
    const OLD = regex("will-be-replaced-text");
    fn renew(req, res) { res.set_body(OLD.replace_all(res.body(), "replacement")); }
    route("/whole").on_response_body(renew).to("web");
    route("/pieces").on_response_body(#{ stream: true, hold: "4KiB" }, renew).to("web");
"#;

#[test]
fn the_replacement_is_there_once() {
    for target in ["/whole", "/pieces"] {
        let gate = Gate::new();
        let web = in_two(&gate);
        let proxy = serving(HOOKS).pool("web", web.address()).start();
        let mut connection = Connection::open(proxy.address()).unwrap();
        connection.write(&get(target).bytes()).unwrap();
        web.wait_hits(1, SOON);
        gate.open();
        let response = connection.read_response("GET").unwrap();
        assert_eq!(response.text(), "This is a replacement, ok", "{target}");
        // The framing was right to the last byte: the connection can be used again.
        let again = connection.send(&get("/none")).unwrap();
        assert_eq!(again.status, 404, "{target}");
    }
}

#[test]
fn pieces_are_passed_on_as_they_come() {
    let gate = Gate::new();
    let waits = gate.clone();
    let web = Upstream::start(move |_| {
        let gate = waits.clone();
        Action::Write(Box::new(move |stream| {
            stream.write_all(HEAD)?;
            chunk(stream, "event: one\n")?;
            // Only sent once the client has the first one.
            assert!(gate.pass(SOON));
            chunk(stream, "event: two\n")?;
            stream.write_all(b"0\r\n\r\n")
        }))
    });
    let proxy = serving(
        r#"
        route("/").on_response_body(#{ stream: true }, |req, res| {
            let text = res.body().text();
            text.replace("event", if res.is_last { "last" } else { "piece" });
            res.set_body(text);
        }).to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    connection.write(&get("/").bytes()).unwrap();
    connection.read_until(b"piece: one\n\r\n");
    gate.open();
    connection.read_until(b"0\r\n\r\n");
}

#[test]
fn a_failure_cuts_what_has_begun_and_answers_what_has_not() {
    let gate = Gate::new();
    let waits = gate.clone();
    let web = Upstream::start(move |seen| match seen.target().as_str() {
        "/pieces" => {
            let gate = waits.clone();
            Action::Write(Box::new(move |stream| {
                stream.write_all(HEAD)?;
                chunk(stream, "good")?;
                assert!(gate.pass(SOON));
                chunk(stream, "bad")?;
                stream.write_all(b"0\r\n\r\n")
            }))
        }
        _ => ok("bad"),
    });
    let proxy = serving(
        r#"
        fn fails(req, res) { if res.body().text() == "bad" { res.body().json() } }
        fn answers(req, res) { return respond(502, "no"); }
        route("/whole").on_response_body(fails).to("web");
        route("/pieces").on_response_body(#{ stream: true }, fails).to("web");
        route("/answers").on_response_body(answers).to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    assert_eq!(proxy.get("/whole").status, 500);
    let answered = proxy.get("/answers");
    assert_eq!((answered.status, answered.text().as_str()), (502, "no"));
    let mut connection = Connection::open(proxy.address()).unwrap();
    connection.write(&get("/pieces").bytes()).unwrap();
    connection.read_until(b"good\r\n");
    gate.open();
    // No end of the chunks: it can't be taken for complete.
    assert_eq!(connection.read_to_end(), b"");
    let failures = proxy.metric("script_failures_total", &[("hook", "on_response_body")]);
    assert_eq!(failures as u64, 2);
}
