//! What a program says and what it means: matching, hooks, constants, closures.

#![allow(clippy::unwrap_used)]

mod support;

use edgewright_script::memory::MemoryRequest;
use support::{End, program};

const EXAMPLE: &str = r#"
const KEYS   = table("keys.json");
const OFFICE = cidr(["10.0.0.0/8", "fd00::/8"]);

route("/healthz").respond(200, "ok\n");

route("/api/{version}/{*rest}")
    .methods(["GET", "POST"])
    .on_request(require_key)
    .rewrite("/{rest}")
    .timeout("3s")
    .to("api");

route("/{*rest}").to(#{ web: 95, canary: 5 });
route("/beta/{*rest}").to(|req| if req.cookie("beta") == "1" { "canary" } else { "web" });

let admin = site("admin.example.com");
admin.on_request(|req| if !OFFICE.contains(req.client_ip) { respond(403) });
admin.route("/{*rest}").to("admin");

fn require_key(req) {
    let client = KEYS.get(req.header("x-api-key"));
    if client == () { return respond(401, "unknown API key\n"); }
    req.set_header("x-client", client);
}
"#;

fn pool(name: &str) -> End {
    End::Pool(name.to_owned())
}

fn answer(status: u16, body: &str) -> End {
    End::Answer(status, body.to_owned())
}

#[test]
fn the_example_of_the_documentation() {
    let mut edge = program(EXAMPLE);
    assert_eq!(edge.get("/healthz"), answer(200, "ok\n"));
    assert_eq!(edge.get("/api/v1/x"), answer(401, "unknown API key\n"));
    let mut keyed =
        MemoryRequest::new("POST", "h", "/api/v1/x").with_header("x-api-key", "k-alice");
    assert_eq!(edge.run(&mut keyed).unwrap(), pool("api"));
    assert_eq!(keyed.headers["x-client"], "alice");
    let mut delete = MemoryRequest::new("DELETE", "h", "/api/v1/x");
    // `/{*rest}` fits too, but it is no way around the gate.
    let allow = End::MethodNotAllowed("GET, HEAD, POST".to_owned());
    assert_eq!(edge.run(&mut delete).unwrap(), allow);
    assert_eq!(edge.get("/beta/x"), pool("web"));
    let mut beta = MemoryRequest::new("GET", "h", "/beta").with_header("cookie", "a=b; beta=1");
    assert_eq!(edge.run(&mut beta).unwrap(), pool("canary"));

    let mut outside = MemoryRequest::new("GET", "admin.example.com", "/x");
    assert_eq!(edge.run(&mut outside).unwrap(), answer(403, ""));
    outside.client_ip = "10.1.2.3".parse().unwrap();
    assert_eq!(edge.run(&mut outside).unwrap(), pool("admin"));
}

#[test]
fn specificity_decides_not_order() {
    let edge = program(
        r#"
        route("/{*rest}").respond(200);
        route("/a/{id}").respond(200);
        route("/a/b").respond(200);
        route("/a/{id}/c").respond(200);
        route("/a/b/{*rest}").respond(200);
        route("/").respond(200);
        "#,
    );
    let label = |path| edge.route_label(&MemoryRequest::new("GET", "h", path));
    assert_eq!(label("/a/b"), "/a/b");
    assert_eq!(label("/a/x"), "/a/{id}");
    assert_eq!(label("/a/b/c"), "/a/b/{*rest}");
    assert_eq!(label("/a/x/c"), "/a/{id}/c");
    assert_eq!(label("/a/x/d"), "/{*rest}");
    assert_eq!(label("/"), "/");
}

#[test]
fn methods_and_conditions_break_ties() {
    let mut edge = program(
        r#"
        route("/x").to("web");
        route("/x").if_header("x-v", "2").to("api");
        route("/x").methods(["GET"]).to("canary");
        route("/only").methods(["GET", "PUT"]).respond(200);
        route("/q").if_query("debug").if_cookie("c", regex("^[0-9]+$")).respond(200);
        route("/n").from("10.0.0.0/8").respond(200);
        "#,
    );
    assert_eq!(edge.get("/x"), pool("canary"));
    let mut post = MemoryRequest::new("POST", "h", "/x").with_header("x-v", "2");
    assert_eq!(edge.run(&mut post).unwrap(), pool("api"));
    let mut post = MemoryRequest::new("POST", "h", "/x");
    assert_eq!(edge.run(&mut post).unwrap(), pool("web"));
    let mut delete = MemoryRequest::new("DELETE", "h", "/only");
    let allow = End::MethodNotAllowed("GET, HEAD, PUT".to_owned());
    assert_eq!(edge.run(&mut delete).unwrap(), allow);
    let mut head = MemoryRequest::new("HEAD", "h", "/only");
    assert_eq!(edge.run(&mut head).unwrap(), answer(200, ""));
    assert_eq!(edge.get("/q?debug"), End::NotFound);
    let mut both = MemoryRequest::new("GET", "h", "/q?debug").with_header("cookie", "c=12");
    assert_eq!(edge.run(&mut both).unwrap(), answer(200, ""));
    assert_eq!(edge.get("/n"), End::NotFound);
}

#[test]
fn when_falls_through_to_the_next_route() {
    let mut edge = program(
        r#"
        route("/w/{n}").when(|req| req.param("n") == "1").respond(200, "one");
        route("/w/{*rest}").respond(200, "rest");
        "#,
    );
    assert_eq!(edge.get("/w/1"), answer(200, "one"));
    assert_eq!(edge.get("/w/2"), answer(200, "rest"));
}

#[test]
fn closures_keep_their_own_values() {
    let mut edge = program(
        r#"
        const DENY = respond(418, "teapot");
        const GATE = |req| if req.query("x") == "1" { DENY };
        for name in ["a", "b"] {
            route(`/loop/${name}`).respond(|req| respond(200, name));
        }
        fn put(path, body) { route(path).on_request(GATE).respond(|req| respond(200, body + SUFFIX)); }
        const SUFFIX = "!";
        put("/fn/1", "one");
        put("/fn/2", "two");
        "#,
    );
    assert_eq!(edge.get("/loop/a"), answer(200, "a"));
    assert_eq!(edge.get("/loop/b"), answer(200, "b"));
    assert_eq!(edge.get("/fn/1"), answer(200, "one!"));
    assert_eq!(edge.get("/fn/2"), answer(200, "two!"));
    assert_eq!(edge.get("/fn/2?x=1"), answer(418, "teapot"));
}

#[test]
fn constants_are_visible_everywhere() {
    let mut edge = program(
        r#"
        const REGION = env("REGION");
        const ZONE = env("ZONE", "z1");
        const PLANS = #{ gold: 100, free: 10 };
        const LIST = ["x", "y"];
        fn label() { REGION + "/" + ZONE }
        fn limit_of(plan) { PLANS[plan] }
        const LABEL = label();
        route("/c").respond(|req| respond(200, `${LABEL} ${limit_of("gold")} ${LIST[1]} ${"x" in LIST}`));
        "#,
    );
    assert_eq!(edge.get("/c"), answer(200, "eu/z1 100 y true"));
}

#[test]
fn hooks_of_all_sites_of_the_site_and_of_the_route_run_in_order() {
    let mut edge = program(
        r#"
        on_request(|req| req.add_header("x-order", "all"));
        let s = site(["one.example", "*.two.example"]);
        s.route("/").on_request(|req| req.add_header("x-order", "route")).to("web");
        s.on_request(|req| req.add_header("x-order", "site"));
        "#,
    );
    for host in ["one.example", "a.two.example"] {
        let mut request = MemoryRequest::new("GET", host, "/");
        assert_eq!(edge.run(&mut request).unwrap(), pool("web"));
        let order: Vec<_> = request.headers.get_all("x-order").iter().collect();
        assert_eq!(order, ["all", "site", "route"]);
    }
    let mut other = MemoryRequest::new("GET", "two.example", "/");
    assert_eq!(edge.run(&mut other).unwrap(), End::NotFound);
}

#[test]
fn what_is_absent_never_throws() {
    let mut edge = program(
        r#"
        const KEYS = table("keys.json");
        route("/absent").respond(|req| {
            let h = req.header("x-none");
            let all = [
                h.starts_with("a"), h.ends_with("a"), h.contains("a"), "a" in h,
                regex_is(h), h.len(), h.split(",").len(), h.to_lower() == (),
                KEYS.get(h) == (), num("x") == (), num(" 12 "), num("1.5"), num(h) == (),
            ];
            req.set_header("x-none", h);
            respond(200, all.to_string())
        });
        const RE = regex("a");
        fn regex_is(text) { RE.is_match(text) }
        "#,
    );
    let expected = "[false, false, false, false, false, 0, 0, true, true, true, 12, 1.5, true]";
    assert_eq!(edge.get("/absent"), answer(200, expected));
}

#[test]
fn redirects_and_captures() {
    let mut edge = program(
        r#"
        route("/with").respond(respond(201, "made").header("x-a", "1"));
        route("/old/{id}/{*rest}").redirect(308, "https://new.example/{id}?from={rest}");
        route("/p/{a}/{b}").respond(|req| respond(200, `${req.params.a}-${req.param("b")}-${req.param("c") == ()}`));
        "#,
    );
    assert_eq!(edge.get("/with"), answer(201, "made"));
    assert_eq!(
        edge.get("/old/7/x/y"),
        answer(308, "https://new.example/7?from=x/y")
    );
    assert_eq!(edge.get("/p/1/%2E"), answer(200, "1-%2E-true"));
}

#[test]
fn closures_inside_hooks_see_constants_and_functions() {
    let mut edge = program(
        r#"
        const KEYS = table("keys.json");
        route("/in").respond(|req| {
            let names = ["k-alice", "k-none", "k-bob"].filter(|k| known(k)).map(|k| KEYS.get(k));
            let pick = later;
            respond(200, pick.call(names))
        });
        fn known(key) { [1].some(|n| KEYS.contains(key)) }
        fn later(names) { names[0] + "," + names[1] }
        "#,
    );
    assert_eq!(edge.get("/in"), answer(200, "alice,bob"));
}
