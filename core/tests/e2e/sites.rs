//! Which site answers: the most specific whose host fits, and only that one.

use crate::support::client::get;
use crate::support::launch::serving;
use crate::support::proxy::Proxy;

fn proxy() -> Proxy {
    serving(
        r#"
        route("/").respond(200, "any host");
        route("/only-any").respond(200, "any host");
        site("admin.example.com").route("/").respond(200, "exact");
        site("*.example.com").route("/").respond(200, "wildcard");
        let eu = site("*.eu.example.com");
        eu.on_request(|req| if req.path == "/closed" { respond(403, "closed") });
        eu.route("/").respond(200, "longer wildcard");
        "#,
    )
    .start()
}

#[test]
fn exact_then_longest_wildcard_then_any() {
    let proxy = proxy();
    for (host, body) in [
        ("admin.example.com", "exact"),
        ("www.example.com", "wildcard"),
        ("shop.eu.example.com", "longer wildcard"),
        ("example.org", "any host"),
        // A wildcard stands for at least one label.
        ("example.com", "any host"),
        // A host is compared without its port and its case.
        ("admin.example.com:8080", "exact"),
        ("ADMIN.Example.COM", "exact"),
    ] {
        let response = proxy.send(&get("/").host(host));
        assert_eq!(
            (response.status, response.text().as_str()),
            (200, body),
            "{host}"
        );
    }
}

#[test]
fn no_route_in_the_site_is_404_even_when_another_site_has_one() {
    let proxy = proxy();
    assert_eq!(
        proxy.send(&get("/only-any").host("example.org")).status,
        200
    );
    assert_eq!(
        proxy
            .send(&get("/only-any").host("admin.example.com"))
            .status,
        404
    );
}

#[test]
fn hooks_of_the_site_run_before_its_404() {
    let proxy = proxy();
    let closed = proxy.send(&get("/closed").host("a.eu.example.com"));
    assert_eq!((closed.status, closed.text().as_str()), (403, "closed"));
    let missing = proxy.send(&get("/missing").host("a.eu.example.com"));
    assert_eq!(missing.status, 404);
    let elsewhere = proxy.send(&get("/closed").host("example.org"));
    assert_eq!(elsewhere.status, 404);
}

#[test]
fn the_absolute_form_names_the_host() {
    let proxy = proxy();
    let request = get("http://admin.example.com/").host("admin.example.com");
    assert_eq!(proxy.send(&request).text(), "exact");
}
