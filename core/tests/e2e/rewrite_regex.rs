//! `.rewrite_regex`: what the upstream gets.

use crate::support::launch::serving;
use crate::support::upstream::{Upstream, ok};

#[test]
fn the_upstream_gets_what_a_pattern_makes_of_the_path() {
    let web = Upstream::start(|seen| ok(seen.target()));
    let proxy = serving(
        r#"
        route("/v1/{*rest}").rewrite_regex("^/v([0-9]+)/(?<rest>.*)$", "/api/${rest}/v$1").to("web");
        route("/u/{*rest}").rewrite_regex("^/u/([^/]+)", "/user?id=$1").to("web");
        route("/p/{*rest}").strip_prefix("/p").rewrite_regex("_", "-").to("web");
        route("/cut/{*rest}").rewrite_regex(".$", "").to("web");
        route("/host/{*rest}").rewrite_regex("^/host/", "//").to("web");
        route("/bare/{*rest}").rewrite_regex("^/bare/", "").to("web");
        route("/up/{*rest}").rewrite_regex("^/up/(.*)/x/(.*)$", "/$1/.$2").to("web");
        route("/set").on_request(|req| req.path = "/a_b").rewrite_regex("^/(.)_", "/$1/").to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    for (target, expected) in [
        ("/v1/a/b", "/api/a/b/v1"),
        ("/v1/a?x=1&y=%2f", "/api/a/v1?x=1&y=%2f"),
        ("/v1/%C3%A9", "/api/%C3%A9/v1"),
        ("/u/bob?x=1", "/user?id=bob"),
        ("/u/a&admin=1/rest", "/user/rest?id=a%26admin%3D1"),
        ("/p/a_b_c?q_r", "/a-b_c?q_r"),
        ("/p/plain", "/plain"),
        ("/host/evil.test/x", "/evil.test/x"),
        ("/bare/x", "/x"),
        ("/set?q", "/a/b?q"),
    ] {
        assert_eq!(proxy.text(target), expected, "{target}");
    }
    // What is put together has no meaning that the path didn't have: dots are resolved once more.
    assert_eq!(proxy.text("/up/a/x/./b"), "/a/.b");
    assert_eq!(proxy.text("/up/a/x/"), "/a/");
    let hits = web.hits();
    // A pattern that cuts through an escape: there is no such path.
    let cut = proxy.get("/cut/%C3%A9");
    assert_eq!(cut.status, 400, "{}", cut.text());
    assert_eq!(web.hits(), hits);
    assert_eq!(proxy.text("/cut/abc"), "/cut/ab");
}
