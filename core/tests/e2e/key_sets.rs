//! `jwks(..)`: fetched in the background, rotated by the issuer, and closed while there is none.

use std::io::Read as _;
use std::sync::{Arc, Mutex};

use crate::support::client::{Response, get};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::{Action, Upstream, answer, ok};
use crate::support::wait::{self, SOON};

macro_rules! key {
    ($name:literal) => {
        include_str!(concat!("../../../script-api/tests/keys/", $name))
    };
}

const PROGRAM: &str = r#"
    const KEYS = jwks("issuer", #{ path: "/keys?v=1", refresh: "1h" });
    const PRIVATE = secret("rsa.pem");
    route("/{*rest}").jwt(#{ algorithm: "RS256", jwks: KEYS }).to("web");
    route("/script").on_request(|req| {
        let token = req.header("authorization");
        if jwt_verify(token.sub_string(7), #{ algorithm: "RS256", jwks: KEYS }) == () { return respond(401); }
    }).to("web");
    route("/sign/{kid}").respond(|req| {
        let how = #{ algorithm: "RS256", private_key: PRIVATE, kid: req.param("kid") };
        respond(200, jwt_sign(#{ exp: now() + 3600.0 }, how))
    });
"#;

/// What the issuer answers.
type Says = Arc<Mutex<Box<dyn Fn() -> Action + Send>>>;

fn issuer(first: impl Fn() -> Action + Send + 'static) -> (Upstream, Says) {
    let says: Says = Arc::new(Mutex::new(Box::new(first)));
    let answers = says.clone();
    (Upstream::start(move |_| answers.lock().unwrap()()), says)
}

fn say(says: &Says, what: impl Fn() -> Action + Send + 'static) {
    *says.lock().unwrap() = Box::new(what);
}

/// The set of the issuer, in which the RSA key is called `kid`.
fn set(kid: &str) -> String {
    key!("set.json").replace("\"kid\": \"rsa\"", &format!("\"kid\": \"{kid}\""))
}

fn start(issuer: &Upstream, web: &Upstream) -> Proxy {
    serving(PROGRAM)
        .file("rsa.pem", key!("rsa.pem"))
        .settings("[dns]\nstartup_timeout = \"20s\"")
        .pool("issuer", issuer.address())
        .pool("web", web.address())
        .start()
}

fn shown(proxy: &Proxy, target: &str, token: &str) -> Response {
    proxy.send(&get(target).header("authorization", &format!("Bearer {token}")))
}

const SOURCE: [(&str, &str); 1] = [("source", "pool issuer /keys?v=1")];

#[test]
fn keys_are_there_with_the_first_request_and_follow_the_issuer() {
    let web = Upstream::fixed("web");
    let (issuer, says) = issuer(|| ok(set("one")));
    let proxy = start(&issuer, &web);
    assert_eq!(issuer.only_request().target(), "/keys?v=1");
    let one = proxy.text("/sign/one");
    for target in ["/", "/script"] {
        assert_eq!(shown(&proxy, target, &one).status, 200, "{target}");
    }
    assert!(proxy.metric("jwks_keys", &SOURCE) >= 4.0);
    assert!(proxy.metric("jwks_age_seconds", &SOURCE) < 3600.0);

    // The issuer signs with a new key: a token that names it makes the proxy ask, once, and not
    // while the client waits.
    say(&says, || ok(set("two")));
    let two = proxy.text("/sign/two");
    assert_eq!(shown(&proxy, "/", &two).status, 401);
    for unknown in 0..50 {
        let token = proxy.text(&format!("/sign/unknown-{unknown}"));
        assert_eq!(shown(&proxy, "/", &token).status, 401);
    }
    wait::until("the new key", SOON, || {
        shown(&proxy, "/", &two).status == 200
    });
    assert_eq!(shown(&proxy, "/", &one).status, 401, "the old key is gone");
    assert!(issuer.hits() <= 3, "{} fetches", issuer.hits());
    assert_eq!(issuer.connections(), 1, "no request has fetched it");
}

#[test]
fn what_is_no_set_changes_nothing() {
    let web = Upstream::fixed("web");
    let (issuer, says) = issuer(|| ok(set("one")));
    let proxy = start(&issuer, &web);
    let one = proxy.text("/sign/one");
    say(&says, || answer(500, &[], set("two")));
    let two = proxy.text("/sign/two");
    assert_eq!(shown(&proxy, "/", &two).status, 401);
    wait::until("a failure", SOON, || {
        proxy.metric("jwks_failures_total", &SOURCE) >= 1.0
    });
    assert_eq!(
        shown(&proxy, "/", &one).status,
        200,
        "the last good set stays"
    );
    for what in [
        "no json",
        "{\"keys\": []}",
        "{\"keys\": [{\"kty\": \"oct\", \"k\": \"AAAA\"}]}",
    ] {
        say(&says, move || ok(what));
        let before = proxy.metric("jwks_failures_total", &SOURCE);
        wait::until("another failure", SOON, || {
            proxy.metric("jwks_failures_total", &SOURCE) > before
        });
        assert_eq!(shown(&proxy, "/", &one).status, 200, "{what}");
    }
    assert!(
        proxy
            .log
            .text()
            .contains("key set not fetched source=pool issuer /keys?v=1")
    );
}

#[test]
fn without_a_set_nobody_gets_through_and_it_is_asked_for_again() {
    let web = Upstream::fixed("web");
    let (issuer, says) = issuer(|| Action::Hangup);
    let proxy = start(&issuer, &web);
    let token = proxy.text("/sign/one");
    assert_eq!(shown(&proxy, "/", &token).status, 503);
    assert_eq!(shown(&proxy, "/script", &token).status, 401);
    assert_eq!(proxy.get("/").status, 401, "who shows nothing");
    assert_eq!(web.hits(), 0);
    say(&says, || ok(set("one")));
    wait::until("the set", SOON, || shown(&proxy, "/", &token).status == 200);
}

#[test]
fn a_set_that_is_too_large_or_too_slow_is_none() {
    let web = Upstream::fixed("web");
    let (issuer, says) = issuer(|| ok(format!("{}{}", set("one"), " ".repeat(300 * 1024))));
    let proxy = start(&issuer, &web);
    let token = proxy.text("/sign/one");
    assert_eq!(shown(&proxy, "/", &token).status, 503);
    say(&says, || {
        // Until the proxy has had enough.
        Action::Write(Box::new(|stream| stream.read(&mut [0]).map(drop)))
    });
    let before = issuer.hits();
    issuer.wait_hits(before + 1, SOON);
    assert_eq!(shown(&proxy, "/", &token).status, 503);
    assert_eq!(web.hits(), 0);
}

#[test]
fn a_reload_keeps_what_was_fetched() {
    let web = Upstream::fixed("web");
    let (issuer, says) = issuer(|| ok(set("one")));
    let proxy = start(&issuer, &web);
    let one = proxy.text("/sign/one");
    say(&says, || Action::Hangup);
    std::fs::write(
        proxy.file("routes.rhai"),
        format!("{PROGRAM}\nroute(\"/new\").respond(200);"),
    )
    .unwrap();
    assert_eq!(proxy.reload().0, 200);
    assert_eq!(proxy.get("/new").status, 200);
    assert_eq!(shown(&proxy, "/", &one).status, 200);
    assert_eq!(issuer.hits(), 1, "it was not fetched anew");

    // Another source is another set.
    say(&says, || ok(set("two")));
    std::fs::write(
        proxy.file("routes.rhai"),
        PROGRAM.replace("/keys?v=1", "/keys?v=2"),
    )
    .unwrap();
    assert_eq!(proxy.reload().0, 200);
    let two = proxy.text("/sign/two");
    assert_eq!(
        shown(&proxy, "/", &two).status,
        200,
        "it is there with the first request"
    );
    assert_eq!(issuer.last_request().target(), "/keys?v=2");
}
