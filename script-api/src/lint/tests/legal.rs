//! Programs without a mistake must have no finding.

use super::{lint, lint_hook};
use crate::diagnostic::Diagnostic;
use crate::program::HookKind;

/// The example of the manual.
const EXAMPLE: &str = r#"
const KEYS   = table("keys.json");
const LIMIT  = rate(100, "1m");
const OFFICE = cidr(["10.0.0.0/8", "fd00::/8"]);

pool("canary", ["127.0.0.1:9002"]);

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
    if !LIMIT.allow(client) { return respond(429).header("retry-after", "60"); }
    req.set_header("x-client", client);
}
"#;

const SNIPPETS: &[&str] = &[
    "fn f(list) { let n = 1; n = list.filter(|x| x > n).len(); let g = |x| x; g = |x| x + n; }",
    "",
    "// only a comment",
    // Routes in a loop, closures that capture the loop's variables.
    r#"for (name, i) in ["a", "b"] { route(`/${name}/${i}`).to(|req| if i > 0 { name } else { "web" }); }"#,
    r#"for i in 0..3 { let pool = "p" + i; route("/" + i).to(|req| pool); }"#,
    // Closures in closures, with captures over two levels.
    "let base = 1; let f = |x| { let g = |y| base + x + y; g.call(2) }; f.call(1);",
    "let f = |x| |y| x + y; f.call(1).call(2);",
    "const GATE = |req| if req.header(\"x\") == () { respond(401) }; route(\"/\").on_request(GATE);",
    // Functions in functions' bodies, above and below their definition.
    "fn a(x) { b(x) + 1 } fn b(x) { if x > 3 { x } else { a(x + 1) } } a(1);",
    "fn twice(f, x) { f.call(f.call(x)) } fn inc(x) { x + 1 } twice(inc, 1); twice(|x| x * 2, 1);",
    "fn f(x) { x } fn f(x, y) { x + y } f(1) + f(1, 2);",
    // Function names as values, also in closures and maps.
    "route(\"/\").on_request(late); fn late(req) { () }",
    "fn outer() { [inner, inner] } fn inner(x) { x }",
    "let f = Fn(\"gate\"); f.call(1); fn gate(x) { x } let h = Fn(\"respond\");",
    "let m = #{ greet: |name| `hello ${name}` }; m.greet(\"you\");",
    "let m = #{}; m.run = |x| x; m.run(1); m[\"stop\"] = || 0; m.stop();",
    "fn bump() { this += 1; } let n = 1; n.bump();",
    // switch in all forms.
    r#"fn f(x) { switch x { 1 => "one", 2 | 3 => "few", 4..10 if x > 5 => "many", "t" => { let y = x; y }, _ => "none" } }"#,
    "fn f(x) { switch x { 1 => return respond(404), _ => () } }",
    "fn gate(req) { switch req.method { \"GET\" => (), _ => respond(405) } }",
    // Loops.
    "fn f(xs) { let sum = 0; for x in xs { if x < 0 { continue; } if x > 9 { break; } sum += x; } sum }",
    "fn f() { let i = 0; while i < 3 { i += 1; } do { i -= 1; } until i == 0; loop { break i; } }",
    "fn f(xs) { for (x, i) in xs { log(\"info\", `${i}: ${x}`); } }",
    "let x = loop { break 42; };",
    "fn f(s) { for c in s { if c == 'x' { return true; } } false }",
    // Strings.
    "fn f(req) { `${req.method} ${if req.path == \"/\" { \"root\" } else { req.path }} ${`deep ${1 + 1}`}` }",
    "fn f(s) { s.replace(\"a\", \"b\"); s.to_upper(); s.len() > 3 && s.contains(\"x\") }",
    "fn f(s) { \"a\" in s || 'b' in s || \"c\" !in s }",
    // Errors.
    "fn f() { try { throw #{ status: 403 }; } catch (e) { log(\"warn\", `${e.status}`); } }",
    "fn f() { try { num(\"1\") } catch { () } }",
    "fn f() { let r = num(\"x\") ?? return respond(400); r }",
    // Maps and arrays, chains, `?.` and `?[`.
    "fn f() { let m = #{ a: #{ b: [1, 2] }, \"c d\": 3 }; m.a.b[1] += m[\"c d\"]; m.a.b[0] = m?.x?.y ?? 1; let q = m?[\"q\"]; m }",
    "fn f(req) { let claims = req.json(); claims.groups[0].names[claims.index].first }",
    "fn f(xs) { xs.map(|x| x + 1).filter(|x| x > 1).reduce(|sum, x| sum + x, 0) }",
    "fn f(req) { if req.header(\"a\")?.starts_with(\"x\") == true { respond(403) } }",
    "let a = [1, 2, 3]; a[0] = a[1..3].len(); a.push(4); a[-1]",
    // Shadowing.
    "let x = 1; let x = \"a\"; { let x = [x]; x.push(1); } x += \"b\";",
    "const K = 1; fn f(K) { K = 2; K } fn g() { let K = K + 1; K += 1; K }",
    "fn f(x) { let g = |x| { x += 1; x }; g.call(x) }",
    "fn f(respond) { respond }",
    // Constants of the top level, and those that are known everywhere.
    "fn f() { K } const K = 1; fn g() { |x| x + K + global::K + VERSION }",
    "fn f() { let m = M; m.a = 2; m } const M = #{ a: 1 };",
    // Functions with the names of natives that take other numbers of arguments.
    "fn respond(a, b, c, d) { a } fn f() { respond(1, 2, 3, 4); 2 }",
    "fn contains(a, b, c) { a == b || b == c } fn f(x) { contains(1, 2, x) && x in [1] }",
    "fn route_all(names) { for name in names { route(name).to(\"web\"); } } fn denied(req) { respond(403) }",
    // A local may have the name of a native.
    "fn f(contains) { let deny = contains; deny }",
    // Answers that are the value of their function, in every tail position.
    "fn f(req) { respond(403) }",
    "fn f(req) { respond(403).header(\"a\", \"b\"); }",
    "fn f(req) { if req.path == \"/\" { respond(200) } else if true { redirect(302, \"/\") } else { () } }",
    "fn f(req) { { respond(200) } }",
    "fn f(req) { try { respond(200) } catch { respond(500) } }",
    "fn f(req) { let r = if req.path == \"/\" { respond(200) } else { respond(404) }; r.header(\"a\", \"b\") }",
    "fn f(req) { let r = gate(req); if r != () { return r; } } fn gate(req) { return respond(401); }",
    "const DENIED = respond(403); fn f() { DENIED }",
    "route(\"/\").respond(respond(200, \"ok\").header(\"a\", \"b\"));",
    // Conditions and comparisons whose types don't show, or fit.
    "fn f(x) { if x { 1 } else if x.is_empty() { 2 } else if !x { 3 } else { 4 } }",
    "fn f(x) { x < 10 && \"a\" < x && \"a\" < \"b\" && num(\"1\") < 2 && 1 <= 2 && -1 > x }",
    "fn f(x, req) { req.header(\"n\") < \"5\" && num(req.query(\"n\")) < 5 && x < req.cookie(\"n\") && x.path < 5 }",
    "fn f(x) { x.header(\"a\", \"b\") < 5 && x.len() > 5 && 5 < x.index_of(\"a\") && \"a\" + 1 < \"b\" }",
    "fn f(x) { x.header(\"n\") < 5 } fn header() { 5 }",
    "fn f() { let m = #{ query: |n| n }; m.query(1) < 5 }",
    // Values that are the value of their block, with a `;` or without.
    "const DENY = respond(403); fn f(req) { if req.path == \"/\" { DENY; } else { DENY } }",
    "const M = #{ d: 1 }; fn f() { M.d; } fn g() { let x = { M; }; x } fn h() { [1].map(|x| { x.y; }) }",
    "fn f(x) { switch x { 1 => \"web\", 2 => { x.y } _ => x } }",
    "fn f(x) { try { x; } catch { false } }",
    "fn f(x) { x ?? true }",
    "const K = 1; K",
    // Statements whose value nobody wants, but in which something is called.
    "fn f(x) { x.pop(); x[x.len() - 1]; x.call(1).y; x[g()]; 1 } fn g() { 0 }",
    "fn f(x) { switch x { 1 => f(2), _ => () } if x == 1 { () } else { f(x) } 1 }",
    "fn f(x) { x == 1; x + 1; !x; -x; `${x}`; [x]; 1 }",
    // Rhai's own functions.
    "fn f(x) { print(x); debug(x); type_of(x) + x.type_of(); is_def_var(\"x\") && is_def_fn(\"f\", 1) && is_shared(x) }",
    "fn f() { if is_def_var(\"maybe\") { maybe } }",
    "fn f() { caller_has_it + 1 } fn g() { let caller_has_it = 1; f!() }",
    // Modules.
    "import \"auth\" as auth; route(\"/\").on_request(auth::gate); fn f(req) { auth::gate(req, auth::K) }",
    "private fn f() { 1 } f();",
];

#[track_caller]
fn none(source: &str, findings: &[Diagnostic]) {
    let all: Vec<_> = findings.iter().map(Diagnostic::summary).collect();
    assert!(all.is_empty(), "{all:#?} in\n{source}");
}

#[test]
fn the_example_of_the_manual() {
    none(EXAMPLE, &lint(EXAMPLE));
    none(
        EXAMPLE,
        &lint_hook(EXAMPLE, "require_key", HookKind::OnRequest),
    );
}

#[test]
fn snippets() {
    for source in SNIPPETS {
        none(source, &lint(source));
    }
}

#[test]
fn hooks() {
    for (kind, source) in [
        (HookKind::OnRequest, "fn hook(req) { }"),
        (HookKind::OnRequest, "fn hook(req) { req.path = \"/x\"; }"),
        (
            HookKind::OnRequest,
            "fn hook(req) { req.params.name.len() }",
        ),
        (
            HookKind::OnRequest,
            "fn hook(req) { let req = #{}; req.anything }",
        ),
        (
            HookKind::OnRequest,
            "fn hook(req) { [1].map(|req| req.anything); }",
        ),
        (
            HookKind::OnRequest,
            "fn hook(req) { let ok = req.path == \"/\"; if !ok { return respond(403); } }",
        ),
        (
            HookKind::OnRequest,
            "fn hook(req) { let f = |x| true; f.call(1); }",
        ),
        (
            HookKind::OnRequest,
            "fn hook(limit, req) { limit.anything }",
        ),
        (HookKind::OnRequest, "fn hook(req) { throw true; }"),
        (
            HookKind::When,
            "fn hook(req) { req.path == \"/\" || req.header(\"a\") != () }",
        ),
        (
            HookKind::When,
            "fn hook(req) { if req.path == \"/\" { return true; } false }",
        ),
        (
            HookKind::When,
            "fn hook(req) { check(req) } fn check(req) { true }",
        ),
        (
            HookKind::When,
            "fn hook(req) { for x in [1] { if x == 1 { return true; } } return false; }",
        ),
        (
            HookKind::When,
            "fn hook(req) { switch req.path { \"/\" => true, _ => req.path.contains(\"x\") } }",
        ),
        (
            HookKind::To,
            "fn hook(req) { if req.path == \"/\" { \"web\" } else { #{ a: 1, b: 2 } } }",
        ),
        (
            HookKind::To,
            "fn hook(req, attempt) { if attempt.number > 1 { \"b\" } else { req.path } }",
        ),
        (
            HookKind::To,
            "fn hook(req) { switch req.host { \"a\" => #{ \"web\": 1, canary: 2 }, \"x\" => respond(404), _ => { return \"a\"; } } }",
        ),
        (
            HookKind::To,
            "fn hook(req) { let pools = #{ x: \"nowhere\" }; pools[req.host] ?? \"web\" }",
        ),
        (
            HookKind::To,
            "fn hook(req) { let nowhere = \"nowhere\"; `${nowhere}` }",
        ),
        (HookKind::Respond, "fn hook(req) { respond(200, req.path) }"),
        (
            HookKind::When,
            "fn hook(req) { req.path < \"b\" && num(req.id) < 5 && req.params.id < 5 }",
        ),
        (
            HookKind::When,
            "fn hook(req) { let seen = #{}; seen.path = req.path; seen.set_header = |a, b| a; seen.set_header(1, 2); true }",
        ),
        (
            HookKind::When,
            "fn hook(req) { let req = #{ id: 1, path: 2 }; req.path = 3; req.id < 5 && req.path > 1 }",
        ),
        (
            HookKind::OnResponse,
            "fn hook(req, res) { res.set_header(\"a\", req.path); res.add_header(\"b\", \"c\"); res.remove_header(\"d\"); }",
        ),
        (
            HookKind::OnResponse,
            "fn hook(req, res) { [res].map(|req| req.set_header(\"a\", \"b\")); if res.status >= 500 { respond(502) } }",
        ),
        (
            HookKind::OnResponse,
            "fn hook(a, req, res) { req.set_header(\"a\", \"b\"); }",
        ),
        (
            HookKind::OnResponse,
            "fn hook(req, res) { res.status = 200; if res.is_local { req.path } }",
        ),
    ] {
        none(source, &lint(source));
        none(source, &lint_hook(source, "hook", kind));
    }
}

#[test]
fn a_name_that_is_no_function_has_no_findings() {
    none("", &lint_hook("", "hook", HookKind::OnRequest));
}
