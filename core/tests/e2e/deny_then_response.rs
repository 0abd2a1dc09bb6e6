//! Case deny-then-response: hooks behind a denial run once, and see that it is one (apisix 11823).

use crate::support::client::{Connection, get, post};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::Upstream;
use crate::support::wait::SOON;

/// Denies by whatever `x-deny` says.
const PROGRAM: &str = r#"
const SEEN = counter("responses");

on_response(|req, res| mark(req, res, "all"));

let shop = site("shop.test");
shop.on_request(|req| if req.header("x-deny") == "site" { respond(401, "site\n") });
shop.on_response(|req, res| mark(req, res, "site"));
shop.route("/count").respond(|req| respond(200, "" + SEEN.get("n")));
shop.route("/{*rest}")
    .on_request(|req| if req.header("x-deny") == "route" { respond(401, "route\n") })
    .on_response(|req, res| mark(req, res, "route"))
    .set_response_header("x-filter", "1")
    .to(|req| if req.header("x-deny") == "to" { respond(401, "to\n") } else { "web" });

fn mark(req, res, name) {
    SEEN.add("n", 1);
    res.add_header("x-hook", `${name} ${res.status} ${res.is_local}`);
}
"#;

fn start(web: &Upstream) -> Proxy {
    serving(PROGRAM).pool("web", web.address()).start()
}

/// All values of a field.
fn all<'a>(response: &'a crate::support::client::Response, name: &str) -> Vec<&'a str> {
    let fields = response.headers.iter();
    fields
        .filter(|(field, _)| field.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
        .collect()
}

#[test]
fn each_later_hook_runs_once_with_is_local() {
    let web = Upstream::fixed("upstream");
    let proxy = serving(
        r#"
        on_log(|req, res| log("info", `all ${req.path} ${res.status} ${res.is_local}`));
        route("/{*rest}")
            .on_request(|req| { return respond(401, "who are you?"); })
            .on_request(|req| { log("error", "never"); })
            .on_response(|req, res| { res.add_header("x-seen", `${res.is_local}`); })
            .on_response_body(|req, res| { res.set_body(res.body().text() + " Say it!"); })
            .on_log(|req, res| log("info", `route ${res.status} ${res.is_local} ${res.bytes_sent} ${res.attempts}`))
            .to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    let response = proxy.send(&get("/a"));
    assert_eq!(
        (response.status, response.text().as_str()),
        (401, "who are you? Say it!")
    );
    assert_eq!(response.header("x-seen"), Some("true"));
    proxy.log.wait("route 401 true 20 0", SOON);
    assert_eq!(proxy.log.count("all /a 401 true"), 1);
    assert_eq!(proxy.log.count("route 401"), 1);
    assert_eq!(proxy.log.count("never"), 0);
    assert_eq!(web.hits(), 0);
}

#[test]
fn each_hook_runs_once_and_there_is_one_body() {
    let web = Upstream::fixed("upstream");
    let proxy = start(&web);
    for by in ["site", "route", "to"] {
        let denied = proxy.send(&get("/cart").host("shop.test").header("x-deny", by));
        assert_eq!((denied.status, denied.text()), (401, format!("{by}\n")));
        assert_eq!(
            all(&denied, "x-hook"),
            ["all 401 true", "site 401 true", "route 401 true"],
            "denied by {by}"
        );
        assert_eq!(all(&denied, "x-filter"), ["1"]);
        let length = (by.len() + 1).to_string();
        assert_eq!(all(&denied, "content-length"), [length.as_str()]);
    }
    assert_eq!(web.hits(), 0);
    // Nothing ran that left no trace in a header.
    let count = proxy.send(&get("/count").host("shop.test"));
    assert_eq!(count.text(), "9");
}

#[test]
fn what_is_let_through_is_not_local() {
    let web = Upstream::fixed("upstream");
    let proxy = start(&web);
    let passed = proxy.send(&get("/cart").host("shop.test"));
    assert_eq!((passed.status, passed.text().as_str()), (200, "upstream"));
    assert_eq!(
        all(&passed, "x-hook"),
        ["all 200 false", "site 200 false", "route 200 false"]
    );
    assert_eq!(web.hits(), 1);
}

#[test]
fn the_connection_serves_the_next_request_after_a_denial() {
    let web = Upstream::fixed("upstream");
    let proxy = start(&web);
    let mut connection = Connection::open(proxy.address()).unwrap();
    for round in 1..=3 {
        let denied = get("/cart").host("shop.test").header("x-deny", "route");
        let denied = connection.send(&denied).unwrap();
        assert_eq!((denied.status, denied.text().as_str()), (401, "route\n"));
        let passed = connection.send(&get("/cart").host("shop.test")).unwrap();
        assert_eq!((passed.status, passed.text().as_str()), (200, "upstream"));
        assert_eq!(web.hits(), round);
    }
}

#[test]
fn a_denied_request_with_a_body_is_answered_once() {
    let web = Upstream::fixed("upstream");
    let proxy = start(&web);
    let denied = post("/cart", vec![b'x'; 100_000])
        .host("shop.test")
        .header("x-deny", "route");
    let denied = proxy.send(&denied);
    assert_eq!((denied.status, denied.text().as_str()), (401, "route\n"));
    assert_eq!(all(&denied, "x-hook").len(), 3);
    assert_eq!(web.hits(), 0);
}

#[test]
fn a_hook_can_tell_the_denial_from_the_same_status_of_the_upstream() {
    let web = Upstream::start(|_| crate::support::upstream::answer(401, &[], "theirs"));
    let proxy = serving(
        r#"
        route("/{*rest}")
            .on_request(|req| if req.path == "/ours" { respond(401, "ours") })
            .on_response(|req, res| {
                if res.status == 401 && !res.is_local { return respond(502, "the upstream does not know us"); }
            })
            .to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    assert_eq!(proxy.get("/ours").text(), "ours");
    let theirs = proxy.get("/theirs");
    assert_eq!(
        (theirs.status, theirs.text().as_str()),
        (502, "the upstream does not know us")
    );
}
