//! `.deny`, `.allow` and `.max_body`, and the order in which gates are asked.

use crate::support::client::{Connection, exchange, get, post};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::{Upstream, ok};

const TRUSTING: &str = "[trusted_proxies]\ncidrs = [\"127.0.0.0/8\"]";

fn refusals(proxy: &Proxy, route: &str, gate: &str) -> f64 {
    proxy.metric("gate_refusals_total", &[("route", route), ("gate", gate)])
}

#[test]
fn addresses_are_refused_before_any_hook() {
    let web = Upstream::fixed("ok");
    let proxy = serving(
        r#"
        const OFFICE = cidr(["10.0.0.0/8", "fd00::/8"]);
        on_request(|req| if req.query("hook") != () { respond(418) });
        route("/office/{*rest}").allow(OFFICE).deny("10.0.0.9").deny(["fd00::9"]).to("web");
        route("/hooked").allow("10.0.0.0/8").on_request(|req| req.set_header("x-a", "1")).to("web");
        route("/fixed").deny("192.0.2.0/24").respond(200, "ok\n");
        "#,
    )
    .settings(TRUSTING)
    .pool("web", web.address())
    .start();
    let status = |target: &str, client: &str| {
        let request = get(target).header("x-forwarded-for", client);
        proxy.send(&request).status
    };
    for (client, expected) in [
        ("10.1.2.3", 200),
        ("::ffff:10.1.2.3", 200),
        ("fd00::1", 200),
        ("10.0.0.9", 403),
        ("::ffff:10.0.0.9", 403),
        ("fd00::9", 403),
        ("192.0.2.1", 403),
    ] {
        assert_eq!(status("/office/x", client), expected, "{client}");
    }
    assert_eq!(status("/office/x?hook", "10.0.0.1"), 418);
    assert_eq!(
        status("/office/x?hook", "192.0.2.1"),
        403,
        "a hook ran first"
    );
    assert_eq!(status("/hooked", "10.0.0.1"), 200);
    assert_eq!(status("/hooked", "192.0.2.1"), 403);
    assert_eq!(status("/fixed", "192.0.2.1"), 403);
    assert_eq!(status("/fixed", "10.0.0.1"), 200);
    assert_eq!(web.hits(), 4);
    let office = "/office/{*rest}";
    assert_eq!(refusals(&proxy, office, "deny"), 3.0);
    assert_eq!(refusals(&proxy, office, "allow"), 2.0);
    assert_eq!(refusals(&proxy, "/fixed", "deny"), 1.0);
}

#[test]
fn a_refusal_passes_through_the_later_hooks_and_filters() {
    let proxy = serving(
        r#"
        on_response(|req, res| res.set_header("x-local", res.is_local.to_string()));
        route("/{*rest}").deny("0.0.0.0/0").set_response_header("x-set", "1").respond(200, "in\n");
        "#,
    )
    .start();
    let refused = proxy.get("/x");
    assert_eq!(
        (refused.status, refused.text().as_str()),
        (403, "403 forbidden\n")
    );
    assert_eq!(refused.header("x-local"), Some("true"));
    assert_eq!(refused.header("x-set"), Some("1"));
}

/// A condition that says no first passes a route over, gates and all.
#[test]
fn gates_are_those_of_the_route_that_is_taken() {
    let proxy = serving(
        r#"
        route("/x").if_header("x-a").when(|req| req.query("no") == ()).deny("0.0.0.0/0").respond(200, "gated\n");
        route("/x").respond(200, "open\n");
        "#,
    )
    .start();
    assert_eq!(proxy.get("/x").status, 200);
    let gated = |target: &str| proxy.send(&get(target).header("x-a", "1"));
    assert_eq!(gated("/x").status, 403);
    assert_eq!(gated("/x?no").text(), "open\n");
}

const BODIES: &str = r#"
    route("/small").max_body("10B").to("web");
    route("/hooked").max_body("10B").on_request(|req| req.set_header("x-a", "1")).to("web");
    route("/body-hook").max_body("10B").on_request_body(|req| req.set_header("x-a", "1")).to("web");
    route("/large").max_body("2KiB").to("web");
    route("/any").max_body("none").to("web");
    route("/none").max_body("0B").to("web");
    route("/{*rest}").to("web");
"#;

fn chunked(target: &str, chunk: usize, chunks: usize) -> Vec<u8> {
    let body = format!("{chunk:x}\r\n{}\r\n", "a".repeat(chunk)).repeat(chunks);
    format!(
        "POST {target} HTTP/1.1\r\nHost: edge.test\r\nTransfer-Encoding: chunked\r\n\r\n{body}0\r\n\r\n"
    )
    .into_bytes()
}

#[test]
fn a_bodys_length_is_bounded_by_the_route_or_else_by_the_limits() {
    let web = Upstream::start(|seen| ok(seen.body.len().to_string()));
    let proxy = serving(BODIES)
        .settings("[limits]\nrequest_body = \"1KiB\"")
        .pool("web", web.address())
        .start();
    for (target, length, expected) in [
        ("/small", 10, 200),
        ("/small", 11, 413),
        ("/hooked", 11, 413),
        ("/other", 1024, 200),
        ("/other", 1025, 413),
        ("/large", 1025, 200),
        ("/large", 2049, 413),
        ("/any", 2 * 1024 * 1024, 200),
        ("/none", 0, 200),
        ("/none", 1, 413),
    ] {
        let hits = web.hits();
        let request = post(target, "a".repeat(length));
        let response = exchange(proxy.address(), &request.bytes()).unwrap();
        assert_eq!(response.status, expected, "{target} {length}");
        let passed = web.hits() - hits;
        assert_eq!(passed, usize::from(expected == 200), "{target} {length}");
        if expected == 413 {
            assert!(response.closes(), "{target}: the body is still to come");
        }
    }
    assert_eq!(refusals(&proxy, "/small", "max_body"), 1.0);
    assert_eq!(
        proxy.metric("limit_hits_total", &[("limit", "request_body")]),
        1.0
    );
}

#[test]
fn a_body_without_a_length_is_measured_as_it_comes() {
    let web = Upstream::start(|seen| ok(seen.body.len().to_string()));
    let proxy = serving(BODIES)
        .settings("[limits]\nrequest_body = \"1KiB\"")
        .pool("web", web.address())
        .start();
    for (target, chunk, chunks, passes) in [
        ("/small", 5, 2, true),
        ("/small", 5, 3, false),
        ("/body-hook", 5, 2, true),
        ("/body-hook", 5, 3, false),
        ("/other", 1024, 2, false),
        ("/large", 1024, 2, true),
        ("/none", 1, 1, false),
    ] {
        let hits = web.hits();
        let response = exchange(proxy.address(), &chunked(target, chunk, chunks));
        if passes {
            assert_eq!(
                response.unwrap().text(),
                (chunk * chunks).to_string(),
                "{target}"
            );
        } else {
            // The upstream may have heard the start, but never the end.
            assert!(
                response.is_none_or(|response| response.status == 413),
                "{target}"
            );
            assert_eq!(web.hits(), hits, "{target}: passed on whole");
        }
    }
    assert_eq!(refusals(&proxy, "/small", "max_body"), 1.0);
    assert_eq!(refusals(&proxy, "/body-hook", "max_body"), 1.0);
}

/// What fits no route can't have been allowed more by one.
#[test]
fn a_long_body_to_nowhere_is_413() {
    let proxy = serving("route(\"/x\").methods([\"GET\"]).respond(200, \"ok\");")
        .settings("[limits]\nrequest_body = \"1KiB\"")
        .start();
    for target in ["/nowhere", "/x"] {
        let request = post(target, "a".repeat(2000));
        let response = exchange(proxy.address(), &request.bytes()).unwrap();
        assert_eq!(response.status, 413, "{target}");
    }
    assert_eq!(proxy.send(&post("/nowhere", "a")).status, 404);
}

/// Deny, allow, body, limit, concurrency, whatever the order in which they are written; what one
/// refuses is not counted by those behind it.
#[test]
fn gates_are_asked_in_one_order() {
    let proxy = serving(
        r#"
        route("/{*rest}").concurrency(9, #{ status: 504 }).limit(2, "1h", #{ key: "route" }).max_body("10B")
            .allow("10.0.0.0/8").deny("10.0.0.9").respond(200, "in\n");
        "#,
    )
    .settings(TRUSTING)
    .start();
    let status = |client: &str, body: &str| {
        let request = post("/x", body).header("x-forwarded-for", client);
        exchange(proxy.address(), &request.bytes()).unwrap().status
    };
    let long = "a".repeat(11);
    for _ in 0..3 {
        assert_eq!(status("10.0.0.9", &long), 403);
        assert_eq!(status("192.0.2.1", &long), 403);
        assert_eq!(status("10.0.0.1", &long), 413);
    }
    assert_eq!(status("10.0.0.1", "a"), 200);
    assert_eq!(status("10.0.0.2", "a"), 200);
    assert_eq!(status("10.0.0.1", "a"), 429);
    let mut connection = Connection::open(proxy.address()).unwrap();
    let again = get("/x").header("x-forwarded-for", "10.0.0.1");
    assert_eq!(connection.send(&again).unwrap().status, 429);
    assert_eq!(connection.send(&again).unwrap().status, 429, "kept open");
}
