//! Calls where they can't stand.

use super::{check_hook, lint_hook};
use crate::load::AT_LOAD;
use crate::program::HookKind;

#[test]
fn a_wait_where_a_hook_can_not_wait() {
    let message = |hook: &str| {
        format!(
            "error: `fetch` can't stand in {hook}: it waits (it may stand in {})",
            HookKind::WAITING
        )
    };
    for (kind, hook) in [
        (HookKind::When, "the function of `.when`"),
        (HookKind::Respond, "the function of `.respond`"),
    ] {
        let direct = format!("1:24: {}", message(hook));
        let called = format!("1:12: {}", message(hook));
        check_hook(
            kind,
            &[
                ("fn hook(req) { let x = fetch(\"web\"); x }", &direct),
                (
                    "fn ask() { fetch(\"web\") } fn hook(req) { ask() }",
                    &called,
                ),
            ],
        );
    }
    for kind in [HookKind::OnRequest, HookKind::To] {
        let found = lint_hook("fn hook(req) { let x = fetch(\"web\"); }", "hook", kind);
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn what_belongs_to_the_top_level() {
    let message = "`rate` can't stand in an `on_request` hook: it belongs to the top level \
                   (move it there: hooks see its constants)";
    check_hook(
        HookKind::OnRequest,
        &[
            (
                "fn hook(req) { let x = rate(1, \"1m\"); }",
                &format!("1:24: error: {message}"),
            ),
            (
                "fn more(req) { [1].map(|n| rate(n, \"1m\")); }\nfn hook(req) { more(req); }",
                &format!("1:28: error: {message}"),
            ),
        ],
    );
    for name in AT_LOAD {
        let source = format!("fn hook(req) {{ let x = {name}(\"x\"); }}");
        let found = lint_hook(&source, "hook", HookKind::OnRequest);
        assert_eq!(found.len(), 1, "{source}: {found:?}");
    }
}

#[test]
fn what_only_has_the_name_of_such_a_function() {
    for source in [
        "fn rate(a) { a } fn hook(req) { let x = rate(1); }",
        "fn hook(req) { let x = #{ table: 1 }; x.table; }",
        "fn hook(req) { req.route(1); }",
        // Called while loading only.
        "fn limits() { rate(1, \"1m\") } const L = limits(); fn hook(req) { if !L.allow(1) { return respond(429); } }",
    ] {
        let found = lint_hook(source, "hook", HookKind::OnRequest);
        assert!(found.is_empty(), "{source}: {found:?}");
    }
}
