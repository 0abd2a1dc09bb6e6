//! Upstreams that are down, close idle connections, or take their time.

use std::io::Write;

use crate::support::client::{Connection, get, post};
use crate::support::launch::serving;
use crate::support::nginx::Nginx;
use crate::support::ports;
use crate::support::upstream::{Action, Upstream, ok, response};
use crate::support::wait::{Gate, SOON, until};

const ROUTES: &str = r#"route("/{*rest}").to("web");"#;

#[test]
fn a_pool_that_is_down_is_502_and_counted() {
    let closed = ports::free([127, 0, 0, 1].into(), 1)[0];
    let proxy = serving(ROUTES).pool("web", closed).start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    assert_eq!(connection.send(&get("/x")).unwrap().status, 502);
    let refused = [("pool", "web"), ("reason", "refused")];
    assert!(proxy.metric("upstream_connect_failures_total", &refused) >= 1.0);
    // It comes back: nothing is remembered against it.
    let web = Upstream::start_at(closed, |_| ok("back")).unwrap();
    assert_eq!(proxy.text("/x"), "back");
    drop(web);
}

#[test]
fn one_target_of_two_that_is_down_is_passed_over() {
    let closed = ports::free([127, 0, 0, 1].into(), 1)[0];
    let web = Upstream::fixed("up");
    let proxy = serving(ROUTES)
        .settings(&format!(
            "[pools.web]\ntargets = [\"{closed}\", \"{}\"]\nbalance = \"round_robin\"",
            web.address()
        ))
        .start();
    for _ in 0..10 {
        assert_eq!(proxy.text("/x"), "up");
    }
    // Nothing was sent when the connection failed, so a POST may go to the other target too.
    for _ in 0..10 {
        assert_eq!(proxy.send(&post("/x", "payload")).text(), "up");
    }
    assert_eq!(web.hits(), 20);
    assert!(
        web.requests()[10..]
            .iter()
            .all(|seen| seen.body == b"payload")
    );
}

#[test]
fn upstream_connections_are_used_again() {
    let web = Upstream::fixed("ok");
    let proxy = serving(ROUTES).pool("web", web.address()).start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    for _ in 0..20 {
        assert_eq!(connection.send(&get("/x")).unwrap().status, 200);
    }
    for _ in 0..20 {
        assert_eq!(proxy.get("/x").status, 200);
    }
    // One at a time is one connection for each worker, and one more where a request came while the
    // last was still being given back.
    assert!(web.connections() <= 4, "{} connections", web.connections());
    until("the connections to be counted", SOON, || {
        let counted = |reused| {
            let labels = [("pool", "web"), ("reused", reused)];
            proxy.metric("upstream_connections_total", &labels)
        };
        let (reused, fresh) = (counted("true"), counted("false"));
        reused + fresh == 40.0 && fresh == web.connections() as f64
    });
}

#[test]
fn upstream_connections_that_close_unannounced_cost_no_get() {
    let web = Upstream::start(|_| Action::BytesThenClose(response(200, &[], "ok")));
    let proxy = serving(ROUTES).pool("web", web.address()).start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    for _ in 0..50 {
        assert_eq!(connection.send(&get("/x")).unwrap().status, 200);
    }
}

/// Answers the first request of each connection and hangs up on the second: what a proxy meets
/// when the upstream closes an idle connection while the next request is on its way.
fn closes_when_used_again() -> Upstream {
    Upstream::start(|seen| match seen.nth {
        0 => ok("ok"),
        _ => Action::Hangup,
    })
}

#[test]
fn a_get_on_a_connection_that_just_closed_is_sent_again() {
    let web = closes_when_used_again();
    let proxy = serving(ROUTES).pool("web", web.address()).start();
    for _ in 0..10 {
        assert_eq!(proxy.get("/x").status, 200);
    }
    assert!(web.hits() > 10, "no connection was used again");
}

#[test]
fn a_post_is_never_sent_twice() {
    let web = closes_when_used_again();
    let proxy = serving(ROUTES).pool("web", web.address()).start();
    assert_eq!(proxy.get("/warm").status, 200);
    let mut answered = 0;
    for number in 0..10 {
        let status = proxy.send(&post(&format!("/p/{number}"), "once")).status;
        assert!(matches!(status, 200 | 502), "{status}");
        answered += usize::from(status == 200);
        let target = format!("/p/{number}");
        let copies = web
            .requests()
            .iter()
            .filter(|seen| seen.target() == target)
            .count();
        assert_eq!(copies, 1, "{target} arrived {copies} times");
    }
    assert!(answered < 10, "no POST met a closed connection");
}

#[test]
fn an_answer_that_breaks_off_is_not_completed() {
    let web = Upstream::start(|_| {
        Action::Write(Box::new(|stream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nten bytes.")
        }))
    });
    let proxy = serving(ROUTES).pool("web", web.address()).start();
    let broken = get("/x").try_send(proxy.address());
    assert!(broken.is_err(), "a cut body was given as whole: {broken:?}");
}

#[test]
fn a_response_that_is_no_http_is_502() {
    let web =
        Upstream::start(|_| Action::BytesThenClose(b"220 mail.example.com ESMTP\r\n".to_vec()));
    let proxy = serving(ROUTES).pool("web", web.address()).start();
    assert_eq!(proxy.get("/x").status, 502);
}

#[test]
fn a_read_timeout_of_the_pool_is_504() {
    let gate = Gate::new();
    let held = gate.clone();
    let web = Upstream::start(move |_| {
        held.pass(SOON);
        ok("late")
    });
    let proxy = serving(ROUTES)
        .pool("web", web.address())
        .settings("[pools.web.timeouts]\nread = \"500ms\"")
        .start();
    assert_eq!(proxy.get("/x").status, 504);
    gate.open();
}

#[test]
fn a_real_nginx_behind_the_proxy() {
    let nginx = Nginx::start(
        [127, 0, 0, 1].into(),
        "location / { default_type text/plain; return 200 \"$request_method $request_uri $host\"; }\n\
         location /moved { return 301 /there; }\n\
         location /nothing { return 204; }",
    );
    let proxy = serving(ROUTES).pool("web", nginx.address()).start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    for _ in 0..3 {
        let page = connection.send(&get("/page?x=1")).unwrap();
        assert_eq!(
            (page.status, page.text().as_str()),
            (200, "GET /page?x=1 edge.test")
        );
        let posted = connection.send(&post("/form", "a=1")).unwrap();
        assert_eq!(posted.text(), "POST /form edge.test");
        assert_eq!(connection.send(&get("/moved")).unwrap().status, 301);
        assert_eq!(connection.send(&get("/nothing")).unwrap().status, 204);
    }
}
