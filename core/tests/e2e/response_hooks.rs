//! `on_response`: changes what the upstream said, and sees the proxy's own answers too.

use crate::support::client::get;
use crate::support::launch::serving;
use crate::support::ports;
use crate::support::upstream::{Upstream, answer, ok};
use crate::support::wait::{Gate, SOON};

#[test]
fn status_and_headers_change() {
    let web = Upstream::start(|seen| match seen.target().as_str() {
        "/teapot" => answer(418, &[("X-Powered-By", "steam")], "tea"),
        _ => answer(200, &[("X-Powered-By", "steam"), ("X-Kept", "1")], "ok"),
    });
    let proxy = serving(
        r#"
        fn tidy(req, res) {
            if res.status == 418 { res.status = 503; res.set_header("retry-after", "5"); }
            res.remove_header("x-powered-by");
            res.set_header("x-path", req.path);
        }
        route("/{*rest}").on_response(tidy).to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    let plain = proxy.get("/plain");
    assert_eq!((plain.status, plain.text().as_str()), (200, "ok"));
    assert_eq!(plain.header("x-powered-by"), None);
    assert_eq!(plain.header("x-kept"), Some("1"));
    assert_eq!(plain.header("x-path"), Some("/plain"));
    let teapot = proxy.get("/teapot");
    assert_eq!(
        (teapot.status, teapot.header("retry-after")),
        (503, Some("5"))
    );
    assert_eq!(teapot.text(), "tea");
}

#[test]
fn it_runs_for_the_proxys_own_answers() {
    let closed = ports::free([127, 0, 0, 1].into(), 1)[0];
    let gate = Gate::new();
    let held = gate.clone();
    let slow = Upstream::start(move |_| {
        held.pass(SOON);
        ok("late")
    });
    let proxy = serving(
        r#"
        on_response(|req, res| {
            res.set_header("x-seen", "" + res.status);
            res.set_header("x-local", if res.is_local { "yes" } else { "no" });
        });
        route("/down").to("down");
        route("/slow").timeout("300ms").to("slow");
        route("/only-post").methods(["POST"]).respond(200, "posted");
        route("/own").respond(200, "own");
        route("/denied").on_request(|req| respond(401)).to("slow");
        "#,
    )
    .pool("down", closed)
    .pool("slow", slow.address())
    .start();
    for (target, status) in [
        ("/none", 404),
        ("/down", 502),
        ("/slow", 504),
        ("/only-post", 405),
        ("/own", 200),
        ("/denied", 401),
    ] {
        let response = proxy.get(target);
        assert_eq!(response.status, status, "{target}");
        let seen = response.header("x-seen");
        assert_eq!(seen, Some(status.to_string().as_str()), "{target}");
        assert_eq!(response.header("x-local"), Some("yes"), "{target}");
    }
    gate.open();
    let from_upstream = get("/slow").send(proxy.address());
    assert_eq!(from_upstream.header("x-local"), Some("no"));
}

#[test]
fn a_failure_is_500_in_place_of_the_upstreams_answer() {
    let web = Upstream::fixed("secret");
    let proxy = serving(
        r#"
        fn broken(req, res) {
            let parts = [];
            res.set_header("x-part", parts[0]);
        }
        route("/broken").on_response(broken).to("web");
        route("/fine").to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    let response = proxy.get("/broken");
    assert_eq!(response.status, 500);
    assert!(!response.text().contains("secret"), "{}", response.text());
    assert_eq!(web.hits(), 1);
    let line = proxy.log.wait("script failure", SOON);
    assert!(line.contains("hook=on_response"), "{line}");
    assert!(line.contains("at=routes.rhai:4:"), "{line}");
    assert_eq!(
        proxy.metric(
            "script_failures_total",
            &[
                ("route", "/broken"),
                ("hook", "on_response"),
                ("kind", "error")
            ]
        ),
        1.0
    );
    assert_eq!(proxy.text("/fine"), "secret");
}

#[test]
fn a_500_of_a_failed_hook_is_not_given_to_on_response() {
    let web = Upstream::fixed("upstream");
    let proxy = serving(
        r#"
        on_response(|req, res| res.set_header("x-seen", "1"));
        route("/").on_request(|req| { let a = []; a[0] }).to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    let response = proxy.get("/");
    assert_eq!((response.status, response.header("x-seen")), (500, None));
    assert_eq!(web.hits(), 0);
}
