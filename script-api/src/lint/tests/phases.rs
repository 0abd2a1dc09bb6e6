//! Calls that can't stand where they stand.

use super::{check_hook, lint_hook};
use crate::load::AT_LOAD;
use crate::program::{HookKind, Need};

#[test]
fn calls_that_wait() {
    check_hook(
        HookKind::When,
        &[(
            "fn hook(req) { fetch(\"web\").status == 200 }",
            "1:16: error: `fetch` can't stand in the function of `.when`: it waits \
             (it may stand in `on_request`, `on_request_body`, `.to`, `on_response` and `every`)",
        )],
    );
    check_hook(
        HookKind::Respond,
        &[(
            "fn hook(req) { let r = \"web\".fetch(); respond(r.status) }",
            "1:30: error: `fetch` can't stand in the function of `.respond`: it waits \
             (it may stand in `on_request`, `on_request_body`, `.to`, `on_response` and `every`)",
        )],
    );
}

#[test]
fn what_is_only_read() {
    check_hook(
        HookKind::OnRequest,
        &[(
            "fn hook(req) { req.host = \"x\"; }",
            "1:20: error: `host` can't be assigned to: it is only read",
        )],
    );
}

#[test]
fn what_belongs_to_the_top_level() {
    let message = "`rate` can't stand in an `on_request` hook: it belongs to the top level \
                   (move it there: hooks see its constants";
    check_hook(
        HookKind::OnRequest,
        &[
            (
                "fn hook(req) { let x = rate(1, \"1m\"); }",
                &format!("1:24: error: {message})"),
            ),
            (
                "fn more(req) { [1].map(|n| rate(n, \"1m\")); }\nfn hook(req) { more(req); }",
                &format!("1:28: error: {message}; the hook comes here through `more`)"),
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

#[test]
fn answers_that_nobody_takes() {
    check_hook(
        HookKind::When,
        &[(
            "fn hook(req) { let r = respond(403); true }",
            "1:24: error: `respond` can't stand in the function of `.when`: nobody takes an answer there \
             (it may stand at the top level, in `on_request`, `on_request_body`, `.to`, `.respond`, `on_response` and `on_response_body`)",
        )],
    );
}

#[test]
fn in_what_the_hook_calls_or_hands_on() {
    let way = |names: &str| {
        format!(
            "error: `fetch` can't stand in the function of `.when`: it waits \
             (it may stand in `on_request`, `on_request_body`, `.to`, `on_response` and `every`; the hook comes here through {names})"
        )
    };
    check_hook(
        HookKind::When,
        &[
            (
                "fn hook(req) { ok(req) } fn ok(r) { asks() } fn asks() { fetch(\"web\").status == 200 }",
                &format!("1:58: {}", way("`ok`, `asks`")),
            ),
            (
                "fn hook(req) { [1].some(asks) } fn asks(n) { fetch(\"web\").status == 200 }",
                &format!("1:46: {}", way("`asks`")),
            ),
            (
                "fn hook(req) { Fn(\"asks\").call() } fn asks() { fetch(\"web\").status == 200 }",
                &format!("1:48: {}", way("`asks`")),
            ),
        ],
    );
}

#[test]
fn the_request_is_known_in_what_the_hook_calls() {
    check_hook(
        HookKind::OnResponse,
        &[
            (
                "fn hook(req, res) { mark(1, req); } fn mark(n, r) { r.set_header(\"x\", n); }",
                "1:55: error: the request was sent already: it can't be changed once the response is there \
                 (change it in `on_request`, or change `res`; the hook comes here through `mark`)",
            ),
            (
                "fn hook(req, res) { set_header(req, \"x\", \"1\"); }",
                "1:21: error: the request was sent already: it can't be changed once the response is there \
                 (change it in `on_request`, or change `res`)",
            ),
        ],
    );
    // What the function is given for a response is one.
    let source = "fn hook(req, res) { mark(1, res); } fn mark(n, r) { r.set_header(\"x\", n); }";
    assert_eq!(lint_hook(source, "hook", HookKind::OnResponse), []);
}

#[test]
fn functions_of_the_program_go_before_natives() {
    for source in [
        "fn hook(req) { fetch(1, 2, 3) == 1 } fn fetch(a, b, c) { a }",
        "fn hook(req) { hook(req) }",
        "const M = #{ table: |n| n == 1 }; fn hook(req) { M.table(1) }",
        "fn hook(req) { let table = req.header(\"x\"); table == \"a\" }",
    ] {
        assert_eq!(lint_hook(source, "hook", HookKind::When), [], "{source}");
    }
}

#[test]
fn every_need_is_met_somewhere_and_every_kind_has_a_hook() {
    for need in Need::ALL {
        assert!(
            need.at_top_level() || need.kinds().next().is_some(),
            "{need:?}"
        );
    }
    for kind in HookKind::ALL {
        assert!(
            kind.has(Need::Hook) && !kind.has(Need::LoadTime),
            "{kind:?}"
        );
    }
}
