//! What the top level makes once: constants, tables, CIDR lists, patterns, the environment.

use crate::support::client::get;
use crate::support::launch::serving;
use crate::support::upstream::Upstream;

#[test]
fn constants_are_visible_in_hooks_and_in_the_functions_they_call() {
    let proxy = serving(
        r#"
        const GREETING = "hello";
        const LIMITS = #{ gold: 100, basic: [1, 2, 3] };
        fn greeting() { GREETING + " " + LIMITS.gold + " " + LIMITS.basic[2] }
        route("/").respond(|req| respond(200, greeting()));
        for name in ["a", "b"] {
            route("/loop/" + name).respond(|req| respond(200, "I am " + name));
        }
        "#,
    )
    .start();
    assert_eq!(proxy.text("/"), "hello 100 3");
    assert_eq!(proxy.text("/loop/a"), "I am a");
    assert_eq!(proxy.text("/loop/b"), "I am b");
}

#[test]
fn a_table_from_a_file_and_one_from_a_map() {
    let proxy = serving(
        r#"
        const KEYS = table("keys.json");
        const ROLES = table(#{ alice: "admin" });
        route("/").respond(|req| {
            let client = KEYS.get(req.header("x-key"));
            if client == () { return respond(401); }
            if !ROLES.contains(client) { return respond(403, client); }
            respond(200, client + " is " + ROLES.get(client))
        });
        "#,
    )
    .file("keys.json", r#"{"k1": "alice", "k2": "bob"}"#)
    .start();
    assert_eq!(proxy.get("/").status, 401);
    assert_eq!(proxy.send(&get("/").header("x-key", "k9")).status, 401);
    let bob = proxy.send(&get("/").header("x-key", "k2"));
    assert_eq!((bob.status, bob.text().as_str()), (403, "bob"));
    let alice = proxy.send(&get("/").header("x-key", "k1"));
    assert_eq!(
        (alice.status, alice.text().as_str()),
        (200, "alice is admin")
    );
}

#[test]
fn cidr_decides_by_the_clients_address() {
    let web = Upstream::fixed("inside");
    let proxy = serving(
        r#"
        const HERE = cidr(["127.0.0.0/8", "::1/128"]);
        const OFFICE = cidr(["10.0.0.0/8", "fd00::/8"]);
        route("/here").on_request(|req| if !HERE.contains(req.client_ip) { respond(403) }).to("web");
        route("/office").on_request(|req| if !OFFICE.contains(req.client_ip) { respond(403) }).to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    assert_eq!(proxy.get("/here").status, 200);
    assert_eq!(proxy.get("/office").status, 403);
    // What the client says about itself decides nothing.
    let spoofed = get("/office").header("X-Forwarded-For", "10.1.2.3");
    assert_eq!(proxy.send(&spoofed).status, 403);
    assert_eq!(web.hits(), 1);
}

#[test]
fn a_regex_matches_captures_and_replaces() {
    let proxy = serving(
        r#"
        const VERSION = regex("^v([0-9]+)\\.([0-9]+)$");
        route("/{v}").respond(|req| {
            let v = req.param("v");
            if !VERSION.is_match(v) { return respond(400, "no version"); }
            let parts = VERSION.captures(v);
            respond(200, parts[1] + "-" + parts[2] + " " + VERSION.replace_all(v, "$2.$1"))
        });
        "#,
    )
    .start();
    assert_eq!(proxy.text("/v1.12"), "1-12 12.1");
    assert_eq!(proxy.get("/latest").status, 400);
}

#[test]
fn env_is_read_at_load() {
    let proxy = serving(
        r#"
        const REGION = env("EDGE_REGION");
        const ZONE = env("EDGE_ZONE_THAT_IS_NOT_SET", "none");
        route("/").respond(200, REGION + " " + ZONE);
        route("/fn").respond(|req| respond(200, REGION));
        "#,
    )
    .environment("EDGE_REGION", "eu-north")
    .start();
    assert_eq!(proxy.text("/"), "eu-north none");
    assert_eq!(proxy.text("/fn"), "eu-north");
}
