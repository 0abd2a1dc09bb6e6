//! What counts as another route after a reload, and what doesn't.

mod support;

use std::collections::HashSet;

use edgewright_script::program::RouteOutline;
use support::{inputs, try_load_from};

fn outlines(source: &str) -> Vec<RouteOutline> {
    let loaded = try_load_from(&inputs(source)).unwrap_or_else(|found| panic!("{found}"));
    loaded.program.outlines()
}

/// Everything that a route can have at once.
const ALL: &str = r#"
const KEYS = table("keys.json");
const GOLD = rate(100, "1m");
const OFFICE = cidr(["10.0.0.0/8"]);
const KEY = "0123456789abcdef0123456789abcdef";
fn gate(req) { if KEYS.get(req.header("k")) == () { return respond(401); } }
route("/all/{id}")
    .methods(["GET", "POST"]).if_header("x-a", "b").if_query("q").from(OFFICE)
    .allow(OFFICE).max_body("1KiB").limit(GOLD).concurrency(5)
    .basic_auth(htpasswd(#{ "a": "$2y$04$abcdefghijklmnopqrstuuW1p8U1g0gQnqlQ0yB8Jb0l9l3QyK2e6" }))
    .on_request(gate).on_request(|req| req.set_header("x-key", KEYS.get("k-alice")))
    .on_response(|req, res| res.set_header("x", "y"))
    .on_log(|req, res| log("info", "x"))
    .rewrite("/{id}").timeout("3s").set_header("x-b", "c").set_response_header("x-d", "e")
    .compress().mirror("canary").sticky("who", #{ key: KEY })
    .to(#{ web: 90, api: 10 });
route("/token").jwt(#{ algorithm: "HS256", secret: "0123456789abcdef0123456789abcdef", audience: ["a", "b", "c"], issuer: ["x", "y"] }).to("api");
route("/plain").to("web");
"#;

#[test]
fn the_same_text_is_the_same_and_so_is_one_further_down() {
    let all = outlines(ALL);
    assert_eq!(all.len(), 3);
    for _ in 0..20 {
        assert_eq!(outlines(ALL), all);
    }
    // Lines, closures' names, and the numbers of hooks and pools are others.
    let moved = format!(
        "\n\n// moved\npool(\"aaa\", [\"127.0.0.1:1\"]);\nfn other(req) {{ }}\n\
         route(\"/aaa\").on_request(other).on_request(|r| ()).to(\"aaa\");\n{ALL}"
    );
    let known: HashSet<_> = outlines(&moved).into_iter().collect();
    assert_eq!(known.len(), 4);
    for outline in all {
        assert!(known.contains(&outline), "{outline:?}");
    }
}

/// Replaces `from` by `to`: one route says something else, and the others don't.
fn changes_one(from: &str, to: &str) {
    assert!(ALL.contains(from), "{from}");
    let (before, after) = (outlines(ALL), outlines(&ALL.replacen(from, to, 1)));
    let differ: Vec<_> = before.iter().filter(|one| !after.contains(one)).collect();
    assert_eq!(differ.len(), 1, "{from} -> {to}");
    let still = after.iter().any(|one| one.identity == differ[0].identity);
    assert!(still, "{from} -> {to}: the same route");
}

#[test]
fn whatever_a_route_says_counts() {
    for (from, to) in [
        (r#".if_header("x-a", "b")"#, r#".if_header("x-a", "c")"#),
        (r#".if_query("q")"#, ""),
        (r#".from(OFFICE)"#, ""),
        (r#".allow(OFFICE)"#, r#".deny(OFFICE)"#),
        (r#".max_body("1KiB")"#, r#".max_body("2KiB")"#),
        (r#"rate(100, "1m")"#, r#"rate(101, "1m")"#),
        (".concurrency(5)", ".concurrency(6)"),
        (".basic_auth(", ".forward_auth(\"api\").basic_auth("),
        (".on_request(gate)", ""),
        (".on_log(|req, res| log(\"info\", \"x\"))", ""),
        (r#".rewrite("/{id}")"#, r#".rewrite("/x/{id}")"#),
        (r#".timeout("3s")"#, r#".timeout("4s")"#),
        (r#".set_header("x-b", "c")"#, r#".add_header("x-b", "c")"#),
        (".compress()", ""),
        (r#".mirror("canary")"#, r#".mirror("admin")"#),
        (r#".sticky("who""#, r#".sticky("which""#),
        ("web: 90, api: 10", "web: 91, api: 10"),
        ("web: 90, api: 10", "web: 90, admin: 10"),
        (r#"audience: ["a", "b", "c"]"#, r#"audience: ["a", "b"]"#),
        (r#"/plain").to("web")"#, r#"/plain").to("api")"#),
        (r#"/plain").to("web")"#, r#"/plain").respond(200, "x")"#),
        (r#"/plain").to("web")"#, r#"/plain").to(|req| "web")"#),
    ] {
        changes_one(from, to);
    }
}

#[test]
fn another_pattern_method_or_host_is_another_route() {
    let one = outlines(r#"route("/a").to("web");"#);
    for other in [
        r#"route("/b").to("web");"#,
        r#"route("/a").methods(["GET"]).to("web");"#,
        r#"site("a.test").route("/a").to("web");"#,
    ] {
        assert_ne!(outlines(other)[0].identity, one[0].identity, "{other}");
    }
}

#[test]
fn what_functions_and_files_hold_does_not_count() {
    let with = |body: &str, captured: i64| {
        outlines(&format!(
            "const KEYS = table(\"keys.json\");\nfn gate(req) {{ {body} }}\nlet n = {captured};\n\
             route(\"/\").on_request(gate).on_request(|req| if n == 3 {{ {body} }}).to(\"web\");"
        ))
    };
    assert_eq!(with("", 1), with("req.set_header(\"a\", \"b\");", 1));
    // What a closure captured stands in the route's statement.
    assert_ne!(with("", 1), with("", 2));
}
