//! A second hook of one kind joins the first, and does not take its place (ingress-nginx 8642).

use crate::support::client::{Request, get};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::Upstream;
use crate::support::wait::SOON;

/// Hooks of all sites, of a site and two of a route, for each kind. `x-stop` names the one that
/// answers, `x-fail` the one that fails.
const PROGRAM: &str = r#"
on_request(|req| step(req, "all"));
on_response(|req, res| back(req, res, "all"));

let shop = site("shop.test");
shop.on_response(|req, res| back(req, res, "site"));
shop.on_request(|req| step(req, "site"));
shop.route("/{*rest}")
    .on_response(|req, res| back(req, res, "one"))
    .on_request(|req| step(req, "one"))
    .to("web")
    .on_request(two)
    .on_response(two);

fn two(req) { step(req, "two") }
fn two(req, res) { back(req, res, "two") }

fn step(req, name) {
    req.set_header("x-trail", (req.header("x-trail") ?? "") + "/" + name);
    if req.header("x-fail") == name { throw "on purpose"; }
    if req.header("x-stop") == name { return respond(403, `${name} says no`); }
}

fn back(req, res, name) {
    res.set_header("x-back", (res.header("x-back") ?? "") + "/" + name);
    if req.header("x-fail-back") == name { throw "on purpose"; }
    if req.header("x-stop-back") == name { return respond(418, `${name} says something else`); }
}
"#;

fn start(web: &Upstream) -> Proxy {
    serving(PROGRAM).pool("web", web.address()).start()
}

fn shop() -> Request {
    get("/cart").host("shop.test")
}

#[test]
fn all_run_in_the_order_of_all_sites_site_route_and_then_as_written() {
    let web = Upstream::fixed("upstream");
    let proxy = start(&web);
    let response = proxy.send(&shop());
    assert_eq!(
        (response.status, response.text().as_str()),
        (200, "upstream")
    );
    assert_eq!(response.header("x-back"), Some("/all/site/one/two"));
    let seen = web.only_request();
    assert_eq!(seen.headers("x-trail"), ["/all/site/one/two"]);
}

#[test]
fn any_request_hook_stops_those_behind_it_and_the_upstream() {
    let web = Upstream::fixed("upstream");
    let proxy = start(&web);
    for name in ["all", "site", "one", "two"] {
        let refused = proxy.send(&shop().header("x-stop", name));
        assert_eq!(
            (refused.status, refused.text()),
            (403, format!("{name} says no"))
        );
        // Its answer is a response like any other.
        assert_eq!(refused.header("x-back"), Some("/all/site/one/two"));
    }
    assert_eq!(web.hits(), 0);
}

#[test]
fn any_response_hook_may_put_an_answer_in_place_of_the_response() {
    let web = Upstream::fixed("upstream");
    let proxy = start(&web);
    for (name, hits) in [("all", 1), ("site", 2), ("one", 3), ("two", 4)] {
        let changed = proxy.send(&shop().header("x-stop-back", name));
        assert_eq!(
            (changed.status, changed.text()),
            (418, format!("{name} says something else"))
        );
        assert_eq!(web.hits(), hits);
    }
}

#[test]
fn any_that_fails_shuts_the_gate_and_is_named_in_the_log() {
    let web = Upstream::fixed("upstream");
    let proxy = start(&web);
    for (nth, name) in (1..).zip(["all", "site", "one", "two"]) {
        assert_eq!(proxy.send(&shop().header("x-fail", name)).status, 500);
        let line = proxy.log.wait_nth("script failure", nth, SOON);
        assert!(line.contains("hook=on_request"), "{line}");
    }
    assert_eq!(web.hits(), 0);
    for (nth, name) in (5..).zip(["all", "site", "one", "two"]) {
        let failed = proxy.send(&shop().header("x-fail-back", name));
        assert_eq!(failed.status, 500);
        assert!(!failed.text().contains("upstream"), "{}", failed.text());
        let line = proxy.log.wait_nth("script failure", nth, SOON);
        assert!(line.contains("hook=on_response"), "{line}");
    }
    assert_eq!(web.hits(), 4);
}

#[test]
fn another_site_has_only_what_is_for_all() {
    let web = Upstream::fixed("upstream");
    let proxy = start(&web);
    let response = proxy.send(&get("/cart").host("other.test"));
    assert_eq!(
        (response.status, response.header("x-back")),
        (404, Some("/all"))
    );
    assert_eq!(web.hits(), 0);
}
