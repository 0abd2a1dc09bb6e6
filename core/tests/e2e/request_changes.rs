//! What hooks change of a request and of a response, and what they leave for later hooks. Cases
//! `set-cookie` (lua-nginx-module 2229, 37) and `many-args` (VeryNginx 218, openresty 358).

use crate::support::client::get;
use crate::support::launch::serving;
use crate::support::upstream::{Upstream, answer, ok};

/// The values of a header, in order.
fn all<'r>(headers: &'r [(String, String)], name: &str) -> Vec<&'r str> {
    headers
        .iter()
        .filter(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
        .collect()
}

#[test]
fn all_cookies_arrive() {
    let web = Upstream::start(|_| answer(200, &[("Set-Cookie", "up=1; Path=/; Secure")], "ok"));
    let proxy = serving(
        r#"
        route("/{*rest}")
            .on_request(|req| {
                req.remove_cookie("session");
                if req.cookie("session") != () { throw "still there"; }
                req.set_header("x-lang", req.cookie("lang"));
            })
            .on_response(|req, res| {
                res.set_cookie("a", "1");
                res.set_cookie("__Host-b", "2", #{ secure: true });
            })
            .to("web");
        route("/answer").respond(|req| respond(200).cookie("a", 1).cookie("b", 2));
        "#,
    )
    .pool("web", web.address())
    .start();
    let cookies = "theme=\"x y\"; session=secret;lang=de ; a=b=c";
    let response = proxy.send(&get("/").header("Cookie", cookies));
    assert_eq!(
        all(&response.headers, "set-cookie"),
        [
            "up=1; Path=/; Secure",
            "a=1; Path=/; HttpOnly; SameSite=Lax",
            "__Host-b=2; Path=/; Secure; HttpOnly; SameSite=Lax",
        ]
    );
    let seen = web.only_request();
    assert_eq!(seen.headers("cookie"), ["theme=\"x y\";lang=de ; a=b=c"]);
    assert_eq!(seen.header("x-lang").as_deref(), Some("de"));

    let answered = proxy.get("/answer");
    assert_eq!(
        all(&answered.headers, "set-cookie"),
        [
            "a=1; Path=/; HttpOnly; SameSite=Lax",
            "b=2; Path=/; HttpOnly; SameSite=Lax",
        ]
    );
}

#[test]
fn no_argument_is_overlooked() {
    let web = Upstream::fixed("ok");
    let proxy = serving(
        r#"
        const BAD = regex("(?i)select\\b.*\\bfrom");
        route("/one").on_request(|req| if BAD.is_match(req.query("b")) { respond(403) }).to("web");
        route("/any").on_request(|req| {
            for name in req.query_names() {
                for value in req.queries(name) {
                    if BAD.is_match(value) { return respond(403); }
                }
            }
        }).to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    for path in ["/one", "/any"] {
        for count in [0, 99, 100, 101, 255, 1000] {
            let attack = format!("{path}?{}b=select%20x%20from+y", "a=1&".repeat(count));
            let status = proxy.get(&attack).status;
            assert!([403, 414].contains(&status), "{path} {count}: {status}");
        }
    }
    assert_eq!(
        proxy.get(&format!("/any?{}b=1", "a=1&".repeat(100))).status,
        200
    );
    assert_eq!(web.hits(), 1, "none of the others was passed on");
}

#[test]
fn the_upstream_gets_the_query_that_hooks_leave() {
    let web = Upstream::fixed("ok");
    let proxy = serving(
        r#"
        route("/strip/{*rest}").on_request(|req| {
            for name in req.query_names() { if name.starts_with("utm_") { req.remove_query(name); } }
        }).to("web");
        route("/set/{*rest}").on_request(|req| { req.set_query("q", "a b&c"); req.add_query("n", 1); })
            .strip_prefix("/set").to("web");
        route("/sort/{*rest}").on_request(|req| req.sort_query()).to("web");
        route("/whole/{*rest}").on_request(|req| req.query_string = req.query("as")).to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    for (sent, got) in [
        (
            "/strip/x?b=%2f&utm_source=1&a=x+y&%75tm_id=2&&c",
            "/strip/x?b=%2f&a=x+y&&c",
        ),
        ("/strip/x?utm_source=1", "/strip/x"),
        ("/set/x?a=%7e&q=1&q=2", "/x?a=%7e&q=a%20b%26c&n=1"),
        ("/sort/x?b=2&a=%41&b=1&a", "/sort/x?a=%41&a&b=2&b=1"),
        ("/whole/x?as=c%3Dd%20%23e", "/whole/x?c=d%20%23e"),
    ] {
        assert_eq!(proxy.get(sent).status, 200, "{sent}");
        assert_eq!(web.last_request().target(), got, "{sent}");
    }
}

#[test]
fn values_reach_the_hooks_of_the_response_and_no_other_request() {
    let web = Upstream::start(|_| ok("ok"));
    let proxy = serving(
        r#"
        on_request(|req| { if req.query("user") != () { req.set("user", #{ name: req.query("user") }); } });
        on_response(|req, res| {
            let user = req.get("user");
            res.set_header("x-user", if user == () { "none" } else { user.name });
            res.set_header("x-tls", `${req.tls == ()}`);
        });
        route("/{*rest}").to("web");
        "#,
    )
    .settings("[server]\nthreads = 1")
    .pool("web", web.address())
    .start();
    for (target, user) in [
        ("/?user=alice", "alice"),
        ("/", "none"),
        ("/?user=bob", "bob"),
    ] {
        let response = proxy.get(target);
        assert_eq!(response.header("x-user"), Some(user));
        assert_eq!(response.header("x-tls"), Some("true"));
    }
}
