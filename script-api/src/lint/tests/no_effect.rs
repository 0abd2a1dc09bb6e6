//! Statements without an effect.

use super::{check, lint};

#[test]
fn values_thrown_away() {
    for (source, place, length, text) in [
        (
            "const DENY = respond(403);\nfn f(req) {\n    if req.path == \"/\" { DENY; }\n    req.set_header(\"a\", \"b\");\n}",
            "3:26",
            4,
            "DENY",
        ),
        ("const M = #{}; fn f() { M.d; 1 }", "1:25", 3, "M.d"),
        ("fn f(a) { a?.b.c; 1 }", "1:11", 6, "a.b.c"),
        (
            "fn f(a, i) { a[i].b[\"c\"][0]; 1 }",
            "1:14",
            6,
            "a[i].b[\"c\"][0]",
        ),
        ("fn f(a) { a[a.b]; 1 }", "1:11", 1, "a[a.b]"),
        ("fn f() { this.x; 1 }", "1:10", 6, "this.x"),
        ("fn f() { VERSION; 1 }", "1:10", 7, "VERSION"),
        ("fn f() { deny; 1 } fn deny() { 1 }", "1:10", 4, "deny(..)"),
        (
            "const K = 1; fn f() { global::K; 1 }",
            "1:23",
            9,
            "global::K",
        ),
        ("import \"m\" as m; fn f() { m::K; 1 }", "1:27", 4, "m::K"),
        (
            "fn f(x) { if x { \"canary\" } \"web\" }",
            "1:18",
            8,
            "\"canary\"",
        ),
        ("fn f(x) { if x { true } false }", "1:18", 4, "true"),
        ("fn f(x) { for y in x { y } }", "1:24", 1, "y"),
        ("fn f(x) { while x { x.y } }", "1:21", 3, "x.y"),
        ("fn f(x) { switch x { 1 => x, _ => () } 1 }", "1:27", 1, "x"),
        ("fn f(x) { try { x } catch { } 1 }", "1:17", 1, "x"),
        ("fn f(x) { { { x } } 1 }", "1:15", 1, "x"),
        ("fn f(x) { let y = { x; 1 }; y }", "1:21", 1, "x"),
        ("fn f(x) { (x); 1 }", "1:12", 1, "x"),
        ("fn f(x) { [x].map(|y| { y; x }) }", "1:25", 1, "y"),
    ] {
        check(&[(
            source,
            &format!("{place}: error: this value is thrown away (write `return {text}`)"),
        )]);
        let underlined = lint(source)[0].place.as_ref().map(|place| place.length);
        assert_eq!(underlined, Some(length), "{source}");
    }
}

#[test]
fn the_top_level_returns_nothing() {
    check(&[
        (
            "const K = 1; K; let x = K;",
            "1:14: error: this value is thrown away",
        ),
        (
            "const K = 1; if K == 1 { K } ",
            "1:26: error: this value is thrown away",
        ),
        (
            "route(\"/\").on_request(|req| { req.path; });\nlet a = #{}; a.b; let x = 1;",
            "2:14: error: this value is thrown away",
        ),
    ]);
}

#[test]
fn what_does_not_exist_is_reported_once() {
    check(&[
        (
            "fn f() { missing; 1 }",
            "1:10: error: undefined variable `missing`",
        ),
        (
            "fn f() { missing.x; 1 }",
            "1:10: error: undefined variable `missing`",
        ),
    ]);
}
