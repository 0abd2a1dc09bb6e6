//! Routes that also look at headers, query, cookies, the client's address, or ask a function.

use crate::support::client::get;
use crate::support::launch::serving;

#[test]
fn the_route_with_a_condition_that_holds_wins() {
    let proxy = serving(
        r#"
        const HERE = cidr(["127.0.0.0/8"]);
        const ELSEWHERE = cidr(["192.0.2.0/24", "2001:db8::/32"]);
        route("/h").respond(200, "plain");
        route("/h").if_header("x-beta", "1").respond(200, "beta");
        route("/q").respond(200, "plain");
        route("/q").if_query("mode", "fast").respond(200, "fast");
        route("/c").respond(200, "plain");
        route("/c").if_cookie("beta", "yes").respond(200, "beta");
        route("/f").respond(200, "plain");
        route("/f").from(HERE).respond(200, "near");
        route("/g").respond(200, "plain");
        route("/g").from(ELSEWHERE).respond(200, "far");
        route("/w").respond(200, "plain");
        route("/w").when(|req| req.header("x-n") == "7").respond(200, "seven");
        "#,
    )
    .start();
    for (request, body) in [
        (get("/h"), "plain"),
        (get("/h").header("X-Beta", "1"), "beta"),
        (get("/h").header("X-Beta", "2"), "plain"),
        (get("/q"), "plain"),
        (get("/q?mode=fast"), "fast"),
        (get("/q?a=1&mode=fast&b=2"), "fast"),
        (get("/q?mode=slow"), "plain"),
        (get("/c"), "plain"),
        (get("/c").header("Cookie", "a=1; beta=yes"), "beta"),
        (get("/c").header("Cookie", "beta=no"), "plain"),
        (get("/f"), "near"),
        (get("/g"), "plain"),
        (get("/w"), "plain"),
        (get("/w").header("x-n", "7"), "seven"),
    ] {
        let response = proxy.send(&request);
        let sent = String::from_utf8(request.bytes()).unwrap();
        assert_eq!(
            (response.status, response.text().as_str()),
            (200, body),
            "{sent}"
        );
    }
}

#[test]
fn more_conditions_win_over_fewer() {
    let proxy = serving(
        r#"
        route("/x").if_header("a", "1").respond(200, "one");
        route("/x").if_header("a", "1").if_header("b", "1").respond(200, "two");
        "#,
    )
    .start();
    let one = get("/x").header("a", "1");
    assert_eq!(proxy.send(&one).text(), "one");
    assert_eq!(proxy.send(&one.header("b", "1")).text(), "two");
    // The path fits, its conditions don't: there is no such route for this request.
    assert_eq!(proxy.get("/x").status, 404);
}

#[test]
fn a_condition_that_fails_is_500_and_never_no_match() {
    let proxy = serving(
        r#"
        route("/x").when(|req| { let a = []; a[3] == 1 }).respond(200, "guarded");
        route("/x").respond(200, "fallback");
        "#,
    )
    .start();
    assert_eq!(proxy.get("/x").status, 500);
    let line = proxy.log.wait("script failure", crate::support::wait::SOON);
    assert!(line.contains("hook=when"), "{line}");
    assert!(line.contains("at=routes.rhai:2:"), "{line}");
}
