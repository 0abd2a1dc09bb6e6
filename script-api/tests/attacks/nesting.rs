//! Values inside values, and closures that hold closures.

use edgewright_script::engine::ScriptLimit::{Items, Memory, Operations};

use crate::harness::{Attack, Ends, attack, try_all};

/// A chain of functions, each of which holds the one before it twice: 2^22 ends, if one walks over all.
const SHARED: &str =
    "let f = || 0;\nfor i in 0..22 { let g = f; let a = || g; let b = || g; f = || [a, b]; }\n";
/// A function that holds itself.
const ITSELF: &str = "let f = 0; let g = || f; f = g;\n";

#[test]
fn values_that_nest() {
    let deep = |body: &str, ends: Ends| {
        attack(
            format!("let a = [0]; for i in 0..2000 {{ a = [a]; }}\n{body}"),
            ends,
        )
    };
    try_all(vec![
        attack("let a = [];\nloop { a = «[a]»; }", Ends::At(Items)),
        attack("let a = [];\nloop { «a = [a, a]»; }", Ends::At(Items)),
        attack(
            "let a = [];\nloop { let b = []; «b.push(a)»; a = b; }",
            Ends::At(Items),
        ),
        attack("let m = #{};\nloop { m = «#{ m: m }»; }", Ends::At(Items)),
        attack(
            "let m = #{};\nloop { let n = #{}; «n.m = m»; m = n; }",
            Ends::At(Items),
        ),
        deep("let b = a; let same = a == b;", Ends::Well),
        deep("let text = a.to_string(); let other = `${a}`;", Ends::Well),
        deep(
            "let text = «#{ a: a }.to_json()»;",
            Ends::Wrong("too deeply for JSON"),
        ),
        deep(
            "let found = [1, 2].contains(a); let at = [[]].index_of(a);",
            Ends::Well,
        ),
        deep("switch a { 1 => 1, _ => 2 }", Ends::Well),
        deep("«throw a»;", Ends::Wrong("[[[[")),
    ]);
}

/// The text is made once, not once for each level.
#[test]
fn a_long_text_far_inside() {
    let far = |body: &str, ends: Ends| {
        let inside = "let a = \"\"; a.pad(60000, '\\u0001');\nfor i in 0..2000 { a = [a]; }\n";
        attack(format!("{inside}{body}"), ends)
    };
    let long = || Ends::At(Memory);
    try_all(vec![
        far("«let text = a.to_string();»", long()),
        far("«let text = a.to_debug();»", long()),
        far("«let text = `${a}`;\nlet n = 1;»", long()),
        far("«let text = \"\" + a;\nlet n = 1;»", long()),
        far(
            "let text = «#{ a: a }.to_json()»;",
            Ends::Wrong("too deeply for JSON"),
        ),
        far("let same = a == a;", Ends::Well),
    ]);
}

#[test]
fn functions_that_hold_functions() {
    let with = |first: &str, body: &str, ends: Ends| attack(format!("{first}{body}"), ends);
    let mut attacks = vec![
        attack(
            "let f = || 0;\n«loop { let g = f; f = || g; }»",
            Ends::At(Operations),
        ),
        attack(
            "let a = []; a.pad(1000, 0); let f = || 0;\n«loop { f = a.reduce(|s, x| || s, f); }»",
            Ends::At(Operations),
        ),
        attack(
            "let s = \"\"; s.pad(10000, 'x'); let f = || 0;\n«loop { let g = f; let t = s + \"\"; f = || { g == t }; }»",
            Ends::At(Operations),
        ),
    ];
    for first in [SHARED, ITSELF] {
        attacks.extend([
            with(
                first,
                "let text = «#{ f: f }.to_json()»;",
                Ends::Wrong("JSON"),
            ),
            with(
                first,
                "let text = [f].to_string(); let other = `${[f]} ${f}`;",
                Ends::Well,
            ),
            with(
                first,
                "let text = \"\" + f + [f]; let d = [f].to_debug();",
                Ends::Well,
            ),
            with(first, "switch f { 1 => 1, _ => 2 }", Ends::Well),
            with(first, "switch [f] { 1 => 1, _ => 2 }", Ends::Well),
            with(first, "let same = «[f] == [f]»;", Ends::Wrong("==")),
            with(
                first,
                "let found = [1, \"a\"].contains(f); let at = [#{}].index_of(#{ f: f });",
                Ends::Well,
            ),
            with(first, "let a = [f]; a.push(f); let b = a + a;", Ends::Well),
            with(first, "«throw [f]»;", Ends::Wrong("")),
            with(
                first,
                "let m = #{ f: f }; m.g = f; let n = m; let v = m.values();",
                Ends::Well,
            ),
        ]);
    }
    try_all(attacks);
}

/// Values that a closure shares, in every place that looks into values.
#[test]
fn shared_values_in_arrays() {
    let shared: &str = "let a = 1; let f = || a; let b = [1, 2, 3];\n";
    let well = |body: &str| -> Attack { attack(format!("{shared}{body}"), Ends::Well) };
    try_all(vec![
        well("let c = [a, a]; c.push(a); c += c; c += a; c.insert(0, a); c[0] = a; c.pad(30, a);"),
        well(
            "let m = #{ a: a }; m.a = a; m.b = a; m[\"c\"] = a; m.set(\"d\", a); m.fill_with(#{ e: a });",
        ),
        well("b.for_each(|| { this = a; }); let c = b; b.push(1);"),
        well("let c = b.map(|x| a); c.push(1); let s = c.to_string();"),
        well("let c = b.map(f); c.push(1); let d = b.reduce(|s, x| a, a); let e = [d]; e.push(1);"),
        well("b.set(0, a); b.splice(0, 1, [a]); let found = b.contains(a) || b.index_of(a) == 0;"),
        well(
            "let m = #{ x: a }; let v = m.values(); v.push(1); let w = m.map(|k, v| a); w.set(\"x\", 1);",
        ),
        well(
            "let s = \"x\" + a; let t = `${a}`; switch a { 1 => 2, _ => 3 } for x in [a] { b.push(x); }",
        ),
    ]);
}
