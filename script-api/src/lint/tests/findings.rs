//! One program for each finding, with its exact place.

use super::{check, finding, lint};

#[test]
fn unknown_functions() {
    check(&[
        (
            "fn f() {\n    repsond(403)\n}",
            "2:5: error: unknown function `repsond` (did you mean `respond`?)",
        ),
        (
            "gaet(1); fn gate(x) { x }",
            "1:1: error: unknown function `gaet` (did you mean `gate`?)",
        ),
        ("quux(1)", "1:1: error: unknown function `quux`"),
        (
            "let f = |x| x; f(1)",
            "1:16: error: `f` is a variable, not a function (a function held by a variable is called as `f.call(..)`)",
        ),
        (
            "let x = Fn(\"gaet\"); fn gate(x) { x }",
            "1:12: error: there is no function `gaet` (did you mean `gate`?)",
        ),
        (
            "route(\"/\").on_request(|req| if unknwon(req) { respond(403) });",
            "1:32: error: unknown function `unknwon`",
        ),
        (
            "loop { break missing(); }",
            "1:14: error: unknown function `missing`",
        ),
    ]);
}

#[test]
fn closures_that_keep_themselves() {
    check(&[
        (
            "fn f() { let g = (); g = |n| g.call(n - 1); }",
            "1:22: error: a closure that uses `g` can't be kept in `g`: it would never be freed (make it a function of the program, `fn name(..)`, or give it what it needs as an argument)",
        ),
        (
            "fn f() { let o = #{ n: 1 }; o.get = || o.n; }",
            "1:29: error: a closure that uses `o` can't be kept in `o`: it would never be freed (make it a function of the program, `fn name(..)`, or give it what it needs as an argument)",
        ),
        (
            "fn f() { let a = [1]; a[0] = [#{ g: || a }]; }",
            "1:23: error: a closure that uses `a` can't be kept in `a`: it would never be freed (make it a function of the program, `fn name(..)`, or give it what it needs as an argument)",
        ),
    ]);
}

#[test]
fn wrong_numbers_of_arguments() {
    check(&[
        (
            "fn f() { respond(201, 2, 3, 4) }",
            "1:10: error: `respond` takes 1 or 2 arguments, not 4 (it is `respond(status: int) -> Answer` or \
             `respond(status: int, body: text | bytes | Body) -> Answer`)",
        ),
        (
            "f(1); fn f() { 1 }",
            "1:1: error: `f` takes no arguments, not 1",
        ),
        (
            "f(); fn f(x) { x }",
            "1:1: error: `f` takes 1 argument, not 0",
        ),
        (
            "fn f(req) { req.header() }",
            "1:17: error: `header` takes 1 or 2 arguments, not 0 (it is `header(name: text) -> text | ()` or \
             `header(name: text, value: value) -> Answer`)",
        ),
        (
            "let x = Fn(1, 2);",
            "1:9: error: `Fn` takes 1 argument, not 2",
        ),
        (
            "let x = call();",
            "1:9: error: `call` takes at least 1 argument, not 0",
        ),
        (
            "fn bump(by) { this += by; } let n = 1; n.bump(1, 2, 3);",
            "1:42: error: `bump` takes 1 argument, not 3",
        ),
    ]);
}

#[test]
fn statuses_that_there_are_not() {
    check(&[
        (
            "fn hook(req) { respond(99) }",
            "1:24: error: 99 is no status of a response; use 200 to 599",
        ),
        (
            "fn hook(req) { redirect(200, \"/\") }",
            "1:25: error: 200 is no redirect; use 301, 302, 303, 307 or 308",
        ),
    ]);
}

#[test]
fn unknown_methods() {
    check(&[
        (
            "fn f(req) { req.path.starts_wiht(\"/\") }",
            "1:22: error: unknown method `starts_wiht` (did you mean `starts_with`?)",
        ),
        (
            "route(\"/\")\n    .to(\"web\")\n    .tiemout(\"3s\");",
            "3:6: error: unknown method `tiemout` (did you mean `timeout`?)",
        ),
        (
            "fn f(req) { req.path() }",
            "1:17: error: unknown method `path` (`path` is a property: write it without `()`)",
        ),
        (
            "fn f(req) { req.gate() } fn gate(req) { }",
            "1:17: error: unknown method `gate` (`gate` is a function of this program: call it as `gate(req)`)",
        ),
        (
            "fn f(a) { a.b.quux(1)[0].c }",
            "1:15: error: unknown method `quux`",
        ),
        (
            "fn f(a) { a[a.quuux()] }",
            "1:15: error: unknown method `quuux`",
        ),
    ]);
}

#[test]
fn undefined_variables() {
    check(&[
        (
            "const LIMIT = 1;\nfn f() {\n    LIMTI + 1\n}",
            "3:5: error: undefined variable `LIMTI` (did you mean `LIMIT`?)",
        ),
        (
            "const KEYS = table(\"k\");\nroute(\"/\").on_request(|req| if KEY.get(1) == () { respond(401) });",
            "2:32: error: undefined variable `KEY` (did you mean `KEYS`?)",
        ),
        (
            "let a = 1; let b = aa;",
            "1:20: error: undefined variable `aa` (did you mean `a`?)",
        ),
        (
            "{ let inner = 1; } let x = inner;",
            "1:28: error: undefined variable `inner`",
        ),
        (
            "for x in [1] { } let y = x;",
            "1:26: error: undefined variable `x`",
        ),
        (
            "fn f() { try { 1 } catch (problem) { 2 } problem }",
            "1:42: error: undefined variable `problem`",
        ),
        (
            "fn f(used) { g() } fn g() { used }",
            "1:29: error: undefined variable `used`",
        ),
        (
            "let count = 1; fn f() { count }",
            "1:25: error: undefined variable `count` (`count` is a `let` of the top level, which functions don't see: make it a `const`)",
        ),
        (
            "let x = LATE; const LATE = 1;",
            "1:9: error: undefined variable `LATE` (`LATE` is declared further below: a constant stands above its use)",
        ),
        (
            "route(\"/\").on_request(|req| LATE); const LATE = 1;",
            "1:29: error: undefined variable `LATE` (`LATE` is declared further below: a constant stands above its use)",
        ),
        (
            "route(\"/\").on_request(respond);",
            "1:23: error: undefined variable `respond` (`respond` is built in and can't be handed over by its name: wrap it in a closure, `|x| respond(x)`)",
        ),
        (
            "route(\"/\").on_request(requir_key); fn require_key(req) { }",
            "1:23: error: undefined variable `requir_key` (did you mean `require_key`?)",
        ),
        (
            "fn f(x) { switch x { 1 => wrong, _ => 2 } }",
            "1:27: error: undefined variable `wrong`",
        ),
        (
            "fn f(x) { switch x { 1 if wrong => 1, _ => 2 } }",
            "1:27: error: undefined variable `wrong`",
        ),
        (
            "fn f() { `a ${wrong} b` }",
            "1:15: error: undefined variable `wrong`",
        ),
        (
            "fn f() { #{ a: [1, wrong] } }",
            "1:20: error: undefined variable `wrong`",
        ),
        (
            "fn f() { wrong = 1; }",
            "1:10: error: undefined variable `wrong`",
        ),
        ("let a = a;", "1:9: error: undefined variable `a`"),
        (
            "fn f() { |x| |y| x + wrong }",
            "1:22: error: undefined variable `wrong`",
        ),
        (
            "const K = 1; fn f() { global::KK }",
            "1:31: error: there is no constant `KK` at the top level (did you mean `K`?)",
        ),
        (
            "fn f(req) { auth::gate(req) }",
            "1:13: error: unknown module `auth` (import it at the top level: `import \"auth\" as auth;`)",
        ),
        (
            "let x = auth::K;",
            "1:9: error: unknown module `auth` (import it at the top level: `import \"auth\" as auth;`)",
        ),
    ]);
}

#[test]
fn assignments_to_captured_variables() {
    let help = "a closure keeps the values that variables have when it is made; let it give its \
                result back, or keep state in `counter`, `cache` or `req.set`";
    for (source, place) in [
        (
            "let n = 0; route(\"/\").on_request(|req| { n += 1; });",
            "1:42",
        ),
        ("fn f(n) { [1].map(|x| { n = x; }) }", "1:25"),
        ("let n = #{}; let f = |x| { n.a = x; };", "1:28"),
        ("let n = [1]; let f = |x| |y| { n[0] = y; };", "1:32"),
    ] {
        assert_eq!(
            finding(source),
            format!(
                "{place}: error: a closure can't change `n`, which is declared outside of it ({help})"
            ),
        );
    }
}

#[test]
fn assignments_to_constants() {
    check(&[
        (
            "const M = #{ a: 1 };\nM.a = 2;",
            "2:1: error: `M` is a constant: its parts can't be assigned to (change a copy: `let copy = M;`)",
        ),
        (
            "const M = [1]; fn f() { M[0] += 2; }",
            "1:25: error: `M` is a constant: its parts can't be assigned to (change a copy: `let copy = M;`)",
        ),
        (
            "const K = 1; fn f() { K = 2; }",
            "1:23: error: `K` is a constant and can't be assigned to (choose another name for the variable)",
        ),
        (
            "fn f() { const M = #{}; let g = |x| { M.a.b[x] = 1; }; }",
            "1:39: error: `M` is a constant: its parts can't be assigned to (change a copy: `let copy = M;`)",
        ),
        (
            "fn f() { VERSION = 2; }",
            "1:10: error: `VERSION` is a constant and can't be assigned to (choose another name for the variable)",
        ),
        (
            "fn f() { g = 2; } fn g() { 1 }",
            "1:10: error: `g` is a function and can't be assigned to (choose another name for the variable)",
        ),
    ]);
}

#[test]
fn answers_thrown_away() {
    let thrown =
        |name: &str| format!("error: this answer is thrown away (write `return {name}(..)`)");
    for (source, place, name) in [
        (
            "fn f(req) { if true { respond(403); } req.path }",
            "1:23",
            "respond",
        ),
        (
            "fn f(req) {\n    respond(403).header(\"a\", \"b\");\n    ()\n}",
            "2:5",
            "respond",
        ),
        (
            "fn f(req) { for x in [1] { redirect(302, \"/\"); } }",
            "1:28",
            "redirect",
        ),
        (
            "fn f(req) { while true { respond(500) } }",
            "1:26",
            "respond",
        ),
        (
            "fn f(req) { switch req.path { \"/\" => respond(200), _ => () } return; }",
            "1:38",
            "respond",
        ),
        (
            "fn f(req) { try { respond(200); } catch { } () }",
            "1:19",
            "respond",
        ),
        ("fn f(req) { { respond(200) } () }", "1:15", "respond"),
        (
            "fn f(req) { let x = { respond(200); 2 }; x }",
            "1:23",
            "respond",
        ),
        (
            "route(\"/\").on_request(|req| { if req.path == \"/\" { respond(403); } req.path; });",
            "1:52",
            "respond",
        ),
    ] {
        assert_eq!(
            finding(source),
            format!("{place}: {}", thrown(name)),
            "{source}"
        );
    }
    check(&[
        (
            "respond(404);",
            "1:1: error: this answer goes nowhere (an answer belongs to a route: `route(\"/path\").respond(200, \"ok\")`)",
        ),
        (
            "fn hook(req) { gate(req); req.path } fn gate(req) { if req.path == \"/\" { respond(401) } }",
            "1:16: error: `gate` can answer the request, and the answer is thrown away (let r = gate(..); if r != () { return r; })",
        ),
    ]);
}

#[test]
fn conditions() {
    for (source, place, what) in [
        ("fn f() { if 1 + 2 { 3 } }", "1:13", "a number"),
        ("fn f() { while \"a\" + \"b\" { } }", "1:16", "a text"),
        ("fn f(x) { x && respond(403) }", "1:16", "a response"),
        (
            "fn f(req) { if req.cookie(\"a\") { 1 } }",
            "1:16",
            "a text or `()`",
        ),
        ("fn f(x) { while num(x) { } }", "1:17", "a number or `()`"),
        (
            "fn f(x) { do { } while (|y| x + y); }",
            "1:25",
            "a function",
        ),
        (
            "fn f(x) { switch x { 1 if -2 * 3 => 1, _ => 2 } }",
            "1:27",
            "a number",
        ),
    ] {
        let found = finding(source);
        assert!(
            found.contains(&format!("a condition is true or false, and this is {what}")),
            "{found} in {source}"
        );
        assert!(found.starts_with(place), "{found} in {source}");
    }
}

#[test]
fn functions_by_name() {
    check(&[
        (
            "fn twice(x) { x * 2 } let a = [1].map(\"twice\");",
            "1:39: error: `map` takes a function, not a text (write the name without quotes: `.map(twice)`)",
        ),
        (
            "fn f(list) { list.filter(|x| x).reduce(\"sum\", 0) }",
            "1:40: error: `reduce` takes a function, not a text (write the name without quotes: `.reduce(sum)`)",
        ),
    ]);
    for source in [
        "fn f(list) { list.index_of(\"x\") + [1].map(f).len() }",
        "fn f() { let m = #{ map: |x| x }; m.map(\"x\") }",
    ] {
        assert!(lint(source).is_empty(), "{source}");
    }
}

#[test]
fn import_and_eval() {
    let import = "error: `import` can't stand in a function: files are read only while loading (move it to the top level)";
    assert_eq!(
        finding("fn f() { import \"auth\" as auth; auth::gate() }"),
        format!("1:10: {import}")
    );
    assert_eq!(
        finding("let f = |x| { import \"auth\" as auth; auth::gate(x) };"),
        format!("1:15: {import}")
    );
    assert_eq!(
        finding("fn f(x) { eval(x) }"),
        "1:11: error: `eval` isn't available: a program must be checkable before it runs"
    );
    assert_eq!(
        finding("if 1 == 1 { import \"auth\" as auth; auth::gate(1) }"),
        "1:13: error: `import` can't stand in a block: files are read before anything runs (move it to the top level)"
    );
}

#[test]
fn export() {
    let export = "error: `export` isn't needed: a file that imports this one sees all its functions and constants (take it away; what must not be seen is a `private fn` or a `let`)";
    for (source, place) in [
        ("export const K = 1;", "1:1"),
        ("let a = 1;\n  export   let b = a;", "2:3"),
        ("let a = 1; export a as b;", "1:12"),
        // Where it doesn't stand in the same line, the place is that of the declaration.
        ("export\nlet a = 1;", "2:1"),
    ] {
        assert_eq!(finding(source), format!("{place}: {export}"), "{source}");
    }
}

#[test]
fn findings_come_in_the_order_of_their_places() {
    let source = "fn c() { one } fn a() { two }\nlet x = three;\nfn b() { four }";
    let places: Vec<_> = lint(source)
        .into_iter()
        .filter_map(|finding| finding.place)
        .map(|place| (place.line, place.column, place.length))
        .collect();
    assert_eq!(places, [(1, 10, 3), (1, 25, 3), (2, 9, 5), (3, 10, 4)]);
}

#[test]
fn the_caret_stands_under_the_name() {
    let source = "const LIMIT = rate(1, \"1m\");\nfn f(req) { LIMTI.allow(1) }";
    let findings = lint(source);
    assert_eq!(
        findings[0].render(&|_| Some(source.into()), false),
        "\
error: undefined variable `LIMTI`
 --> routes.rhai:2:13
  |
2 | fn f(req) { LIMTI.allow(1) }
  |             ^^^^^
  |
  = help: did you mean `LIMIT`?"
    );
}

#[test]
fn a_limit_that_is_asked_and_not_obeyed() {
    let help = |name: &str| {
        format!(
            "error: whether it is allowed is thrown away (`if !{name}.allow(key) {{ return respond(429); }}`; when it only counts, `let counted = {name}.allow(key);`)"
        )
    };
    check(&[
        (
            "const LIMIT = rate(1, \"1s\"); fn f(req) { LIMIT.allow(req.path); 1 }",
            &format!("1:48: {}", help("LIMIT")),
        ),
        (
            "const ALL = #{ gold: 1 }; route(\"/\").on_request(|req| { if req.path != \"/\" { ALL.gold.allow(req.path); } req.set_header(\"a\", \"b\") });",
            &format!("1:87: {}", help("ALL")),
        ),
    ]);
    for fine in [
        "const LIMIT = rate(1, \"1s\"); fn f(req) { let counted = LIMIT.allow(req.path); 1 }",
        "const LIMIT = rate(1, \"1s\"); fn f(req) { if !LIMIT.allow(req.path) { return respond(429); } }",
        "fn f(path) { let r = route(path); r.allow(\"10.0.0.0/8\"); r.to(\"web\") }",
        "let r = route(\"/\"); r.allow(\"10.0.0.0/8\"); r.to(\"web\");",
    ] {
        assert!(lint(fine).is_empty(), "{fine}: {:?}", lint(fine));
    }
}

#[test]
fn a_closure_that_uses_what_its_own_method_belongs_to() {
    check(&[
        (
            "fn f(a) { a.map(|x| x + a.len()) }",
            "1:13: error: a closure that uses `a` can't be given to a method of `a` (use it under another name, `let same = a;`, or write a function of the program)",
        ),
        (
            "const T = table(\"t\"); route(\"/\").when(|req| T.get(|| T) == 1);",
            "1:47: error: a closure that uses `T` can't be given to a method of `T` (use it under another name, `let same = T;`, or write a function of the program)",
        ),
    ]);
    for fine in [
        "const T = [1]; fn f() { T.map(|x| x + T.len()) }",
        "fn f(a) { let same = a; a.map(|x| x + same.len()) }",
        "fn f(a) { a.map(|a| a + 1) }",
        "fn f(a, b) { a.map(|x| x + b) }",
    ] {
        assert!(lint(fine).is_empty(), "{fine}: {:?}", lint(fine));
    }
}
