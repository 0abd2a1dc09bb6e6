//! `curry`, written by the user and made by the parser.

use super::{check, lint};

#[test]
fn what_the_user_writes() {
    let help = "(a closure keeps the values it uses: |req| gate(req, x))";
    for (source, place) in [
        (
            "let f = curry(Fn(\"add\"), 1); fn add(x, y) { x + y }",
            "1:9",
        ),
        ("let f = add.curry(1); fn add(x, y) { x + y }", "1:13"),
        ("let f = curry(); ", "1:9"),
        ("let f = curry(|x, y| x + y, 1);", "1:9"),
        ("let z = 1; let f = curry(|x, y| x + y + z, 1);", "1:20"),
        ("let z = 1; let f = (|x, y| x + y + z).curry(1);", "1:39"),
        (
            "for z in [1] { route(\"/\").on_request((|x, req| x + z).curry(1)); }",
            "1:55",
        ),
        ("fn f(x) { |y| y.curry(x) }", "1:17"),
        ("fn f(x) { [x.curry(1)] }", "1:14"),
        ("fn f(x) { x.a[0].curry(1).call(2) }", "1:18"),
        ("fn f(x) { x.curry(1); }", "1:13"),
    ] {
        let expected = format!("{place}: error: `curry` isn't available {help}");
        check(&[(source, &expected)]);
    }
}

#[test]
fn what_the_parser_makes_of_captures() {
    for source in [
        "let a = 1; let f = |x| x + a;",
        "let a = 1; |x| x + a",
        "let a = 1; let f = |x| |y| |z| x + y + z + a;",
        "let a = 1; let f = || || a; f.call().call();",
        "fn f(a) { |x| x + a }",
        "fn f(a) { return |x| x + a; }",
        "fn f(a) { [|x| x + a, |x| { |y| x + y + a }] }",
        "fn f(a) { if a == 1 { |x| x + a } else { |x| x - a } }",
        "fn f(a) { switch a { 1 => |x| x + a, _ => |x| { x - a } } }",
        "fn f(a) { #{ g: |x| x + a } }",
        "fn f(a) { g(|x| x + a) } fn g(h) { h.call(1) }",
        "fn f(a) { (|x| x + a).call(1) }",
        "fn f(a) { call(|x| x + a, 1) }",
        "for a in [1] { for b in [a] { route(\"/\").on_request(|req| if a > b { respond(403) }); } }",
        "for a in [1] { let f = |x| { let b = a; [x].map(|y| y + b + a) }; f.call(a); }",
        "let a = 1; while a < 3 { a += 1; let f = |x| x + a; f.call(1); }",
        "let a = 1; loop { break |x| x + a; }",
        "let a = 1; let f = (((|x| x + a)));",
        "let a = 1; let f = () ?? |x| x + a;",
    ] {
        let findings = lint(source);
        assert!(findings.is_empty(), "{findings:?} in {source}");
    }
}
