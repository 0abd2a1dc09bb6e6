//! Texts that are compared with numbers.

use super::{check_hook, finding, lint};
use crate::program::HookKind;

const FINDING: &str = "error: text is compared with a number (use `num(..)`)";

#[test]
fn of_values_whose_type_shows() {
    for (source, place) in [
        ("fn f() { \"5\" < 10 }", "1:14"),
        ("fn f(x) { if 3 >= `${x}` { 1 } }", "1:16"),
        ("fn f(x) { x && -1.5 <= \"a\" + \"b\" }", "1:21"),
        ("fn f(x) { 1 + 2 > 'x' }", "1:17"),
        ("fn f(req) { req.header(\"x\") < 5 }", "1:29"),
        ("fn f(req) { 5 > req.query(\"n\") }", "1:15"),
        ("fn f(req) { req.cookie(\"x\") <= -5.5 }", "1:29"),
        ("fn f(req) { if 1 >= req.param(\"x\") { 2 } }", "1:18"),
        ("fn f(x) { x.to_lower() < x.len() }", "1:24"),
        ("fn f(x) { x[0].y.sub_string(1, 2) > 3 }", "1:35"),
        ("fn f(x) { 3 < to_string(x) }", "1:13"),
        ("fn f(req) { req.header(\"x\") + \"0\" < 5 }", "1:35"),
        (
            "fn f(req) { req.header(\"x\") < num(req.header(\"y\")) }",
            "1:29",
        ),
        (
            "route(\"/\").on_request(|r| if r.header(\"x\") > 9 { respond(403) });",
            "1:44",
        ),
    ] {
        assert_eq!(finding(source), format!("{place}: {FINDING}"), "{source}");
    }
}

#[test]
fn of_properties_of_the_request_of_a_hook() {
    for (kind, source, place) in [
        (
            HookKind::OnRequest,
            "fn hook(r) { if r.path < 5 { respond(400) } }",
            "1:24",
        ),
        (HookKind::When, "fn hook(req) { 5 >= req.host }", "1:18"),
        (
            HookKind::OnRequest,
            "fn hook(req) { [1].filter(|x| x > 0 && req.id + \"0\" > 1); }",
            "1:53",
        ),
        (
            HookKind::OnResponse,
            "fn hook(q, s) { if s.status > 400 && q.client_ip > 7 { 1 } }",
            "1:50",
        ),
    ] {
        check_hook(kind, &[(source, &format!("{place}: {FINDING}"))]);
        let findings = lint(source);
        assert!(findings.is_empty(), "{findings:?} in {source}");
    }
}

#[test]
fn a_hook_does_not_repeat_what_the_program_shows() {
    let source = "fn hook(req) { req.header(\"x\") < 5 && req.path > 5 }";
    assert_eq!(finding(source), format!("1:32: {FINDING}"));
    let of_hook = format!("1:48: {FINDING}");
    check_hook(HookKind::When, &[(source, &of_hook)]);
}
