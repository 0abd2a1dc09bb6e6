//! One host has one form: for sites, for hooks and for the upstream. What is no host goes nowhere.

use crate::support::client::{exchange, get};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::Upstream;

const ROUTES: &str = r#"
on_request(|req| if req.host == "secret.example.com" { respond(403, "gate") });
let admin = site("admin.example.com");
admin.route("/{*rest}").on_request(|req| { req.set_header("x-host", req.host); req.set_header("x-site", "admin"); }).to("web");
route("/{*rest}").on_request(|req| { req.set_header("x-host", req.host); req.set_header("x-site", "any"); }).to("web");
"#;

fn proxy(web: &Upstream) -> Proxy {
    serving(ROUTES).pool("web", web.address()).start()
}

#[test]
fn sites_hooks_and_the_upstream_see_one_form() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web);
    for (sent, site, host, passed) in [
        ("admin.example.com", "admin", "admin.example.com", ""),
        ("admin.example.com.", "admin", "admin.example.com", ""),
        ("ADMIN.Example.COM", "admin", "admin.example.com", ""),
        ("ADMIN.example.com.:80", "admin", "admin.example.com", ":80"),
        (
            "admin.example.com:8080",
            "admin",
            "admin.example.com",
            ":8080",
        ),
        ("Other.Test.", "any", "other.test", ""),
        ("127.0.0.1:80", "any", "127.0.0.1", ":80"),
        ("[::1]", "any", "[::1]", ""),
        ("[0:0:0:0:0:0:0:1]", "any", "[::1]", ""),
        ("[2001:DB8:0::A]:81", "any", "[2001:db8::a]", ":81"),
    ] {
        assert_eq!(proxy.send(&get("/x").host(sent)).status, 200, "{sent}");
        let seen = web.last_request();
        assert_eq!(seen.headers("x-site"), [site], "{sent}");
        assert_eq!(seen.headers("x-host"), [host], "{sent}");
        assert_eq!(seen.headers("host"), [format!("{host}{passed}")], "{sent}");
    }
}

#[test]
fn a_gate_on_the_host_holds() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web);
    for host in [
        "secret.example.com",
        "secret.example.com.",
        "SECRET.example.com",
        "Secret.Example.Com.:80",
        "secret.example.com:",
    ] {
        let response = proxy.send(&get("/x").host(host));
        assert_eq!(
            (response.status, response.text().as_str()),
            (403, "gate"),
            "{host}"
        );
    }
    // As an absolute target too.
    for target in [
        "http://secret.example.com./x",
        "http://SECRET.example.com/x",
    ] {
        let host = target.trim_start_matches("http://").trim_end_matches("/x");
        let status = proxy.send(&get(target).host(host)).status;
        assert!(matches!(status, 400 | 403), "{target}: {status}");
    }
    assert_eq!(web.hits(), 0);
}

/// The host of an absolute target counts (RFC 9112 section 3.2.2), so two that differ are two
/// opinions about where the request goes.
#[test]
fn an_absolute_target_and_a_host_that_differ_pass_no_gate() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web);
    for (target, host) in [
        ("http://secret.example.com/x", "other.test"),
        ("http://SECRET.example.com./x", "other.test"),
        ("http://other.test/x", "secret.example.com."),
    ] {
        let response = proxy.send(&get(target).host(host));
        assert!(
            matches!(response.status, 400 | 403),
            "{target}: {}",
            response.status
        );
    }
    assert_eq!(web.hits(), 0);
}

#[test]
fn what_is_no_host_reaches_no_upstream() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web);
    for host in [
        "a:80:80",
        ":80",
        "::1",
        "[a]",
        "a..b",
        ".a",
        ".",
        "..",
        "a:b",
        "[::1",
        "::1]",
        "[::1]x",
        "[]",
        "[::1%25lo]",
        "a%2eb",
        "a@b",
        "*",
        "a\u{e9}b",
    ] {
        let bytes = get("/x").host(host).bytes();
        let status = exchange(proxy.address(), &bytes).map(|response| response.status);
        assert_eq!(status, Some(400), "{host}");
    }
    assert_eq!(web.hits(), 0);
    assert_eq!(proxy.get("/x").status, 200);
}

#[test]
fn http_1_0_without_a_host_goes_on_with_one() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web);
    let response = exchange(proxy.address(), b"GET /x HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!((response.status, response.text().as_str()), (200, "ok"));
    let seen = web.only_request();
    assert_eq!(seen.headers("host"), [web.address().to_string()]);
    assert_eq!(seen.headers("x-site"), ["any"]);
}

#[test]
fn http_1_0_with_an_absolute_target_needs_a_host() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web);
    let raw = b"GET http://a.com/x HTTP/1.0\r\n\r\n";
    let status = exchange(proxy.address(), raw).map(|response| response.status);
    assert_eq!((status, web.hits()), (Some(400), 0));
}

#[test]
fn an_absolute_target_without_a_path_keeps_its_query() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web);
    for (target, passed) in [
        ("http://h?q=1", "/?q=1"),
        ("http://h", "/"),
        ("http://h/?q=/1", "/?q=/1"),
        ("HTTP://h/x?q=http://b/", "/x?q=http://b/"),
    ] {
        let response = proxy.send(&get(target).host("h"));
        assert_eq!(response.status, 200, "{target}");
        assert_eq!(web.last_request().target(), passed, "{target}");
    }
}
