//! Calls inside calls.

use edgewright_script::engine::ScriptLimit::{CallDepth, Operations};

use crate::harness::{Attack, Ends, attack, try_all};

fn too_deep(body: impl Into<String>) -> Attack {
    attack(body, Ends::At(CallDepth))
}

#[test]
fn recursion() {
    try_all(vec![
        too_deep("«down(0)»;").with("fn down(n) { down(n + 1) }"),
        too_deep("let x = 1 + «down(0)»;").with("fn down(n) { 1 + down(n + 1) }"),
        too_deep("«here(0)»;").with("fn here(n) { there(n + 1) }\nfn there(n) { here(n + 1) }"),
        too_deep("«down(0)»;").with("fn down(n) { ((((((((((((down(n + 1))))))))))))) }"),
        too_deep("«down(0)»;")
            .with("fn down(n) { if true { if true { switch n { _ => { `${down(n + 1)}` } } } } }"),
        too_deep("«down(0)»;").with("fn down(n) { [[[[[[[[[[[[down(n + 1)]]]]]]]]]]]] }"),
        too_deep("«req.down(0)»;").with("fn down(n) { this.down(n + 1) }"),
        too_deep("down([1]);")
            .inside()
            .with("fn down(list) { list.map(|x| down([x])) }"),
        too_deep("down([1]);")
            .inside()
            .with("fn down(list) { list.filter(|x| down([x]) == 1) }"),
        too_deep("down([2, 1]);")
            .inside()
            .with("fn down(list) { list.sort(|x, y| { down([x, y]); 0 }) }"),
        too_deep("down([1]);")
            .inside()
            .with("fn down(list) { list.reduce(|sum, x| down([x]), 0) }"),
        too_deep("«down(down)»;").with("fn down(f) { f.call(f) }"),
        too_deep("let f = |g, n| { g.call(g, n + 1) };\n«f.call(f, 0)»;"),
        too_deep("let f = |g| { let h = || g.call(g); h.call() };\n«f.call(f)»;"),
        too_deep("«down(0)»;").with("fn down(n) { let f = || down(n + 1); f.call() }"),
        too_deep("«down(0)»;").with("fn down(n) { call(Fn(\"down\"), n + 1) }"),
        too_deep("LIST.map(|x| down(x));")
            .inside()
            .with("fn down(n) { LIST.map(|x| down(x)) }"),
        too_deep("«try { down(0) } catch { down(0) }»").with("fn down(n) { down(n + 1) }"),
    ]);
}

/// A call that is too deep is not caught; calls that are not too deep can still be very many.
#[test]
fn recursion_that_branches() {
    let twice = "fn down(n) { try { down(n + 1) } catch { down(n + 1) } }";
    try_all(vec![
        too_deep("«loop { try { down(0) } catch {} }»").with("fn down(n) { down(n + 1) }"),
        too_deep("«down(0)»;").with(twice),
        too_deep("«loop { try { down(0) } catch {} }»").with(twice),
        too_deep("«fib(40)»;")
            .with("fn fib(n) { if n < 2 { n } else { fib(n - 1) + fib(n - 2) } }"),
        attack("«tree(12)»;", Ends::At(Operations)).with(
            "fn tree(n) { if n == 0 { 1 } else { tree(n - 1) + tree(n - 1) + tree(n - 1) } }",
        ),
    ]);
}

/// A function that finds itself in what it captured.
#[test]
fn functions_that_call_themselves() {
    try_all(vec![
        attack(
            "let f = 0; let g = |n| f.call(n + 1); f = g;\n«f.call(0)»;",
            Ends::Wrong("data race"),
        ),
        attack(
            "let o = #{ n: 1 }; let next = || o.next.call(); o.next = next;\n«o.next.call()»;",
            Ends::Wrong("data race"),
        ),
        attack(
            "let f = |g| g; f = f.call(f); f = f.call(f); let x = f.call(f);",
            Ends::Well,
        ),
    ]);
}
