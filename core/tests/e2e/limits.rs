//! The limits on a request: refused with the right status, counted, and never passed on.

use crate::support::client::{exchange, get, post};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::Upstream;

fn proxy(web: &Upstream, settings: &str) -> Proxy {
    serving(r#"route("/{*rest}").to("web");"#)
        .settings(settings)
        .pool("web", web.address())
        .start()
}

fn hits(proxy: &Proxy, limit: &str) -> f64 {
    proxy.metric("limit_hits_total", &[("limit", limit)])
}

#[test]
fn headers_too_large_or_too_many_are_431() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web, "");
    let large = get("/x").header("x-large", &"a".repeat(70_000));
    assert_eq!(
        exchange(proxy.address(), &large.bytes()).unwrap().status,
        431
    );
    assert_eq!(hits(&proxy, "request_header"), 1.0);
    let many = (0..150).fold(get("/x"), |request, n| {
        request.header(&format!("x-{n}"), "1")
    });
    assert_eq!(
        exchange(proxy.address(), &many.bytes()).unwrap().status,
        431
    );
    assert_eq!(hits(&proxy, "request_headers"), 1.0);
    assert_eq!(web.hits(), 0);
    let under = (0..90).fold(get("/x"), |request, n| {
        request.header(&format!("x-{n}"), "1")
    });
    assert_eq!(proxy.send(&under).status, 200);
    let under = get("/x").header("x-large", &"a".repeat(30_000));
    assert_eq!(proxy.send(&under).status, 200);
}

#[test]
fn a_long_target_is_414() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web, "");
    let long = get(&format!("/{}", "a".repeat(9_000)));
    assert_eq!(
        exchange(proxy.address(), &long.bytes()).unwrap().status,
        414
    );
    let query = get(&format!("/x?{}", "a".repeat(9_000)));
    assert_eq!(
        exchange(proxy.address(), &query.bytes()).unwrap().status,
        414
    );
    assert_eq!(hits(&proxy, "uri"), 2.0);
    assert_eq!(web.hits(), 0);
    assert_eq!(
        proxy.send(&get(&format!("/{}", "a".repeat(8_000)))).status,
        200
    );
}

#[test]
fn a_large_body_is_413() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web, "[limits]\nrequest_body = \"1KiB\"");
    assert_eq!(proxy.send(&post("/x", "a".repeat(1024))).status, 200);
    assert_eq!(web.hits(), 1);
    let large = post("/x", "a".repeat(1025));
    assert_eq!(
        exchange(proxy.address(), &large.bytes()).unwrap().status,
        413
    );
    assert_eq!(
        web.hits(),
        1,
        "a body that announces its length was passed on"
    );
    assert_eq!(hits(&proxy, "request_body"), 1.0);
    // Without an announced length the upstream may have heard the start, but never the end.
    let chunk = format!("400\r\n{}\r\n", "a".repeat(1024));
    let chunked = format!(
        "POST /x HTTP/1.1\r\nHost: edge.test\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}{chunk}0\r\n\r\n"
    );
    let refused = exchange(proxy.address(), chunked.as_bytes());
    assert!(refused.is_none_or(|response| response.status == 413));
    assert_eq!(hits(&proxy, "request_body"), 2.0);
    assert_eq!(web.hits(), 1, "a body over the limit was passed on whole");
}

#[test]
fn limits_come_from_the_settings() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(
        &web,
        "[limits]\nrequest_header = \"1KiB\"\nrequest_headers = 5\nuri = \"64B\"",
    );
    let large = get("/x").header("x-large", &"a".repeat(1100));
    assert_eq!(
        exchange(proxy.address(), &large.bytes()).unwrap().status,
        431
    );
    let many = (0..6).fold(get("/x"), |request, n| {
        request.header(&format!("x-{n}"), "1")
    });
    assert_eq!(
        exchange(proxy.address(), &many.bytes()).unwrap().status,
        431
    );
    let long = get(&format!("/{}", "a".repeat(70)));
    assert_eq!(
        exchange(proxy.address(), &long.bytes()).unwrap().status,
        414
    );
    assert_eq!(web.hits(), 0);
    assert_eq!(proxy.get("/x").status, 200);
}

#[test]
fn a_connection_ends_after_its_last_request() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web, "[limits]\nkeepalive_requests = 3");
    let mut connection = crate::support::client::Connection::open(proxy.address()).unwrap();
    for number in 1..=3 {
        let response = connection.send(&get("/x")).unwrap();
        assert_eq!(response.status, 200);
        assert_eq!(response.closes(), number == 3, "request {number}");
    }
    assert!(connection.closed_within(crate::support::wait::SOON));
}

#[test]
fn an_idle_connection_is_closed() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web, "[limits]\nkeepalive_timeout = \"1s\"");
    let mut connection = crate::support::client::Connection::open(proxy.address()).unwrap();
    assert_eq!(connection.send(&get("/x")).unwrap().status, 200);
    assert!(connection.closed_within(crate::support::wait::SOON));
}
