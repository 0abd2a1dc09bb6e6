//! An encoded newline does not escape a catch-all (apisix 4547).

use crate::support::client::{exchange, get};
use crate::support::launch::serving;
use crate::support::upstream::Upstream;

#[test]
fn the_catch_all_matches_encoded_control_characters() {
    let web = Upstream::fixed("upstream");
    let proxy = serving(
        r#"
        route("/{*rest}").on_request(mark).to("web");
        fn mark(req) { req.set_header("x-rest", req.param("rest")); }
        "#,
    )
    .pool("web", web.address())
    .start();
    for target in [
        "/ip%0AVega",
        "/ip%0D%0AX-Injected:%201",
        "/a%09b%7F",
        "/%0A",
    ] {
        let response = proxy.send(&get(target));
        assert_eq!(
            (response.status, response.text().as_str()),
            (200, "upstream"),
            "{target}"
        );
        let seen = web.last_request();
        assert!(
            seen.target().eq_ignore_ascii_case(target),
            "{target} arrived as {}",
            seen.target()
        );
        assert_eq!(seen.headers("x-rest"), [&seen.target()[1..]]);
        assert_eq!(seen.header("x-injected"), None);
    }
    let hits = web.hits();
    // The raw character is no part of a request target (RFC 9112 section 3.2).
    let raw = exchange(
        proxy.address(),
        b"GET /ip\nVega HTTP/1.1\r\nHost: edge.test\r\n\r\n",
    );
    assert!(raw.is_none_or(|response| response.status == 400));
    assert_eq!(web.hits(), hits);
}
