#![allow(clippy::unwrap_used)]

mod comparisons;
mod currying;
mod findings;
mod hooks;
mod legal;
mod no_effect;
mod phases;
mod pools;
mod request_changes;
mod robust;
mod shadowing;

use rhai::{AST, Engine, FnPtr, OptimizationLevel};

use super::{Known, Linter, NativeSignature, Natives};
use crate::diagnostic::Diagnostic;
use crate::program::HookKind;
use crate::source::Source;

const REQUEST: &[&str] = &["method", "path", "host", "client_ip", "params", "id"];
const RESPONSE: &[&str] = &["status", "is_local"];
const POOLS: &[&str] = &["web", "canary", "a", "b"];

/// An engine with Rhai's packages, which compiles as the loader does.
fn engine() -> Engine {
    let mut engine = Engine::new();
    engine.set_optimization_level(OptimizationLevel::None);
    engine.set_max_expr_depths(64, 32);
    engine
}

/// Rhai's packages and the natives that the snippets use; methods count their receiver.
fn natives() -> Natives {
    let mut natives = Natives::from_engine(&engine());
    let list: &[(&str, &[usize])] = &[
        ("add_header", &[3]),
        ("allow", &[2]),
        ("captures", &[2]),
        ("cidr", &[1]),
        ("contains", &[2]),
        ("cookie", &[2]),
        ("deny", &[2]),
        ("env", &[1, 2]),
        ("every", &[2]),
        ("from", &[2]),
        ("get", &[2]),
        ("header", &[2, 3]),
        ("is_match", &[2]),
        ("json", &[1]),
        ("log", &[2, 3]),
        ("methods", &[2]),
        ("num", &[1]),
        ("on_log", &[2]),
        ("on_request", &[1, 2]),
        ("on_response", &[1, 2]),
        ("param", &[2]),
        ("pool", &[2]),
        ("query", &[2]),
        ("rate", &[2, 3]),
        ("redirect", &[2, 3]),
        ("regex", &[1]),
        ("remove_header", &[2]),
        ("respond", &[1, 2, 3]),
        ("rewrite", &[2]),
        ("route", &[1, 2]),
        ("set_header", &[3]),
        ("site", &[1]),
        ("table", &[1]),
        ("timeout", &[2]),
        ("to", &[2]),
        ("when", &[2]),
    ];
    natives.extend(list.iter().flat_map(|(name, arities)| {
        arities.iter().map(|arity| NativeSignature {
            name: (*name).to_string(),
            arity: *arity,
        })
    }));
    natives
}

fn compile(source: &str) -> AST {
    engine()
        .compile(source)
        .unwrap_or_else(|error| panic!("{error} in\n{source}"))
}

fn with_known<T>(source: &str, run: impl FnOnce(&Known<'_>) -> T) -> T {
    run(&Known {
        source: &Source::one_file("routes.rhai", source).into(),
        functions: &natives(),
        request_properties: REQUEST,
        response_properties: RESPONSE,
        constants: &["VERSION"],
        pools: Some(POOLS),
    })
}

fn lint(source: &str) -> Vec<Diagnostic> {
    with_known(source, |known| super::check(&compile(source), known))
}

/// Each program has the one finding beside it, as its summary without the file's name.
#[track_caller]
fn check(list: &[(&str, &str)]) {
    for (source, expected) in list {
        assert_eq!(finding(source), *expected, "{source}");
    }
}

/// The same for the hook called `hook` in each program.
#[track_caller]
fn check_hook(kind: HookKind, list: &[(&str, &str)]) {
    for (source, expected) in list {
        let found = only(source, &lint_hook(source, "hook", kind));
        assert_eq!(found, *expected, "{source}");
    }
}

/// The one finding of `source`, as its summary without the file's name.
fn finding(source: &str) -> String {
    only(source, &lint(source))
}

fn only(source: &str, findings: &[Diagnostic]) -> String {
    let all: Vec<_> = findings.iter().map(Diagnostic::summary).collect();
    assert_eq!(all.len(), 1, "{all:#?} in\n{source}");
    all[0].trim_start_matches("routes.rhai:").to_string()
}

/// Findings about a hook: the function `name`, or the closure that the constant `name` holds.
fn lint_hook(source: &str, name: &str, kind: HookKind) -> Vec<Diagnostic> {
    let ast = compile(source);
    let closure = ast
        .iter_literal_variables(true, false)
        .find(|(constant, ..)| *constant == name)
        .and_then(|(.., value)| value.try_cast::<FnPtr>());
    let name = closure.map_or(name.to_string(), |pointer| pointer.fn_name().to_string());
    with_known(source, |known| {
        Linter::new(&ast, known).check_hook(&name, kind)
    })
}
