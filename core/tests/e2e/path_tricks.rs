//! A deny rule on /admin can't be walked around (CVE-2021-43557): what the router matches, what
//! the script reads and what the upstream gets are one and the same path.

use crate::support::client::exchange;
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::Upstream;

const ROUTES: &str = r#"
    let shop = site("edge.test");
    shop.route("/admin").respond(403, "denied");
    shop.route("/admin/{*rest}").respond(403, "denied");
    shop.route("/{*rest}").on_request(mark).to("web");
    fn mark(req) {
        req.set_header("x-path", req.path);
        req.set_header("x-rest", req.param("rest"));
    }
"#;

/// What each spelling must come to. `200`: it is another path, and everybody sees the same one.
const SPELLINGS: [(&str, u16); 34] = [
    ("/admin", 403),
    ("/admin/", 403),
    ("/admin/x", 403),
    ("/admin?x=/public", 403),
    ("/a/../admin", 403),
    ("/a/b/../../admin/x", 403),
    ("/../admin", 400),
    ("/./admin", 403),
    ("/admin/.", 403),
    ("/admin/x/..", 403),
    ("/%61dmin", 403),
    ("/%61%64%6D%69%6e/x", 403),
    ("/%2e/admin", 403),
    ("/a/%2E%2e/admin", 403),
    ("http://edge.test/admin", 403),
    ("http://edge.test/a/../admin", 403),
    ("//admin", 400),
    ("/a//admin", 400),
    ("/a//../admin", 400),
    ("/admin%2f", 400),
    ("/admin%2Fx", 400),
    ("/%2fadmin", 400),
    ("/admin;x", 400),
    ("/admin;/x", 400),
    ("/a/..%2fadmin", 400),
    ("/a/..;/admin", 400),
    ("/%252e%252e/admin", 400),
    ("/a%252f..%252fadmin", 400),
    ("/admin%00", 400),
    ("/a\\..\\admin", 400),
    ("/a%5c..%5cadmin", 400),
    ("/ADMIN", 200),
    ("/administrator", 200),
    ("/public/../x%20y/%C3%A9%7e?q=/admin", 200),
];

fn send(proxy: &Proxy, target: &str) -> u16 {
    let bytes = format!("GET {target} HTTP/1.1\r\nHost: edge.test\r\n\r\n");
    // A refusal may also be a closed connection: nothing passed either way.
    exchange(proxy.address(), bytes.as_bytes()).map_or(400, |response| response.status)
}

#[test]
fn no_spelling_of_the_path_gets_around_the_rule() {
    let web = Upstream::fixed("upstream");
    let proxy = serving(ROUTES).pool("web", web.address()).start();
    let mut wrong = Vec::new();
    for (target, expected) in SPELLINGS {
        let before = web.hits();
        let status = send(&proxy, target);
        if status != expected {
            wrong.push(format!("{target}: {status} instead of {expected}"));
        }
        if web.hits() == before {
            continue;
        }
        // It went through: all three must have seen the same path.
        let seen = web.last_request();
        let target_there = seen.target();
        let path = target_there.split('?').next().unwrap();
        if seen.headers("x-path") != [path] {
            let script = seen.headers("x-path");
            wrong.push(format!(
                "{target}: the script read {script:?}, the upstream {path}"
            ));
        }
        if seen.headers("x-rest") != [&path[1..]] {
            let router = seen.headers("x-rest");
            wrong.push(format!(
                "{target}: the router matched {router:?}, the upstream {path}"
            ));
        }
        if path.starts_with("/admin") && path != "/administrator" {
            wrong.push(format!("{target}: the upstream got {path}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_policy_keeps_never_separates_segments() {
    let web = Upstream::fixed("upstream");
    let proxy = serving(ROUTES)
        .settings("[path]\nencoded_slash = \"keep\"\nsemicolon = \"keep\"")
        .pool("web", web.address())
        .start();
    for target in ["/admin%2fx", "/a%2f..%2fadmin", "/admin;x"] {
        assert_eq!(send(&proxy, target), 200, "{target}");
        let seen = web.last_request();
        assert!(
            seen.target().eq_ignore_ascii_case(target),
            "{target} arrived as {}",
            seen.target()
        );
        assert_eq!(seen.headers("x-path"), [seen.target()]);
        assert_eq!(seen.headers("x-rest"), [&seen.target()[1..]]);
    }
    // What was not named is still refused.
    assert_eq!(send(&proxy, "/a%5cb"), 400);
    assert_eq!(send(&proxy, "//admin"), 400);
    assert_eq!(send(&proxy, "/admin/x%2fy"), 403);
}
