//! The native filters, and their place in the order of things.

use std::time::{Duration, Instant};

use crate::support::client::get;
use crate::support::launch::serving;
use crate::support::upstream::{Upstream, answer, ok};
use crate::support::wait::{Gate, SOON, until};

#[test]
fn strip_prefix_takes_whole_segments_and_keeps_the_query() {
    let web = Upstream::fixed("ok");
    let proxy = serving(
        r#"
        route("/api/{*rest}").strip_prefix("/api").to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    for (sent, arrived) in [
        ("/api/v1/x?q=1&r=%20", "/v1/x?q=1&r=%20"),
        ("/api/a%20b", "/a%20b"),
        ("/api/", "/"),
        ("/api", "/"),
        ("/api?x", "/?x"),
    ] {
        assert_eq!(proxy.get(sent).status, 200);
        assert_eq!(web.last_request().target(), arrived, "{sent}");
    }
    assert_eq!(proxy.get("/apiary").status, 404);
}

#[test]
fn rewrite_fills_captures_in_and_keeps_the_query_unless_it_has_one() {
    let web = Upstream::fixed("ok");
    let proxy = serving(
        r#"
        route("/api/{version}/{*rest}").rewrite("/{rest}").to("web");
        route("/user/{id}").rewrite("/users/show?id={id}").to("web");
        route("/old/{*rest}").rewrite("/new/{rest}").to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    for (sent, arrived) in [
        ("/api/v1/a/b?q=1", "/a/b?q=1"),
        ("/api/v1/a%20b/%C3%A9", "/a%20b/%C3%A9"),
        ("/api/v1", "/"),
        ("/user/7?verbose=1", "/users/show?id=7"),
        ("/old/x/y/", "/new/x/y/"),
        ("/old/q%3Fx", "/new/q%3Fx"),
    ] {
        assert_eq!(proxy.get(sent).status, 200, "{sent}");
        assert_eq!(web.last_request().target(), arrived, "{sent}");
    }
}

#[test]
fn a_rewrite_starts_from_the_path_that_a_hook_sets() {
    let web = Upstream::fixed("ok");
    let proxy = serving(
        r#"
        fn relocate(req) { req.path = "/api/hooked/there"; }
        route("/api/{*rest}").on_request(relocate).strip_prefix("/api").to("web");
        route("/plain/{*rest}").on_request(|req| { req.path = "/set/by/hook"; }).to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    assert_eq!(proxy.get("/api/x?q=1").status, 200);
    assert_eq!(web.last_request().target(), "/hooked/there?q=1");
    assert_eq!(proxy.get("/plain/x?q=2").status, 200);
    assert_eq!(web.last_request().target(), "/set/by/hook?q=2");
}

#[test]
fn request_headers_are_set_and_removed_on_the_way_up() {
    let web = Upstream::fixed("ok");
    let proxy = serving(
        r#"
        route("/{*rest}")
            .set_header("x-site", "one")
            .set_header("x-both", "filter")
            .remove_header("x-secret")
            .on_request(|req| req.set_header("x-both", "hook"))
            .to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    let request = get("/")
        .header("x-site", "client")
        .header("x-site", "client again")
        .header("X-Secret", "1")
        .header("x-kept", "as sent");
    assert_eq!(proxy.send(&request).status, 200);
    let seen = web.only_request();
    assert_eq!(seen.headers("x-site"), ["one"]);
    assert_eq!(seen.headers("x-secret"), Vec::<String>::new());
    assert_eq!(seen.headers("x-kept"), ["as sent"]);
    // Header filters come after the hooks, wherever they are written.
    assert_eq!(seen.headers("x-both"), ["filter"]);
}

#[test]
fn response_headers_are_set_on_the_way_down() {
    let web = Upstream::start(|_| answer(200, &[("X-Served", "upstream"), ("X-Kept", "1")], "ok"));
    let proxy = serving(
        r#"
        route("/{*rest}")
            .set_response_header("x-served", "proxy")
            .set_response_header("x-frame-options", "DENY")
            .to("web");
        route("/local").set_response_header("x-served", "proxy").respond(200, "local");
        "#,
    )
    .pool("web", web.address())
    .start();
    let response = proxy.get("/");
    assert_eq!(response.header("x-served"), Some("proxy"));
    assert_eq!(response.header("x-frame-options"), Some("DENY"));
    assert_eq!(response.header("x-kept"), Some("1"));
    let served = |r: &crate::support::client::Response| {
        r.headers
            .iter()
            .filter(|(n, _)| n.eq_ignore_ascii_case("x-served"))
            .count()
    };
    assert_eq!(served(&response), 1);
    let local = proxy.get("/local");
    assert_eq!(
        (local.status, local.header("x-served")),
        (200, Some("proxy"))
    );
}

#[test]
fn a_timeout_is_504_and_limits_the_time_to_the_header_only() {
    let gate = Gate::new();
    let held = gate.clone();
    let web = Upstream::start(move |seen| {
        if seen.target() == "/slow" {
            held.pass(SOON);
        }
        ok("late")
    });
    // The header comes at once, the rest of the body after more than the timeout.
    let pause = Duration::from_millis(1500);
    let stream = Upstream::start(move |_| {
        crate::support::upstream::Action::Write(Box::new(move |stream| {
            use std::io::Write;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")?;
            // The pace of this upstream is what the test is about.
            std::thread::sleep(pause);
            stream.write_all(b"half")
        }))
    });
    let proxy = serving(
        r#"
        route("/slow").timeout("500ms").to("web");
        route("/fast").timeout("500ms").to("web");
        route("/stream").timeout("500ms").to("stream");
        "#,
    )
    .pool("web", web.address())
    .pool("stream", stream.address())
    .start();
    // The first connection to a pool may cost more than later ones.
    assert_eq!(proxy.get("/fast").status, 200);
    let start = Instant::now();
    let late = proxy.get("/slow");
    let took = start.elapsed();
    gate.open();
    assert_eq!(late.status, 504);
    assert!(took >= Duration::from_millis(450), "{took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(proxy.text("/stream"), "halfhalf");
    until("the request to be counted", SOON, || {
        let labels = [("route", "/slow"), ("status", "504")];
        proxy.metric("requests_total", &labels) == 1.0
    });
}
