//! `on_request`: what a hook can say, and what happens when it says something it must not.

use crate::support::client::{get, post};
use crate::support::launch::serving;
use crate::support::upstream::Upstream;
use crate::support::wait::SOON;

#[test]
fn a_hook_answers_or_lets_through_with_headers() {
    let web = Upstream::fixed("upstream");
    let proxy = serving(
        r#"
        const KEYS = #{ k1: "alice", k2: "bob" };
        fn require_key(req) {
            let client = KEYS[req.header("x-api-key") ?? ""];
            if client == () {
                return respond(401, "unknown API key\n").header("www-authenticate", "Key");
            }
            req.set_header("x-client", client);
            req.remove_header("x-api-key");
        }
        route("/{*rest}").on_request(require_key).to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    let refused = proxy.get("/");
    assert_eq!(
        (refused.status, refused.text().as_str()),
        (401, "unknown API key\n")
    );
    assert_eq!(refused.header("www-authenticate"), Some("Key"));
    assert_eq!(
        proxy.send(&get("/").header("X-Api-Key", "nobody")).status,
        401
    );
    assert_eq!(web.hits(), 0);
    let passed = get("/")
        .header("X-Api-Key", "k1")
        .header("X-Client", "forged");
    assert_eq!(proxy.send(&passed).text(), "upstream");
    let seen = web.only_request();
    assert_eq!(seen.headers("x-client"), ["alice"]);
    assert_eq!(seen.header("x-api-key"), None);
}

#[test]
fn hooks_run_from_all_sites_to_the_route_and_the_first_answer_ends_it() {
    let web = Upstream::fixed("upstream");
    let proxy = serving(
        r#"
        on_request(|req| mark(req, "all"));
        let shop = site("shop.test");
        shop.on_request(|req| mark(req, "site"));
        shop.route("/{*rest}")
            .on_request(|req| mark(req, "first"))
            .on_request(|req| if req.header("x-stop") == "1" { respond(403, req.header("x-trail")) })
            .on_request(|req| mark(req, "last"))
            .to("web");
        route("/{*rest}").to("web");
        fn mark(req, word) {
            let trail = req.header("x-trail") ?? "";
            req.set_header("x-trail", trail + "/" + word);
        }
        "#,
    )
    .pool("web", web.address())
    .start();
    let shop = get("/").host("shop.test");
    assert_eq!(proxy.send(&shop).status, 200);
    assert_eq!(
        web.last_request().headers("x-trail"),
        ["/all/site/first/last"]
    );
    let stopped = proxy.send(&shop.header("x-stop", "1"));
    assert_eq!(
        (stopped.status, stopped.text().as_str()),
        (403, "/all/site/first")
    );
    assert_eq!(proxy.get("/").status, 200);
    assert_eq!(web.last_request().headers("x-trail"), ["/all"]);
    assert_eq!(web.hits(), 2);
}

#[test]
fn what_a_request_tells() {
    let proxy = serving(
        r#"
        route("/tell/{what}").respond(|req| {
            let a = req.method + " " + req.scheme + " " + req.host + " " + req.path;
            let b = req.raw_path + " " + req.query_string + " " + req.protocol;
            let c = req.client_ip + " " + req.peer_ip + " " + req.param("what");
            let d = (req.query("a") ?? "-") + " " + (req.query("none") ?? "-");
            let e = (req.cookie("c") ?? "-") + " " + req.headers("x-two").len();
            respond(200, a + "\n" + b + "\n" + c + "\n" + d + "\n" + e)
        });
        "#,
    )
    .start();
    let request = post("/tell/%41?a=x%20y&b=2", "body")
        .host("Shop.Test:8080")
        .header("Cookie", "b=1; c=2")
        .header("X-Two", "1")
        .header("x-two", "2");
    let told = proxy.send(&request).text();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0].to_lowercase(), "post http shop.test /tell/a");
    assert_eq!(lines[1], "/tell/%41 a=x%20y&b=2 HTTP/1.1");
    assert_eq!(lines[2], "127.0.0.1 127.0.0.1 A");
    assert_eq!(lines[3], "x y -");
    assert_eq!(lines[4], "2 2");
}

#[test]
fn a_bool_is_no_answer_but_a_failure() {
    let web = Upstream::fixed("upstream");
    let proxy = serving(
        r#"
        const FLAGS = table(#{ yes: true, no: false });
        // From a table, so that the syntax tree does not show it at load.
        fn allowed(req) { FLAGS.get(req.header("x-ok") ?? "no") }
        route("/{*rest}").on_request(allowed).to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    assert_eq!(proxy.get("/").status, 500);
    assert_eq!(proxy.send(&get("/").header("x-ok", "yes")).status, 500);
    assert_eq!(web.hits(), 0);
    proxy.log.wait_nth("script failure", 2, SOON);
}

#[test]
fn a_response_made_and_not_returned_is_a_failure() {
    let web = Upstream::fixed("upstream");
    // Through a helper, so that the syntax tree does not show it at load.
    let proxy = serving(
        r#"
        fn deny() { respond(403) }
        fn gate(req) {
            if req.header("x-deny") == "1" { let answer = deny(); }
        }
        route("/{*rest}").on_request(gate).to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    assert_eq!(proxy.send(&get("/").header("x-deny", "1")).status, 500);
    assert_eq!(web.hits(), 0);
    assert_eq!(proxy.get("/").status, 200);
}

#[test]
fn a_helper_as_a_gate() {
    let web = Upstream::fixed("upstream");
    let proxy = serving(
        r#"
        fn gate(req) { if req.header("x-key") != "good" { return respond(401); } }
        fn hook(req) {
            let r = gate(req);
            if r != () { return r; }
            req.set_header("x-passed", "1");
        }
        route("/{*rest}").on_request(hook).to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    assert_eq!(proxy.get("/").status, 401);
    assert_eq!(web.hits(), 0);
    assert_eq!(proxy.send(&get("/").header("x-key", "good")).status, 200);
    assert_eq!(web.only_request().headers("x-passed"), ["1"]);
}

#[test]
fn a_runaway_hook_is_500_within_its_budget_and_others_go_on() {
    let web = Upstream::fixed("upstream");
    let proxy = serving(
        r#"
        fn spin(req) { loop {} }
        fn deep(req) { deep(req) }
        route("/loop").on_request(spin).to("web");
        route("/deep").on_request(deep).to("web");
        route("/text").on_request(|req| { let s = "x"; loop { s += s; } }).to("web");
        route("/array").on_request(|req| { let a = []; loop { a.push(0); } }).to("web");
        route("/fine").to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    for target in ["/loop", "/deep", "/text", "/array"] {
        let start = std::time::Instant::now();
        assert_eq!(proxy.get(target).status, 500, "{target}");
        assert!(
            start.elapsed() < std::time::Duration::from_secs(5),
            "{target}"
        );
        assert_eq!(proxy.get("/fine").status, 200, "after {target}");
        assert_eq!(
            proxy.metric("script_failures_total", &[("route", target)]),
            1.0
        );
    }
    // On a slow machine the time may run out first.
    let of_kind = |kind| {
        let labels = [("route", "/loop"), ("hook", "on_request"), ("kind", kind)];
        proxy.metric("script_failures_total", &labels)
    };
    assert_eq!(of_kind("operations") + of_kind("time"), 1.0);
    assert_eq!(web.hits(), 4);
}
