//! The deepest hooks that load, on half the stack of a worker: a failure, never the end of the process.

use std::time::Duration;

use edgewright_script::{
    engine::{FailureKind, Limits, ScriptLimit},
    load::load,
    memory::MemoryRequest,
};

use crate::{
    harness::{on_a_stack_of, on_a_worker, runner, unhurried},
    support::inputs,
};

/// Half of what a worker has, in bytes: a build, a compiler or a library may need more another day.
const HALF: usize = 32 * 1024 * 1024;

/// The largest that `[script]` allows (`docs/configuration.md`).
fn largest() -> Limits {
    Limits {
        operations: 1_000_000,
        memory: 1024 * 1024 * 1024,
        call_depth: 32,
        string: 1024 * 1024,
        items: 1_000_000,
        time: Duration::from_secs(10),
        ..unhurried()
    }
}

/// Shapes that nest: what stands before and behind.
const SHAPES: [(&str, &str); 24] = [
    ("(", ")"),
    ("[", "]"),
    ("[", "][0]"),
    ("#{ a: ", " }"),
    ("#{ a: ", " }.a"),
    ("- ", ""),
    ("!", ""),
    ("1 + ", ""),
    ("() ?? ", ""),
    ("true && ", ""),
    ("same(", ")"),
    ("x.also(", ")"),
    ("x.also(", ").also(1)"),
    ("(|y| ", ").call(1)"),
    ("[1].map(|y| ", ")"),
    ("[2, 1].sort(|y, z| ", ")"),
    ("`${", "}`"),
    ("{ ", " }"),
    ("if true { ", " } else { 1 }"),
    ("if false { 1 } else { ", " }"),
    ("switch x { _ => ", " }"),
    ("loop { break ", "; }"),
    ("{ try { ", " } catch (e) { throw e; } }"),
    ("{ for y in [1] { ", " } }"),
];

fn program(depth: usize, (open, close): (&str, &str)) -> String {
    format!(
        "route(\"/a\").on_request(|req| {{ let r = down(1); }}).to(\"web\");
        fn same(x) {{ x }}
        fn also(y) {{ y }}
        fn down(x) {{ let r = {}down(x){}; r }}",
        open.repeat(depth),
        close.repeat(depth)
    )
}

/// The deepest program of a shape that loads.
fn deepest(shape: (&str, &str), limits: Limits) -> String {
    let loads = |depth: usize| {
        let mut inputs = inputs(&program(depth, shape));
        inputs.limits = limits;
        load(&inputs).is_ok()
    };
    let (mut some, mut too_many) = (1, 1000);
    assert!(loads(some) && !loads(too_many), "{shape:?}");
    while too_many - some > 1 {
        let middle = some.midpoint(too_many);
        if loads(middle) {
            some = middle;
        } else {
            too_many = middle;
        }
    }
    assert!(some >= 10, "only {some} times {shape:?}");
    program(some, shape)
}

#[test]
fn the_deepest_of_each_shape() {
    for shape in SHAPES {
        for limits in [unhurried(), largest()] {
            on_a_stack_of(HALF, move || {
                let mut edge = runner(&deepest(shape, limits), limits);
                for _ in 0..2 {
                    let mut request = MemoryRequest::new("GET", "h", "/a");
                    let failure = edge.run(&mut request).expect_err("too deep a call");
                    assert_eq!(
                        failure.limit,
                        Some(ScriptLimit::CallDepth),
                        "{shape:?}: {failure}"
                    );
                }
            });
        }
    }
}

/// Chains that are as long as the largest settings let them become: they are let go by recursion. What is
/// built in quadratic time has a second, and with `EDGEWRIGHT_SOAK=1` the ten that the settings allow.
#[test]
fn the_longest_chains() {
    let soak = std::env::var_os("EDGEWRIGHT_SOAK").is_some_and(|value| value == "1");
    let limits = Limits {
        time: Duration::from_secs(if soak { 10 } else { 1 }),
        ..largest()
    };
    for body in [
        "let f = || 0; loop { let g = f; f = || g; }",
        "let a = []; a.pad(1000, 0); let f = || 0; loop { f = a.reduce(|s, x| || s, f); }",
        "let f = || 0; for i in 0..60000 { let g = f; f = || g; } throw [f];",
        "let f = || 0; for i in 0..60000 { let g = f; f = || g; } let t = [f].to_string(); switch f { 1 => 1, _ => 2 }",
        "let f = || 0; for i in 0..60000 { let g = f; f = || g; } f",
        "let m = #{}; loop { let n = #{}; n.m = m; m = n; }",
        "let a = []; loop { a = [a]; }",
        "let a = []; for i in 0..20000 { a = [a]; } let same = a == a; let text = a.to_string() + #{ a: a }.to_json(); throw a;",
    ] {
        let source = format!("route(\"/a\").on_request(|req| {{ {body} }}).to(\"web\");");
        on_a_worker(move || {
            let mut edge = runner(&source, limits);
            if let Err(failure) = edge.run(&mut MemoryRequest::new("GET", "h", "/a")) {
                assert_ne!(failure.kind, FailureKind::Panic, "{failure}");
            }
        });
    }
}
