//! Pools that `.to` functions name.

use super::{POOLS, check_hook, compile, lint_hook, natives};
use crate::lint::{Known, Linter};
use crate::program::HookKind;
use crate::source::Source;

#[test]
fn pools_that_do_not_exist() {
    let web = "error: there is no pool `wbe` (did you mean `web`?)";
    for (source, place) in [
        ("const hook = |req| \"wbe\";", "1:20"),
        ("fn hook(req) { \"wbe\" }", "1:16"),
        ("fn hook(req) { \"wbe\"; }", "1:16"),
        ("fn hook(req) { return \"wbe\"; }", "1:23"),
        (
            "fn hook(req) { if req.path == \"/\" { \"wbe\" } else { \"web\" } }",
            "1:37",
        ),
        (
            "fn hook(req) { if req.path == \"/\" { return \"wbe\"; } \"web\" }",
            "1:44",
        ),
        (
            "fn hook(req) { return if req.path == \"/\" { \"web\" } else { \"wbe\" }; }",
            "1:59",
        ),
        (
            "fn hook(req) { switch req.path { \"/\" => \"web\", \"/x\" => { \"wbe\" }, _ => \"a\" } }",
            "1:58",
        ),
        (
            "fn hook(req) { switch req.path { \"/\" => \"web\", _ => \"wbe\" } }",
            "1:53",
        ),
        ("fn hook(req) { try { \"web\" } catch { \"wbe\" } }", "1:38"),
        ("fn hook(req) { #{ web: 95, wbe: 5 } }", "1:28"),
    ] {
        check_hook(HookKind::To, &[(source, &format!("{place}: {web}"))]);
    }
    check_hook(
        HookKind::To,
        &[(
            "fn hook(req) { \"somewhere\" }",
            "1:16: error: there is no pool `somewhere` (declare it: pool(\"somewhere\", [\"127.0.0.1:9000\"]), or [pools.somewhere] in edgewright.toml)",
        )],
    );
}

#[test]
fn the_name_is_underlined() {
    for (source, length) in [
        ("fn hook(r) { \"wbe\" }", 5),
        ("fn hook(r) { #{wbe: 1} }", 3),
    ] {
        let findings = lint_hook(source, "hook", HookKind::To);
        let place = findings[0].place.as_ref();
        assert_eq!(place.map(|place| place.length), Some(length), "{source}");
    }
}

#[test]
fn only_where_a_pool_is_named() {
    for (kind, source) in [
        (HookKind::OnRequest, "fn hook(req) { \"wbe\" }"),
        (HookKind::Respond, "fn hook(req) { \"wbe\" }"),
        (HookKind::To, "fn hook(req) { throw \"wbe\"; }"),
        (
            HookKind::To,
            "fn hook(req) { let f = |x| \"wbe\"; \"web\" }",
        ),
        (HookKind::To, "fn hook(req) { respond(404, \"wbe\") }"),
        (HookKind::To, "fn hook(req) { \"w\" + \"be\" }"),
    ] {
        let findings = lint_hook(source, "hook", kind);
        assert!(findings.is_empty(), "{findings:?} in {source}");
    }
}

#[test]
fn nothing_is_said_while_the_pools_are_unknown() {
    let text = "fn hook(req) { \"wbe\" }";
    let ast = compile(text);
    for (pools, expected) in [(None, 0), (Some(POOLS), 1), (Some(&[][..]), 1)] {
        let known = Known {
            source: &Source::one_file("routes.rhai", text).into(),
            functions: &natives(),
            request_properties: &[],
            response_properties: &[],
            constants: &[],
            pools,
        };
        let findings = Linter::new(&ast, &known).check_hook("hook", HookKind::To);
        assert_eq!(findings.len(), expected, "{pools:?}");
    }
}
