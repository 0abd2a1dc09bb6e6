//! `.mirror`: copies of requests for another pool, of which the client feels nothing.

use std::io::{Read, Write};
use std::time::Duration;

use crate::support::client::{Connection, get, post, request};
use crate::support::launch::{Builder, serving};
use crate::support::proxy::Proxy;
use crate::support::upstream::{Action, Seen, Upstream, ok};
use crate::support::wait::{Gate, SOON, until};

fn mirroring(routes: &str, web: &Upstream, shadow: &Upstream) -> Builder {
    serving(routes)
        .pool("web", web.address())
        .pool("shadow", shadow.address())
}

fn outcome(proxy: &Proxy, outcome: &str) -> f64 {
    proxy.metric("mirror_total", &[("outcome", outcome)])
}

#[track_caller]
fn wait_outcome(proxy: &Proxy, name: &str, count: usize) {
    until(&format!("{count} times {name}"), SOON, || {
        outcome(proxy, name) == count as f64
    });
}

#[test]
fn the_copy_is_what_the_upstream_gets() {
    let (web, shadow) = (Upstream::fixed("web"), Upstream::fixed("shadow"));
    let routes = r#"
        route("/api/{*rest}")
            .on_request(|req| req.set_header("x-hook", "yes"))
            .rewrite("/v2/{rest}")
            .set_header("x-filter", "1")
            .mirror("shadow", 100)
            .to("web");
    "#;
    let proxy = mirroring(routes, &web, &shadow).start();
    let sent = post("/api/orders?a=b", "a body")
        .header("Cookie", "id=7")
        .header("X-Two", "1");
    assert_eq!(proxy.send(&sent).text(), "web");
    shadow.wait_hits(1, SOON);
    let (original, copy) = (web.only_request(), shadow.only_request());
    assert_eq!(
        (copy.method(), copy.target()),
        ("POST".into(), "/v2/orders?a=b".into())
    );
    assert_eq!(copy.body, b"a body");
    for name in [
        "host",
        "cookie",
        "x-two",
        "x-hook",
        "x-filter",
        "x-forwarded-for",
        "content-length",
    ] {
        assert!(original.header(name).is_some(), "{name}");
        assert_eq!(copy.headers(name), original.headers(name), "{name}");
    }
    assert_eq!(copy.headers("x-edgewright-mirror"), ["1"]);
    assert_eq!(original.header("x-edgewright-mirror"), None);
    wait_outcome(&proxy, "ok", 1);
    // Nothing but its own metrics tells of it.
    let labels = [("route", "/api/{*rest}"), ("status", "200")];
    assert_eq!(proxy.metric("requests_total", &labels), 1.0);
    assert_eq!(proxy.metric("mirrors_in_flight", &[]), 0.0);
    assert_eq!(proxy.log.count("failed"), 0, "{}", proxy.log.text());
}

#[test]
fn a_body_that_hooks_have_made_is_copied() {
    let (web, shadow) = (Upstream::fixed("web"), Upstream::fixed("shadow"));
    let routes = r#"
        route("/{*rest}")
            .on_request_body(|req| req.set_body("made of " + req.body().text()))
            .mirror("shadow", #{ body: "20B" })
            .to("web");
    "#;
    let proxy = mirroring(routes, &web, &shadow).start();
    proxy.send(&post("/x", "it"));
    proxy.send(&request("PUT", "/none"));
    shadow.wait_hits(2, SOON);
    let mut bodies: Vec<_> = shadow
        .requests()
        .into_iter()
        .map(|seen| seen.body)
        .collect();
    bodies.sort();
    assert_eq!(bodies, [&b"made of "[..], b"made of it"]);
    proxy.send(&post("/x", "something longer"));
    wait_outcome(&proxy, "body", 1);
    assert_eq!((web.hits(), shadow.hits()), (3, 2));
}

#[test]
fn a_share_is_a_share() {
    let (web, shadow) = (Upstream::fixed("web"), Upstream::fixed("shadow"));
    let routes = r#"
        route("/some").mirror("shadow", #{ percent: 25 }).to("web");
        route("/none").mirror("shadow", 0).to("web");
    "#;
    let limits = "[limits]\nmirrors = 10000";
    let proxy = mirroring(routes, &web, &shadow).settings(limits).start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    for _ in 0..400 {
        assert_eq!(connection.send(&get("/some")).unwrap().status, 200);
        assert_eq!(connection.send(&get("/none")).unwrap().status, 200);
    }
    until("all copies are done", SOON, || {
        proxy.metric("mirrors_in_flight", &[]) == 0.0
    });
    // 100 are expected; a fair draw is outside of 60..=140 about once in 250,000 runs.
    let hits = shadow.hits();
    assert!((60..=140).contains(&hits), "{hits} of 400 at 25 %");
    assert!(
        shadow
            .requests()
            .iter()
            .all(|seen| seen.target() == "/some")
    );
    assert_eq!(outcome(&proxy, "ok"), hits as f64);
}

#[test]
fn a_shadow_that_does_not_answer_delays_nobody_and_has_few_places() {
    let web = Upstream::fixed("web");
    let gate = Gate::new();
    let held = gate.clone();
    let shadow = Upstream::start(move |_| {
        held.pass(2 * SOON);
        ok("late")
    });
    let routes = r#"
        route("/wait").mirror("shadow", #{ timeout: "60s" }).to("web");
        route("/late").mirror("shadow", #{ timeout: "200ms" }).to("web");
    "#;
    let proxy = mirroring(routes, &web, &shadow)
        .settings("[limits]\nmirrors = 2")
        .start();
    proxy.text("/late");
    wait_outcome(&proxy, "timeout", 1);
    for _ in 0..10 {
        assert_eq!(proxy.text("/wait"), "web");
    }
    assert_eq!(outcome(&proxy, "dropped"), 8.0);
    let limit = [("limit", "mirrors")];
    assert_eq!(proxy.metric("limit_hits_total", &limit), 8.0);
    assert_eq!(proxy.metric("mirrors_in_flight", &[]), 2.0);
    gate.open();
    wait_outcome(&proxy, "ok", 2);
    assert_eq!(proxy.metric("mirrors_in_flight", &[]), 0.0);
    proxy.text("/wait");
    wait_outcome(&proxy, "ok", 3);
}

#[test]
fn a_long_body_is_not_copied() {
    let (web, shadow) = (Upstream::fixed("web"), Upstream::fixed("shadow"));
    let routes = r#"route("/{*rest}").mirror("shadow", #{ body: "1KiB" }).to("web");"#;
    let proxy = mirroring(routes, &web, &shadow).start();
    assert_eq!(proxy.send(&post("/x", "a".repeat(1025))).text(), "web");
    assert_eq!(outcome(&proxy, "body"), 1.0);
    // One that doesn't say how long it is.
    let chunk = format!("400\r\n{}\r\n", "a".repeat(1024));
    let mut connection = Connection::open(proxy.address()).unwrap();
    let head = "POST /x HTTP/1.1\r\nHost: edge.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    connection
        .write(format!("{head}{chunk}1\r\na\r\n0\r\n\r\n").as_bytes())
        .unwrap();
    assert_eq!(connection.read_response("POST").unwrap().text(), "web");
    wait_outcome(&proxy, "body", 2);
    connection
        .write(format!("{head}{chunk}0\r\n\r\n").as_bytes())
        .unwrap();
    assert_eq!(connection.read_response("POST").unwrap().text(), "web");
    wait_outcome(&proxy, "ok", 1);
    let copy = shadow.only_request();
    assert_eq!(copy.body, "a".repeat(1024).into_bytes());
    assert_eq!(copy.headers("transfer-encoding"), [""; 0]);
    let bodies: Vec<usize> = web.requests().iter().map(|seen| seen.body.len()).collect();
    assert_eq!(bodies, [1025, 1025, 1024]);
}

#[test]
fn a_shadow_that_fails_is_not_asked_again() {
    let web = Upstream::fixed("web");
    // The second request of a connection gets no answer: a retry would show as a third.
    let shadow = Upstream::start(|seen| match seen.nth {
        0 => ok("first"),
        _ => Action::Hangup,
    });
    let routes = r#"
        route("/kept").mirror("shadow", 100).to("web");
        route("/down").mirror("down", 100).to("web");
    "#;
    let down = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = down.local_addr().unwrap();
    drop(down);
    let proxy = mirroring(routes, &web, &shadow)
        .pool("down", nobody)
        .settings("[server]\nthreads = 1")
        .start();
    assert_eq!(proxy.text("/kept"), "web");
    wait_outcome(&proxy, "ok", 1);
    assert_eq!(proxy.text("/kept"), "web");
    wait_outcome(&proxy, "broken", 1);
    assert_eq!(shadow.hits(), 2);
    assert_eq!(proxy.text("/down"), "web");
    wait_outcome(&proxy, "connect", 1);
    assert_eq!(proxy.metric("mirrors_in_flight", &[]), 0.0);
}

#[test]
fn attempts_make_one_copy() {
    // A kept connection that is closed when it is used again: the proxy sends the request anew.
    let web = Upstream::start(|seen| match (seen.nth, seen.method().as_str()) {
        (1.., "PUT") => Action::Hangup,
        _ => ok("web"),
    });
    let shadow = Upstream::fixed("shadow");
    let routes = r#"route("/{*rest}").mirror("shadow", 100).to("web");"#;
    let proxy = mirroring(routes, &web, &shadow)
        .settings("[server]\nthreads = 1")
        .start();
    assert_eq!(proxy.text("/warm"), "web");
    let put = request("PUT", "/x").body("once");
    assert_eq!(proxy.send(&put).text(), "web");
    wait_outcome(&proxy, "ok", 2);
    let puts = |seen: Vec<Seen>| {
        seen.into_iter()
            .filter(|seen| seen.method() == "PUT")
            .count()
    };
    assert_eq!(puts(web.requests()), 2);
    // The two copies may overtake each other.
    let mut copies: Vec<_> = shadow
        .requests()
        .into_iter()
        .map(|seen| seen.body)
        .collect();
    copies.sort();
    assert_eq!(copies, [&b""[..], b"once"]);
}

#[test]
fn what_is_refused_or_never_whole_is_not_copied() {
    let (web, shadow) = (Upstream::fixed("web"), Upstream::fixed("shadow"));
    let routes = r#"
        route("/refused").on_request(|req| respond(403)).mirror("shadow", 100).to("web");
        route("/{*rest}").mirror("shadow", 100).to("web");
    "#;
    let proxy = mirroring(routes, &web, &shadow).start();
    assert_eq!(proxy.get("/refused").status, 403);
    let mut leaving = Connection::open(proxy.address()).unwrap();
    leaving
        .write(b"POST /x HTTP/1.1\r\nHost: edge.test\r\nContent-Length: 10\r\n\r\nhalf")
        .unwrap();
    until("the request is at work", SOON, || {
        proxy.metric("mirrors_in_flight", &[]) == 1.0
    });
    drop(leaving);
    wait_outcome(&proxy, "incomplete", 1);
    assert_eq!(proxy.metric("mirrors_in_flight", &[]), 0.0);
    assert_eq!(shadow.hits(), 0);
}

#[test]
fn upgrades_are_not_copied_and_100_continue_is_not_asked_for_twice() {
    let web = Upstream::start(|seen| {
        if seen.header("upgrade").is_some() {
            Action::Write(Box::new(|stream| {
                stream.write_all(
                    b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
                )?;
                stream.write_all(b"hello")?;
                // Until the tunnel ends.
                stream.read(&mut [0]).map(drop)
            }))
        } else {
            ok("web")
        }
    });
    let shadow = Upstream::fixed("shadow");
    let routes = r#"route("/{*rest}").mirror("shadow", 100).to("web");"#;
    let proxy = mirroring(routes, &web, &shadow).start();
    let mut upgrading = Connection::open(proxy.address()).unwrap();
    let upgrade =
        "GET /x HTTP/1.1\r\nHost: edge.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    upgrading.write(upgrade.as_bytes()).unwrap();
    assert_eq!(upgrading.read_response("GET").unwrap().status, 101);
    wait_outcome(&proxy, "skipped", 1);

    let expecting = post("/x", "a body").header("Expect", "100-continue");
    assert_eq!(proxy.send(&expecting).text(), "web");
    wait_outcome(&proxy, "ok", 1);
    let copy = shadow.only_request();
    assert_eq!(copy.body, b"a body");
    assert_eq!(shadow.only_request().header("expect"), None);
}

#[test]
fn copies_do_not_go_in_circles() {
    let (web, shadow) = (Upstream::fixed("web"), Upstream::fixed("shadow"));
    let routes = r#"route("/{*rest}").mirror("shadow", 100).to("web");"#;
    let proxy = mirroring(routes, &web, &shadow).start();
    let itself = proxy.address().to_string();
    let settings = proxy
        .settings()
        .replace(&shadow.address().to_string(), &itself);
    std::fs::write(proxy.file("edgewright.toml"), settings).unwrap();
    until("the pool is the proxy itself", SOON, || {
        proxy.reload();
        proxy.status()["pools"].to_string().matches(&itself).count() >= 2
    });
    assert_eq!(proxy.text("/x"), "web");
    wait_outcome(&proxy, "skipped", 1);
    wait_outcome(&proxy, "ok", 3);
    assert_eq!((web.hits(), shadow.hits()), (4, 0));
}

#[test]
fn a_shadow_does_not_keep_the_process_from_ending() {
    let web = Upstream::fixed("web");
    let gate = Gate::new();
    let held = gate.clone();
    let shadow = Upstream::start(move |_| {
        held.pass(2 * SOON);
        ok("late")
    });
    let routes = r#"route("/{*rest}").mirror("shadow", #{ timeout: "60s" }).to("web");"#;
    let mut proxy = mirroring(routes, &web, &shadow)
        .settings("[server.shutdown]\ndrain = \"1s\"")
        .start();
    assert_eq!(proxy.text("/x"), "web");
    shadow.wait_hits(1, SOON);
    proxy.signal("TERM");
    let (status, took) = proxy.wait_exit(SOON);
    assert_eq!(status.code(), Some(0), "{}", proxy.log.text());
    assert!(took < Duration::from_secs(15), "after {took:?}");
    // Nobody was cut that anybody would miss.
    assert_eq!(proxy.log.count("are cut"), 0, "{}", proxy.log.text());
}

#[test]
fn a_copy_is_finished_before_the_process_ends() {
    let web = Upstream::fixed("web");
    let gate = Gate::new();
    let held = gate.clone();
    let shadow = Upstream::start(move |_| {
        held.pass(SOON);
        ok("late")
    });
    let routes = r#"route("/{*rest}").mirror("shadow", #{ timeout: "60s" }).to("web");"#;
    let mut proxy = mirroring(routes, &web, &shadow)
        .settings("[server.shutdown]\ndrain = \"60s\"")
        .start();
    assert_eq!(proxy.text("/x"), "web");
    shadow.wait_hits(1, SOON);
    proxy.signal("TERM");
    proxy.log.wait("shutting down", SOON);
    until("the listener is closed", SOON, || {
        std::net::TcpStream::connect(proxy.address()).is_err()
    });
    assert!(proxy.running());
    gate.open();
    let (status, _) = proxy.wait_exit(SOON);
    assert_eq!(status.code(), Some(0));
    assert_eq!(proxy.log.count("drained"), 1);
}
