//! Case `preflight`: a CORS preflight meets authentication first, and the 401 lacks CORS headers
//! (kong 841, 399, 4423). And all else that `.cors` does.

use crate::support::client::{Request, Response, get, request};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::{Upstream, answer, ok};

const APP: &str = "https://app.example";

fn preflight(target: &str, origin: &str, method: &str) -> Request {
    request("OPTIONS", target)
        .header("origin", origin)
        .header("access-control-request-method", method)
}

fn from(target: &str, origin: &str) -> Request {
    get(target).header("origin", origin)
}

/// The CORS fields and Vary, as `name=value`, in order.
fn fields(response: &Response) -> String {
    let mut fields: Vec<String> = response
        .headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .filter(|(name, _)| name.starts_with("access-control-") || name == "vary")
        .map(|(name, value)| format!("{}={value}", name.trim_start_matches("access-control-")))
        .collect();
    fields.sort();
    fields.join("; ")
}

fn api(web: &Upstream) -> Proxy {
    serving(
        r#"
        const WHO = #{
            origins: ["https://app.example", "https://*.apps.example.com"], methods: ["GET", "PUT"],
            headers: ["authorization", "x-key"], expose: "x-total", credentials: true, max_age: "1h",
        };
        route("/api/{*rest}").cors(WHO).on_request(|req| {
            if req.header("authorization") != "Bearer right" { return respond(401, "no\n"); }
            if req.query("fail") != () { throw "on purpose"; }
            req.remove_header("origin");
        }).to("web");
        "#,
    )
    .pool("web", web.address())
    .start()
}

const ALLOWED: &str = "allow-credentials=true; allow-origin=https://app.example; \
                       expose-headers=x-total; vary=Origin";

#[test]
fn a_preflight_is_answered_before_authentication() {
    let web = Upstream::fixed("ok");
    let proxy = api(&web);
    let asked = preflight("/api/x", APP, "PUT").header("access-control-request-headers", "x-key");
    let answered = proxy.send(&asked);
    assert_eq!((answered.status, answered.text().as_str()), (204, ""));
    assert_eq!(
        fields(&answered),
        "allow-credentials=true; allow-headers=authorization, x-key; allow-methods=GET, PUT; \
         allow-origin=https://app.example; max-age=3600; vary=Origin"
    );
    assert!(answered.header("content-length").is_none());

    let strange = proxy.send(&preflight("/api/x", "https://evil.example", "GET"));
    assert_eq!(
        (strange.status, fields(&strange).as_str()),
        (403, "vary=Origin")
    );
    let labels = [("route", "/api/{*rest}"), ("gate", "cors")];
    assert_eq!(proxy.metric("gate_refusals_total", &labels), 1.0);
    assert_eq!(web.hits(), 0);
}

#[test]
fn an_options_that_is_no_preflight_goes_the_normal_way() {
    let web = Upstream::fixed("ok");
    let proxy = api(&web);
    let plain = request("OPTIONS", "/api/x");
    assert_eq!(proxy.send(&plain).status, 401);
    assert_eq!(proxy.send(&plain.clone().header("origin", APP)).status, 401);
    let method = plain.clone().header("access-control-request-method", "GET");
    assert_eq!(proxy.send(&method).status, 401);
    let let_in = plain.header("authorization", "Bearer right");
    assert_eq!(proxy.send(&let_in).status, 200);
    assert_eq!(web.last_request().method(), "OPTIONS");
}

#[test]
fn every_response_says_who_may_read_it() {
    let web = Upstream::start(|seen| {
        if seen.target().contains("hang") {
            return crate::support::upstream::Action::Hangup;
        }
        ok("ok")
    });
    let proxy = api(&web);
    let wrong = proxy.send(&from("/api/x", APP).header("authorization", "Bearer wrong"));
    assert_eq!((wrong.status, fields(&wrong).as_str()), (401, ALLOWED));
    let right =
        |target: &str| proxy.send(&from(target, APP).header("authorization", "Bearer right"));
    for (target, status) in [("/api/x", 200), ("/api/hang", 502), ("/api/x?fail", 500)] {
        let response = right(target);
        assert_eq!(
            (response.status, fields(&response).as_str()),
            (status, ALLOWED)
        );
    }
    // A page that may not read it gets it all the same, and its browser keeps it from it.
    let strange = from("/api/x", "https://evil.example").header("authorization", "Bearer right");
    let strange = proxy.send(&strange);
    assert_eq!(
        (strange.status, fields(&strange).as_str()),
        (200, "vary=Origin")
    );
    let none = proxy.send(&get("/api/x").header("authorization", "Bearer right"));
    assert_eq!((none.status, fields(&none).as_str()), (200, "vary=Origin"));
    let wildcard = proxy.send(&from("/api/x", "https://a.apps.example.com"));
    assert!(fields(&wildcard).contains("allow-origin=https://a.apps.example.com;"));
}

/// So does what gates refuse: a page must be able to read why.
#[test]
fn refusals_of_gates_say_it_too() {
    let proxy = serving(
        r#"
        const WHO = #{ origins: ["https://app.example"] };
        route("/denied").cors(WHO).deny("127.0.0.0/8").respond(200);
        route("/limited").cors(WHO).limit(1, "1h").respond(200);
        route("/body").cors(WHO).max_body("1B").respond(200);
        "#,
    )
    .start();
    let said = "allow-origin=https://app.example; vary=Origin";
    for (request, status) in [
        (from("/denied", APP), 403),
        (from("/limited", APP), 200),
        (from("/limited", APP), 429),
        (from("/body", APP).body("long"), 413),
    ] {
        let response = proxy.send(&request);
        assert_eq!(
            (response.status, fields(&response).as_str()),
            (status, said)
        );
    }
    // A preflight is no request of its own: it uses up nothing and nobody keeps it out.
    for target in ["/denied", "/limited"] {
        assert_eq!(proxy.send(&preflight(target, APP, "GET")).status, 204);
    }
}

#[test]
fn what_the_upstream_says_of_it_is_replaced() {
    let web = Upstream::start(|_| {
        let own = [
            ("Access-Control-Allow-Origin", "*"),
            ("Access-Control-Allow-Credentials", "true"),
            ("Access-Control-Expose-Headers", "x-secret"),
            ("Access-Control-Max-Age", "9"),
            ("Vary", "accept-encoding"),
            ("Vary", "ORIGIN"),
        ];
        answer(200, &own, "ok")
    });
    let proxy = serving(
        r#"
        route("/one").cors(#{ origins: "https://app.example" }).to("web");
        route("/any").cors(#{ origins: "*", expose: ["*"] }).to("web");
        route("/own").to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    let vary = "vary=ORIGIN; vary=accept-encoding";
    let said = |target: &str, origin: &str| fields(&proxy.send(&from(target, origin)));
    assert_eq!(said("/one", APP), format!("allow-origin={APP}; {vary}"));
    assert_eq!(said("/one", "https://evil.example"), vary);
    assert_eq!(
        said("/any", APP),
        format!("allow-origin=*; expose-headers=*; {vary}")
    );
    assert_eq!(
        fields(&proxy.get("/any")),
        format!("allow-origin=*; expose-headers=*; {vary}")
    );
    assert!(said("/own", APP).starts_with("allow-credentials=true; allow-origin=*;"));
    // Nor does a route without `.cors` answer preflights.
    assert_eq!(proxy.send(&preflight("/own", APP, "GET")).status, 200);
    assert_eq!(web.last_request().method(), "OPTIONS");
}

/// A preflight finds the route that the request which it asks about will take.
#[test]
fn a_preflight_finds_the_route_of_what_it_asks_about() {
    let proxy = serving(
        r#"
        fn who(name) { #{ origins: ["https://app.example"], expose: name, methods: name } }
        route("/x").methods(["GET"]).cors(who("GET")).respond(200);
        route("/x").methods(["PUT"]).cors(who("PUT")).respond(200);
        route("/x").methods(["DELETE"]).respond(200);
        route("/x").methods(["PATCH"]).if_header("x-version", "2").when(|req| false).cors(who("PATCH")).respond(200);
        route("/{*rest}").cors(#{ origins: "*" }).respond(200);
        let other = site("other.test");
        other.route("/{*rest}").cors(#{ origins: "*", methods: "*" }).respond(200);
        "#,
    )
    .start();
    let said = |request: &Request| {
        let response = proxy.send(request);
        let methods = response.header("access-control-allow-methods");
        format!("{} {}", response.status, methods.unwrap_or("-"))
    };
    assert_eq!(said(&preflight("/x", APP, "GET")), "204 GET");
    assert_eq!(said(&preflight("/x", APP, "PUT")), "204 PUT");
    // It can't say which fields the request will have, nor what a function would say of it.
    assert_eq!(said(&preflight("/x", APP, "PATCH")), "204 PATCH");
    // The route that will be taken has no `.cors`: no other one speaks for it.
    assert_eq!(said(&preflight("/x", APP, "DELETE")), "405 -");
    // As the request itself, one with another method fits the next pattern only where routes of the
    // first don't fit at all.
    assert_eq!(said(&preflight("/y", APP, "PUT")), "204 GET, HEAD, POST");
    assert_eq!(
        said(&preflight("/y", APP, "PUT").host("other.test")),
        "204 *"
    );
    assert_eq!(said(&preflight("/y", APP, "get")), "204 GET, HEAD, POST");
}
