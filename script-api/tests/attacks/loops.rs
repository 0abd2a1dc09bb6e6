//! What goes on for ever: loops, in callbacks too, and iterators without an end.

use edgewright_script::engine::ScriptLimit::Operations;

use crate::harness::{Attack, Ends, attack, try_all};

fn endless(body: impl Into<String>) -> Attack {
    attack(body, Ends::At(Operations))
}

#[test]
fn loops_without_an_end() {
    try_all(vec![
        endless("«loop {}»"),
        endless("let n = 0;\n«loop { n += 1; }»"),
        endless("«while true { let x = 1; }»"),
        endless("«do { let x = 1; } while true»;"),
        endless("«do {} until false»;"),
        endless("«loop { loop { break; } }»"),
        endless("«loop { continue; }»"),
        endless("«loop { if req.header(\"x\") == \"1\" { return; } }»"),
        endless("let f = || { loop {} };\n«f.call()»;"),
        endless("«|| { loop {} }.call()»;"),
        endless("let x = «if true { loop {} } else { 1 }»;"),
        endless("let x = «switch 1 { 1 => { loop {} } _ => 2 }»;"),
        endless("`${«{ loop {} }»}`;"),
        endless("let a = [1, «{ loop {} }»];"),
        endless("req.set_header(\"x\", «{ loop {} }»);"),
        endless("let ok = false || «{ loop {} }»;"),
        endless("let x = () ?? «{ loop {} }»;"),
        endless("«spin()»;").with("fn spin() { loop {} }"),
        endless("let x = 1 +\n    «spin(1)»;")
            .with("fn spin(n) { twice(n) }\nfn twice(n) { loop { n += 0; } }"),
        endless("«req.spin()»;").with("fn spin() { loop {} }"),
    ]);
}

#[test]
fn what_runs_out_is_not_caught() {
    try_all(vec![
        endless("«try { loop {} } catch {}»"),
        endless("«try { loop {} } catch { return respond(200, \"open\"); }»"),
        endless("«try { loop {} } catch (e) { loop {} }»"),
        endless("«loop { try { throw 1; } catch {} }»"),
        endless("«loop { try { throw 1; } catch { continue; } }»"),
        endless("«try { spin() } catch { return respond(200, \"open\"); }»")
            .with("fn spin() { loop {} }"),
        endless("«try { [1].map(|x| { loop {} }) } catch { return respond(200, \"open\"); }»"),
        endless(
            "«try { [2, 1].sort(|x, y| { loop {} }) } catch { return respond(200, \"open\"); }»",
        ),
    ]);
}

/// Every native that takes a function, with one that doesn't end.
#[test]
fn loops_in_callbacks() {
    let arrays = [
        "map(|x| { loop {} })",
        "filter(|x| { loop {} })",
        "some(|x| { loop {} })",
        "all(|x| { loop {} })",
        "find(|x| { loop {} })",
        "find(|x| { loop {} }, 0)",
        "find_map(|x| { loop {} })",
        "find_map(|x| { loop {} }, 0)",
        "index_of(|x| { loop {} })",
        "index_of(|x| { loop {} }, 0)",
        "for_each(|x| { loop {} })",
        "reduce(|sum, x| { loop {} })",
        "reduce(|sum, x| { loop {} }, 0)",
        "reduce_rev(|sum, x| { loop {} })",
        "reduce_rev(|sum, x| { loop {} }, 0)",
        "zip([1, 2], |x, y| { loop {} })",
        "sort(|x, y| { loop {} })",
        "sort_by(|x, y| { loop {} })",
        "order(|x, y| { loop {} })",
        "order_by(|x, y| { loop {} })",
        "dedup(|x, y| { loop {} })",
        "drain(|x| { loop {} })",
        "retain(|x| { loop {} })",
    ];
    let maps = ["map", "filter", "drain", "retain"];
    let mut attacks: Vec<_> = arrays
        .iter()
        .flat_map(|call| {
            let caught = format!("«try {{ [3, 1, 2].{call}; }} catch {{ return respond(200); }}»");
            [endless(format!("«[3, 1, 2].{call}»;")), endless(caught)]
        })
        .collect();
    attacks
        .extend(maps.map(|name| endless(format!("«#{{ a: 1 }}.{name}(|k, v| {{ loop {{}} }})»;"))));
    // A function by its name.
    for name in [
        "map", "filter", "some", "all", "for_each", "sort", "order_by",
    ] {
        attacks.push(
            endless(format!("«[3, 1, 2].{name}(spin)»;"))
                .with("fn spin(x) { loop {} }\nfn spin(x, y) { loop {} }"),
        );
    }
    try_all(attacks);
}

/// Each callback is short, and there are 10 million.
#[test]
fn callbacks_in_callbacks() {
    try_all(vec![
        endless(
            "let hundred = []; hundred.pad(100, 0);
            «hundred.map(|x| {
                let hundred = []; hundred.pad(100, 0);
                hundred.map(|y| { for n in 0..1000 {} })
            })»;",
        ),
        endless(
            "let many = []; many.pad(4000, 0);
            «many.for_each(|x| {
                let many = []; many.pad(4000, 0);
                many.filter(|y| true);
            })»;",
        ),
        endless(
            "let many = []; for n in 0..3000 { many.push(3000 - n); }
            «many.sort(|x, y| { for n in 0..10 {} x - y })»;",
        ),
        endless(
            "let many = []; many.pad(1000, 1);
            «many.reduce(|sum, x| { for n in 0..1000 {} sum + x }, 0)»;",
        ),
    ]);
}

#[test]
fn iterators_without_an_end() {
    try_all(vec![
        endless("«for i in 0..9223372036854775807 {}»"),
        endless("«for i in 0..9223372036854775807 { let x = i; }»"),
        endless("«for i in 0..=9223372036854775807 {}»"),
        endless("«for i in (0..) {}»"),
        endless("«for i in range(0, 9223372036854775807) {}»"),
        endless("«for i in range(0, 9223372036854775807, 1) {}»"),
        endless("«for i in range(9223372036854775807, 0, -1) {}»"),
        endless("«for i in range(0.0, 1.0e308, 1.0) {}»"),
        endless("«for i in range(0.0, 1.0, 1.0e-300) {}»"),
        endless("«for (x, i) in 0..9223372036854775807 {}»"),
        attack("for i in «range(0, 10, 0)» {}", Ends::Wrong("zero")),
        attack("for i in 9223372036854775807..0 {}", Ends::Well),
        attack(
            "for i in range(0, 9223372036854775807, 9223372036854775807) {}",
            Ends::Well,
        ),
        // A list that grows while one walks over it: the walk is over a copy.
        attack("let a = [1]; for x in a { a.push(x); }", Ends::Well),
        attack(
            "let n = 0; for b in bits(-1) { if b { n += 1; } }",
            Ends::Well,
        ),
    ]);
}
