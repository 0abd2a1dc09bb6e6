//! `.concurrency` and `concurrency(n)`: slots that are held to a request's last byte and always given
//! back.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::JoinHandle;

use crate::support::client::{Connection, Response, get};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::{Action, Upstream, ok};
use crate::support::wait::{Gate, SOON, until};

/// Answers `/held...` when the gate opens, `/cut...` with half a response, `/never` not at all, and
/// the rest at once.
fn upstream(gate: &Gate) -> Upstream {
    let gate = gate.clone();
    Upstream::start(move |seen| {
        let target = seen.target();
        if target.starts_with("/held") {
            gate.pass(3 * SOON);
        }
        if target.starts_with("/cut") {
            let half = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";
            return Action::BytesThenClose(half.to_vec());
        }
        if target.starts_with("/never") {
            return Action::Hangup;
        }
        if target.starts_with("/slow") {
            let gate = gate.clone();
            return Action::Write(Box::new(move |stream| {
                let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
                stream.write_all(format!("{head}2\r\nab\r\n").as_bytes())?;
                gate.pass(3 * SOON);
                stream.write_all(b"2\r\ncd\r\n0\r\n\r\n")
            }));
        }
        ok("ok")
    })
}

fn send(proxy: &Proxy, target: &str) -> JoinHandle<std::io::Result<Response>> {
    let address = proxy.address();
    let request = get(target);
    std::thread::spawn(move || request.try_send(address))
}

const ROUTES: &str = r#"
    route("/free").respond(|req| respond(200, (2 - SLOTS.in_use("/{*rest}")).to_string()));
    route("/{*rest}").concurrency(SLOTS).on_response(|req, res| {
        if req.query("fail") == "response" { throw "on purpose"; }
    }).on_request(|req| {
        if req.query("fail") == "request" { throw "on purpose"; }
    }).to("web");
"#;

fn serve(web: &Upstream) -> Proxy {
    serving(&format!("const SLOTS = concurrency(2); {ROUTES}"))
        .settings("[server]\nthreads = 2")
        .pool("web", web.address())
        .start()
}

fn until_free(proxy: &Proxy) {
    until("all slots to be free", SOON, || proxy.text("/free") == "2");
}

#[test]
fn no_more_than_the_bound_are_served_at_a_time() {
    let gate = Gate::new();
    let web = upstream(&gate);
    let proxy = serve(&web);
    let held = [send(&proxy, "/held/1"), send(&proxy, "/held/2")];
    web.wait_hits(2, SOON);
    assert_eq!(proxy.text("/free"), "0");
    let refused = proxy.get("/x");
    assert_eq!(refused.status, 503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(web.hits(), 2);
    gate.open();
    for one in held {
        assert_eq!(one.join().unwrap().unwrap().status, 200);
    }
    until_free(&proxy);
    assert_eq!(proxy.get("/x").status, 200);
    let labels = [("route", "/{*rest}"), ("gate", "concurrency")];
    assert_eq!(proxy.metric("gate_refusals_total", &labels), 1.0);
    until("no key without slots to be kept", SOON, || {
        proxy.metric("state_keys", &[("kind", "concurrency"), ("name", "SLOTS")]) == 0.0
    });
}

#[test]
fn a_slot_is_held_to_the_last_byte() {
    let gate = Gate::new();
    let web = upstream(&gate);
    let proxy = serve(&web);
    let mut slow = TcpStream::connect(proxy.address()).unwrap();
    slow.set_read_timeout(Some(SOON)).unwrap();
    slow.write_all(&get("/slow").bytes()).unwrap();
    let mut read = Vec::new();
    while !read.ends_with(b"ab\r\n") {
        let mut byte = [0];
        slow.read_exact(&mut byte).unwrap();
        read.extend(byte);
    }
    // All but the end of the body is there.
    assert_eq!(proxy.text("/free"), "1");
    gate.open();
    let end = b"2\r\ncd\r\n0\r\n\r\n";
    let mut rest = vec![0; end.len()];
    slow.read_exact(&mut rest).unwrap();
    assert_eq!(rest, end);
    until_free(&proxy);
}

#[test]
fn a_slot_comes_back_whatever_way_a_request_ends() {
    let gate = Gate::new();
    let web = upstream(&gate);
    let proxy = serve(&web);
    // More often than there are slots.
    for round in 0..3 {
        // The client leaves while the upstream thinks.
        let mut leaving = Connection::open(proxy.address()).unwrap();
        let hits = web.hits();
        leaving.write(&get("/held").bytes()).unwrap();
        web.wait_hits(hits + 1, SOON);
        drop(leaving);
        until_free(&proxy);
        for (target, expected) in [
            ("/never", Some(502)),
            ("/cut", None),
            ("/x?fail=request", Some(500)),
            ("/x?fail=response", Some(500)),
            ("/x", Some(200)),
        ] {
            let status = get(target).try_send(proxy.address()).ok();
            let status = status.map(|response| response.status);
            assert_eq!(status, expected, "{target} in round {round}");
            until_free(&proxy);
        }
    }
    gate.open();
}

#[test]
fn requests_of_two_programs_count_together() {
    let gate = Gate::new();
    let web = upstream(&gate);
    let proxy = serve(&web);
    let held = send(&proxy, "/held/1");
    web.wait_hits(1, SOON);
    let one = format!("const SLOTS = concurrency(1); {ROUTES} route(\"/new\").respond(200);");
    std::fs::write(proxy.file("routes.rhai"), one).unwrap();
    assert_eq!(proxy.reload().0, 200);
    until("the new program to serve", SOON, || {
        proxy.get("/new").status == 200
    });
    assert_eq!(
        proxy.get("/x").status,
        503,
        "the old request's slot is forgotten"
    );
    gate.open();
    assert_eq!(held.join().unwrap().unwrap().status, 200);
    until_free(&proxy);
    assert_eq!(proxy.get("/x").status, 200);
}

#[test]
fn each_key_has_slots_of_its_own() {
    let gate = Gate::new();
    let web = upstream(&gate);
    let proxy = serving(
        "route(\"/{*rest}\").concurrency(1, #{ key: \"query:k\", status: 429 }).to(\"web\");",
    )
    .pool("web", web.address())
    .start();
    let held = send(&proxy, "/held?k=a");
    web.wait_hits(1, SOON);
    assert_eq!(proxy.get("/x?k=a").status, 429);
    assert_eq!(proxy.get("/x?k=b").status, 200);
    gate.open();
    assert_eq!(held.join().unwrap().unwrap().status, 200);
}

#[test]
fn a_hook_takes_a_slot_for_its_request() {
    let gate = Gate::new();
    let web = upstream(&gate);
    let proxy = serving(
        r#"
        const REPORTS = concurrency(1);
        route("/in-use").respond(|req| respond(200, REPORTS.in_use("a").to_string()));
        route("/many").respond(|req| {
            for n in 0..20 { if !REPORTS.acquire(n) { return respond(503); } }
            respond(200)
        });
        route("/{*rest}").on_request(|req| {
            if !REPORTS.acquire(req.query("k")) { return respond(503, "busy\n").header("retry-after", "5"); }
        }).to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    let held = send(&proxy, "/held?k=a");
    web.wait_hits(1, SOON);
    assert_eq!(proxy.text("/in-use"), "1");
    let refused = proxy.get("/x?k=a");
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("5"))
    );
    assert_eq!(proxy.get("/x?k=b").status, 200);
    // No key is no key that all who lack it share.
    assert_eq!(proxy.get("/x").status, 500);
    gate.open();
    assert_eq!(held.join().unwrap().unwrap().status, 200);
    until("the slot to be free", SOON, || proxy.text("/in-use") == "0");
    assert_eq!(proxy.get("/many").status, 500);
    proxy.log.wait("a request can hold 16 slots at most", SOON);
    until("all of them to come back", SOON, || {
        proxy.metric(
            "state_keys",
            &[("kind", "concurrency"), ("name", "REPORTS")],
        ) == 0.0
    });
}
