//! Whatever the parser accepts is walked without a panic or an overflow.

use proptest::prelude::*;

use super::super::Linter;
use super::{engine, with_known};
use crate::program::HookKind;

/// The smallest stack that a thread of this program has.
const STACK: usize = 512 * 1024;

/// Shapes that nest: what stands before, in the middle and after.
const SHAPES: [(&str, &str, &str); 18] = [
    ("[", "1", "]"),
    ("#{ a: ", "1", "}"),
    ("- ", "x", ""),
    ("1 + ", "x", ""),
    ("!", "x", ""),
    ("x.", "y", ""),
    ("x[", "y", "]"),
    ("f(", "x", ")"),
    ("x.f(", "x", ")"),
    ("|x| ", "x", ""),
    ("`${", "x", "}`"),
    ("if x { 1 } else ", "{ 2 }", ""),
    ("if x { ", "1", "}"),
    ("{ ", "1", "}"),
    ("switch x { 1 => ", "1", "}"),
    ("loop { break ", "1", "; }"),
    ("x ?? ", "x", ""),
    ("x && ", "x", ""),
];

/// Every check of `source`, with every function as every kind of hook.
fn walk_everything(source: &str, max_depth: usize) -> Option<usize> {
    let mut engine = engine();
    engine.set_max_expr_depths(max_depth, max_depth);
    let ast = engine.compile(source).ok()?;
    Some(with_known(source, |known| {
        let linter = Linter::new(&ast, known);
        let mut findings = linter.check().len();
        for function in ast.iter_functions() {
            for kind in [
                HookKind::OnRequest,
                HookKind::When,
                HookKind::To,
                HookKind::OnResponse,
            ] {
                findings += linter.check_hook(function.name, kind).len();
            }
        }
        findings
    }))
}

fn on_small_stack<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(run);
    thread.unwrap().join().unwrap()
}

#[test]
fn the_deepest_program_of_each_shape_fits_the_stack() {
    on_small_stack(|| {
        for (open, middle, close) in SHAPES {
            let nested = |depth: usize| {
                format!(
                    "fn g(x) {{ {}{middle}{} }}",
                    open.repeat(depth),
                    close.repeat(depth)
                )
            };
            let deepest = (1..=70)
                .rev()
                .find(|depth| walk_everything(&nested(*depth), 64).is_some());
            assert!(
                deepest.is_some_and(|depth| depth >= 5),
                "{open} {deepest:?}"
            );
        }
    });
}

#[test]
fn a_tree_deeper_than_the_limits_gets_a_warning() {
    let source = format!("fn g(x) {{ {}x }}", "!".repeat(400));
    let mut engine = engine();
    engine.set_max_expr_depths(0, 0);
    let ast = engine.compile(&source).unwrap();
    let findings = with_known(&source, |known| Linter::new(&ast, known).check());
    let all: Vec<_> = findings
        .iter()
        .map(|finding| finding.message.as_str())
        .collect();
    assert_eq!(all, ["this is nested too deeply to be checked"]);
}

/// Pieces that random programs are made of; many of them parse.
fn pieces() -> impl Strategy<Value = String> {
    let words = [
        "x",
        "y",
        "req",
        "f",
        "respond",
        "header",
        "K",
        "anon",
        "1",
        "2.5",
        "\"t\"",
        "'c'",
        "true",
        "()",
        "this",
        "let x = ",
        "const K = ",
        "fn f(x) { ",
        "if ",
        " else ",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "#{ a: ",
        ", ",
        "; ",
        ".",
        "?.",
        "?[",
        " + ",
        " < ",
        " == ",
        " && ",
        " || ",
        " ?? ",
        " in ",
        "!",
        "-",
        "|x| ",
        "|| ",
        "return ",
        "throw ",
        "for x in ",
        "while ",
        "loop ",
        "do ",
        " until ",
        "break ",
        "continue",
        "switch ",
        " => ",
        " _ ",
        "try ",
        " catch (e) ",
        "import ",
        " as ",
        "export ",
        "::",
        "f!(",
        ".call(",
        ".curry(",
        "curry(",
        ".header(\"a\")",
        ".set_header(",
        ".path",
        "`${",
        "}`",
        "..",
        "..=",
        " = ",
        " += ",
        "is_def_var(",
        "Fn(",
        "private ",
        "global::",
    ];
    prop::collection::vec(prop::sample::select(words.to_vec()), 0..40)
        .prop_map(|pieces| pieces.concat())
}

/// Programs that parse by construction.
fn expressions() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "x",
        "K",
        "req",
        "missing",
        "1",
        "2.5",
        "\"t\"",
        "true",
        "()",
        "gate",
        "respond(403)",
        "req.path",
        "global::K",
        "m::K",
    ])
    .prop_map(String::from);
    leaf.prop_recursive(6, 60, 3, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            pair.clone().prop_map(|(a, b)| format!("({a}) + ({b})")),
            pair.clone().prop_map(|(a, b)| format!("({a}) < ({b})")),
            pair.clone().prop_map(|(a, b)| format!("({a}) ?? ({b})")),
            pair.clone()
                .prop_map(|(a, b)| format!("({a} == 1) || ({b} != 2)")),
            pair.clone().prop_map(|(a, b)| format!("({a}) in [{b}]")),
            pair.clone()
                .prop_map(|(a, b)| format!("if x == {a} {{ {b} }} else {{ {a}; }}")),
            pair.clone()
                .prop_map(|(a, b)| format!("switch {a} {{ 1 => {b}, _ => {{ {a}; {b} }} }}")),
            pair.clone()
                .prop_map(|(a, b)| format!("{{ let v = {a}; v.a[{b}] = {a}; v }}")),
            pair.clone()
                .prop_map(|(a, b)| format!("{{ for (v, i) in [{a}] {{ x = {b}; }} }}")),
            pair.clone()
                .prop_map(|(a, b)| format!("{{ try {{ throw {a}; }} catch (e) {{ {b} }} }}")),
            pair.clone()
                .prop_map(|(a, b)| format!("#{{ a: {a}, b: {b} }}")),
            pair.prop_map(|(a, b)| format!("x.f({a})[{b}]?.c")),
            inner
                .clone()
                .prop_map(|a| format!("|v, w| {{ v += {a}; }}")),
            inner.clone().prop_map(|a| format!("`a ${{{a}}} b`")),
            inner.clone().prop_map(|a| format!("f({a}, {a})")),
            inner.clone().prop_map(|a| format!("({a}).curry({a})")),
            inner
                .clone()
                .prop_map(|a| format!("{{ {a}; \"web\"; x[{a}].y; #{{ web: {a} }} }}")),
            inner.prop_map(|a| format!("{{ return {a}; }}")),
        ]
    })
}

proptest! {
    #[test]
    fn random_pieces(source in pieces()) {
        walk_everything(&source, 64);
    }

    #[test]
    fn random_programs(a in expressions(), b in expressions()) {
        let source = format!("const K = {a};\nfn gate(x, req) {{ {b} }}\nlet x = {b};\n{a};");
        walk_everything(&source, 64);
    }
}
