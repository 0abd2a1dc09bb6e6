//! Findings about functions because they are hooks.

use super::{check_hook as check, lint_hook, only};
use crate::program::HookKind;

#[test]
fn a_gate_that_ends_with_a_bool() {
    let help = "(a hook gives `()` to go on, or a response: `if !ok { return respond(403); }`)";
    for (source, place) in [
        ("fn hook(req) { return true; }", "1:23"),
        ("fn hook(req) { req.header(\"x\") != () }", "1:16"),
        (
            "fn hook(req) { if req.path == \"/\" { return false; } respond(200) }",
            "1:44",
        ),
        (
            "fn hook(req) { if req.path == \"/\" { respond(200) } else { !req.header(\"a\").is_empty() } }",
            "1:59",
        ),
        (
            "fn hook(req) { switch req.path { \"/\" => true, _ => () } }",
            "1:41",
        ),
        (
            "const RATE = rate(1, \"1m\"); fn hook(req) { let limit = RATE; limit.allow(req.client_ip) }",
            "1:62",
        ),
        (
            "fn hook(req) { req.path.starts_with(\"/a\") && req.path.ends_with(\"b\") }",
            "1:16",
        ),
        ("fn hook(req) { try { true } catch { () } }", "1:22"),
        ("const hook = |req| \"x\" in req.path;", "1:20"),
    ] {
        let found = only(source, &lint_hook(source, "hook", HookKind::OnRequest));
        assert_eq!(
            found,
            format!("{place}: error: an `on_request` hook can't end with a bool {help}"),
            "{source}"
        );
    }
}

#[test]
fn a_condition_that_ends_without_a_bool() {
    check(
        HookKind::When,
        &[
            (
                "fn hook(req) { if req.path == \"/\" { true } }",
                "1:16: error: the function of `.when` can't end with `()` (`.when` wants true or false)",
            ),
            (
                "fn hook(req) { \"yes\" }",
                "1:16: error: the function of `.when` can't end with a text (`.when` wants true or false)",
            ),
            (
                "fn hook(req) { }",
                "1:14: error: the function of `.when` can't end with `()` (`.when` wants true or false)",
            ),
            (
                "fn hook(req) { let ok = true; }",
                "1:16: error: the function of `.when` can't end with `()` (`.when` wants true or false)",
            ),
            (
                "fn hook(req) { if req.path == \"/\" { return; } true }",
                "1:37: error: the function of `.when` can't end with `()` (`.when` wants true or false)",
            ),
            (
                "fn hook(req) { return if req.path == \"/\" { true } else { \"no\" }; }",
                "1:58: error: the function of `.when` can't end with a text (`.when` wants true or false)",
            ),
            (
                "fn hook(req) { req.header(\"x\") }",
                "1:16: error: the function of `.when` can't end with a text or `()` (`.when` wants true or false)",
            ),
            (
                "fn hook(req) { switch req.path { \"/\" => true } }",
                "1:16: error: the function of `.when` can't end with `()` (`.when` wants true or false)",
            ),
        ],
    );
}

#[test]
fn results_of_the_other_hooks() {
    check(
        HookKind::To,
        &[(
            "fn hook(req) { req.path == \"/\" }",
            "1:16: error: the function of `.to` can't end with a bool (`.to` wants the name of a pool, or `pick(..)`)",
        )],
    );
    check(
        HookKind::Respond,
        &[(
            "fn hook(req) { if req.path == \"/\" { respond(200) } }",
            "1:16: error: the function of `.respond` can't end with `()` (`.respond` wants a response: `respond(200, \"ok\")`)",
        )],
    );
    check(
        HookKind::OnResponse,
        &[(
            "fn hook(req, res) { res.status == 200 }",
            "1:21: error: an `on_response` hook can't end with a bool (a hook gives `()` to go on, or a response: `if !ok { return respond(403); }`)",
        )],
    );
}

#[test]
fn properties_that_do_not_exist() {
    check(
        HookKind::OnRequest,
        &[
            (
                "fn hook(req) { log(\"info\", req.pth); }",
                "1:32: error: a request has no property `pth` (did you mean `path`?)",
            ),
            (
                "fn hook(r) { r.paht = \"/\"; }",
                "1:16: error: a request has no property `paht` (did you mean `path`?)",
            ),
            (
                "fn hook(req) { req.header[\"x\"]; }",
                "1:20: error: a request has no property `header` (`header` is a method: write `req.header(..)`)",
            ),
            (
                "fn hook(req) { req.gate; } fn gate(req) { }",
                "1:20: error: a request has no property `gate` (`gate` is a function: write `gate(req)`)",
            ),
            (
                "fn hook(req) { [1].map(|x| req.status); }",
                "1:32: error: a request has no property `status`",
            ),
        ],
    );
    check(
        HookKind::OnResponse,
        &[(
            "fn hook(req, res) { res.sttaus = req.path; }",
            "1:25: error: a response has no property `sttaus` (did you mean `status`?)",
        )],
    );
}

#[test]
fn a_capturing_closure_knows_its_own_parameter() {
    use super::{compile, with_known};
    use rhai::ASTNode;

    let source = "let limit = #{}; route(\"/\").on_request(|req| { limit.anything; req.pth; });";
    let ast = compile(source);
    let name = ast
        .iter_functions()
        .map(|function| function.name.to_string())
        .find(|name| name.starts_with("anon$"))
        .unwrap();
    let findings = with_known(source, |known| {
        super::super::Linter::new(&ast, known).check_hook(&name, HookKind::OnRequest)
    });
    assert_eq!(
        only(source, &findings),
        "1:68: error: a request has no property `pth` (did you mean `path`?)"
    );
    // The parser puts captured variables before the parameters.
    let mut captures = 0;
    ast.walk(&mut |path: &[ASTNode<'_>]| {
        captures += usize::from(matches!(
            path.last(),
            Some(ASTNode::Stmt(rhai::Stmt::Share(_)))
        ));
        true
    });
    assert_eq!(captures, 1);
}
