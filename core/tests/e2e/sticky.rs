//! `.sticky`: which target a client stays with, and when it moves.

use std::collections::BTreeSet;
use std::net::TcpListener;

use crate::support::client::{Response, get};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::Upstream;

fn cookie(answer: &Response) -> Option<String> {
    let line = answer.header("set-cookie")?;
    Some(line.split(';').next().unwrap().to_owned())
}

fn with(cookie: &str) -> crate::support::client::Request {
    get("/").header("cookie", cookie)
}

/// The first answer, and its cookie.
fn arrive(proxy: &Proxy) -> (String, String) {
    let first = proxy.get("/");
    (first.text(), cookie(&first).unwrap())
}

#[test]
fn a_target_that_is_gone_is_replaced_and_so_is_the_cookie() {
    let one = Upstream::fixed("one");
    let two = Upstream::fixed("two");
    let pool = |targets: &[String]| {
        format!(
            "[pools.web]\nbalance = \"round_robin\"\ntargets = [{}]\n",
            targets.join(", ")
        )
    };
    let quoted = |upstream: &Upstream| format!("\"{}\"", upstream.address());
    let both = pool(&[quoted(&one), quoted(&two)]);
    let proxy = serving(r#"route("/").to("web").sticky("lb");"#)
        .settings(&both)
        .start();
    let (name, first) = arrive(&proxy);
    for _ in 0..6 {
        let again = proxy.send(&with(&first));
        assert_eq!((again.text(), cookie(&again)), (name.clone(), None));
    }
    let (stays, goes) = if name == "one" {
        (&two, &one)
    } else {
        (&one, &two)
    };
    let rest = proxy.settings().replace(&both, &pool(&[quoted(stays)]));
    std::fs::write(proxy.file("edgewright.toml"), &rest).unwrap();
    assert_eq!(proxy.reload().0, 200);
    let moved = proxy.send(&with(&first));
    assert_ne!(moved.text(), name);
    let second = cookie(&moved).unwrap();
    assert_ne!(second, first);

    // With a weight of 0 those who are there stay, and nobody comes.
    let drained = format!("{{ target = {}, weight = 0 }}", quoted(stays));
    let drained = proxy
        .settings()
        .replace(&both, &pool(&[drained, quoted(goes)]));
    std::fs::write(proxy.file("edgewright.toml"), drained).unwrap();
    assert_eq!(proxy.reload().0, 200);
    for _ in 0..6 {
        let again = proxy.send(&with(&second));
        assert_eq!((again.text(), cookie(&again)), (moved.text(), None));
        assert_eq!(proxy.text("/"), name);
    }
    let count = |outcome| proxy.metric("sticky_requests_total", &[("outcome", outcome)]);
    assert_eq!((count("kept"), count("moved")), (12.0, 1.0));
}

#[test]
fn a_target_that_can_not_be_reached_is_left() {
    let alive = Upstream::fixed("alive");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let dead = listener.local_addr().unwrap();
    let proxy = serving(r#"route("/").to("web").sticky("lb");"#)
        .settings(&format!(
            "[pools.web]\ntargets = [\"{}\", \"{dead}\"]",
            alive.address()
        ))
        .start();
    drop(listener);
    // Whoever it is that a request is sent to first, the cookie names who has answered.
    let (name, first) = arrive(&proxy);
    assert_eq!(name, "alive");
    for _ in 0..5 {
        let again = proxy.send(&with(&first));
        assert_eq!((again.text().as_str(), cookie(&again)), ("alive", None));
        assert_eq!(arrive(&proxy).1, first);
    }
}

#[test]
fn stamps_are_the_same_on_all_replicas_and_follow_the_secret() {
    let web = Upstream::fixed("web");
    let stamp = |options: &str| {
        let routes = format!("route(\"/\").to(\"web\").sticky(\"lb\", #{{ {options} }});");
        let proxy = serving(&routes).pool("web", web.address()).start();
        let answer = proxy.get("/");
        (
            cookie(&answer).unwrap(),
            answer.header("set-cookie").unwrap().to_owned(),
        )
    };
    let (open, line) = stamp("");
    assert!(line.ends_with("; Path=/; HttpOnly; SameSite=Lax"), "{line}");
    assert_eq!(stamp("").0, open);
    let secret = "secret: \"0123456789abcdef\"";
    let (closed, line) = stamp(&format!(
        "{secret}, path: \"/app\", same_site: \"Strict\", secure: true, http_only: false"
    ));
    assert!(
        line.ends_with("; Path=/app; Secure; SameSite=Strict"),
        "{line}"
    );
    assert_eq!(stamp(secret).0, closed);
    let other = stamp("secret: \"0123456789abcdeF\"").0;
    assert_eq!(BTreeSet::from([&open, &closed, &other]).len(), 3);
    assert!(!open.contains(&web.address().to_string()));
}

#[test]
fn it_works_behind_functions_and_hashes() {
    let one = Upstream::fixed("one");
    let two = Upstream::fixed("two");
    let targets = format!("targets = [\"{}\", \"{}\"]", one.address(), two.address());
    let proxy = serving(
        r#"
        route("/").to(|req| req.header("x-pool") ?? "hashed").sticky("lb");
        route("/removed").to("other").sticky("lb").remove_response_header("set-cookie");
        "#,
    )
    .settings(&format!(
        "[pools.hashed]\n{targets}\nbalance = \"hash\"\nhash_on = \"header x-user\"\n[pools.other]\n{targets}"
    ))
    .start();
    let (name, held) = arrive(&proxy);
    for user in 0..10 {
        // The hash of most of them would send them elsewhere.
        let request = with(&held).header("x-user", &user.to_string());
        let again = proxy.send(&request);
        assert_eq!((again.text(), cookie(&again)), (name.clone(), None));
    }
    // The function chooses the pool, and the cookie is of that one then.
    let other = proxy.send(&with(&held).header("x-pool", "other"));
    let second = cookie(&other).unwrap();
    assert_ne!(second, held);
    let again = proxy.send(&with(&second).header("x-pool", "other"));
    assert_eq!((again.text(), cookie(&again)), (other.text(), None));
    assert_eq!(cookie(&proxy.get("/removed")), None);
}

#[test]
fn what_a_client_would_refuse_is_an_error_at_load() {
    for (route, expected) in [
        (".to(\"web\").sticky(\"a b\")", "no name of a cookie"),
        (
            ".to(\"web\").sticky(\"a\", #{ same_site: \"None\" })",
            "`secure: true` too",
        ),
        (
            ".to(\"web\").sticky(\"a\", #{ secret: \"short\" })",
            "16 bytes at the least",
        ),
        (
            ".to(\"web\").sticky(\"a\", #{ ttl: \"10ms\" })",
            "whole seconds",
        ),
        (
            ".to(\"web\").sticky(\"a\", #{ tll: \"10s\" })",
            "did you mean `ttl`?",
        ),
        (
            ".to(\"web\").sticky(\"a\").sticky(\"b\")",
            "has a `.sticky` already",
        ),
        (
            ".respond(200, \"\").sticky(\"a\")",
            "`.sticky` does nothing",
        ),
    ] {
        let folder = tempfile::TempDir::new().unwrap();
        let program = format!("pool(\"web\", [\"a:1\"]);\nroute(\"/\"){route};\n");
        std::fs::write(folder.path().join("routes.rhai"), program).unwrap();
        let ended = crate::support::command::edgewright(["check".as_ref(), folder.path()]);
        assert_eq!(ended.code, Some(1), "{route}: {ended:?}");
        assert!(ended.text().contains(expected), "{route}: {ended:?}");
    }
}
