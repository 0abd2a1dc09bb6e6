#![allow(clippy::unwrap_used)]

use rhai::{Engine, EvalAltResult};

use crate::{diagnostic::Diagnostic, source::Source};

fn engine() -> Engine {
    let mut engine = Engine::new_raw();
    engine.register_fn("respond", |_status: i64| ());
    engine.register_fn("pool", |name: &str| -> Result<(), Box<EvalAltResult>> {
        Err(Diagnostic::error(format!("unknown pool `{name}`"))
            .help("did you mean `web`?")
            .into())
    });
    engine.set_max_call_levels(8);
    engine
}

fn failure(source: &str) -> Box<EvalAltResult> {
    engine().run(source).unwrap_err()
}

fn finding(source: &str) -> Diagnostic {
    Diagnostic::from_eval_error(&failure(source), &Source::one_file("routes.rhai", source))
}

fn summary(source: &str) -> String {
    finding(source).summary()
}

#[test]
fn failures_in_plain_words() {
    for (source, expected) in [
        (
            "let a = 1;\n  a + missing",
            "routes.rhai:2:7: error: undefined variable `missing`",
        ),
        (
            "respond(\"403\")",
            "routes.rhai:1:1: error: `respond` can't be called with (text) (it is `respond(status: int) -> Answer` or \
             `respond(status: int, body: text | bytes | Body) -> Answer`)",
        ),
        (
            "respond()",
            "routes.rhai:1:1: error: `respond` can't be called without arguments (it is `respond(status: int) -> Answer` or \
             `respond(status: int, body: text | bytes | Body) -> Answer`)",
        ),
        (
            "respond('4')",
            "routes.rhai:1:1: error: `respond` can't be called with (a character) \
             (single quotes make a character: text stands in \"double quotes\")",
        ),
        ("throw \"no key\"", "routes.rhai:1:1: error: no key"),
        (
            "throw #{ status: 403, message: \"no\" }",
            "routes.rhai:1:1: error: no",
        ),
        (
            "throw \"\"",
            "routes.rhai:1:1: error: the script threw an error without a message",
        ),
        (
            "let a = [1]; a[3]",
            "routes.rhai:1:16: error: index 3 is outside of the array, which has 1 item",
        ),
        (
            "let a = 1; if a { 2 }",
            "routes.rhai:1:15: error: expected true or false, got a number",
        ),
        (
            "let a = 1; a.foo",
            "routes.rhai:1:14: error: unknown property `foo`",
        ),
        (
            "let a = 1; a / 0",
            "routes.rhai:1:14: error: division by zero: 1 / 0",
        ),
        (
            "for x in respond(1) { }",
            "routes.rhai:1:10: error: `for` needs an array, a range or text to walk over",
        ),
    ] {
        assert_eq!(summary(source), expected, "{source}");
    }
}

#[test]
fn the_innermost_cause_and_place_with_the_calls() {
    let source = "fn inner(x) {\n    x + missing\n}\nfn outer() { inner(1) }\nouter();";
    let finding = finding(source);
    assert_eq!(
        finding.render(&|_| Some(source.into()), false),
        "\
error: undefined variable `missing`
 --> routes.rhai:2:9
  |
2 |     x + missing
  |         ^^^^^^^
  |
  = help: in `inner`, called at 4:14
  = help: in `outer`, called at 5:1"
    );
}

#[test]
fn a_closure_has_no_name() {
    assert_eq!(
        summary("let f = |x| x + missing;\nlet missing = 1;\nf.call(1)"),
        "routes.rhai:1:17: error: undefined variable `missing`"
    );
    assert_eq!(
        summary("let f = |x| { throw `no ${x}` };\nf.call(1)"),
        "routes.rhai:1:15: error: no 1 (in a closure, called at 2:3)"
    );
    let source = "let m = #{ f: |x| x };\nm.f(1, 2)";
    assert_eq!(
        summary(source),
        "routes.rhai:2:3: error: this closure can't be called with (a map, a number, a number)"
    );
    assert_eq!(finding(source).place.map(|place| place.length), Some(1));
}

#[test]
fn a_recursion_is_cut_short() {
    let help = finding("fn f() { f() }\nf()");
    assert_eq!(help.message, "calls are nested too deeply");
    assert!(help.place.is_some());
    let lines = help.help.unwrap_or_default();
    assert!(lines.lines().count() <= 7, "{lines}");
}

#[test]
fn a_native_can_raise_a_finding_with_its_help() {
    assert_eq!(
        summary("fn f() {\n  pool(\"wbe\")\n}\nf()"),
        "routes.rhai:2:3: error: unknown pool `wbe` (did you mean `web`?; in `f`, called at 4:1)"
    );
}

#[test]
fn the_nearest_of_the_names_is_suggested() {
    let text = "repsond(403)";
    let source = Source::one_file("routes.rhai", text);
    let names = ["respond", "route"];
    let finding = Diagnostic::from_eval_error_among(&failure(text), &source, names);
    assert_eq!(
        finding.summary(),
        "routes.rhai:1:1: error: `repsond` can't be called with (a number) (did you mean `respond`?)"
    );
    assert_eq!(
        finding.place.map(|place| place.length),
        Some("repsond".len())
    );
}
