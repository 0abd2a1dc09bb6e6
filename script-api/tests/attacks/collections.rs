//! Arrays and maps that grow.

use edgewright_script::engine::ScriptLimit::{self, Items, Memory, Operations};

use crate::harness::{Attack, Ends, attack, try_all};

fn too_many(body: impl Into<String>) -> Attack {
    attack(body, Ends::At(Items))
}

#[test]
fn arrays_that_grow() {
    try_all(vec![
        too_many("let a = [];\nloop { «a.push(0)»; }"),
        too_many("let a = [0];\nloop { «a.append(a)»; }"),
        too_many("let a = [0];\nloop { «a += a»; }"),
        too_many("let a = [0];\nloop { «a += 1»; }"),
        too_many("let a = [0];\nloop { a = «a + a»; }"),
        too_many("let a = [0];\nloop { «a.insert(0, 1)»; }"),
        too_many("let a = [0];\nloop { «a.splice(0, 0, a)»; }"),
        too_many("let a = [0];\nloop { a = «a.zip(a, |x, y| [x, y])»; }"),
        too_many("let a = [0];\nloop { «a.pad(a.len() * 2, 0)»; }"),
        too_many("let b = \"abc\".to_blob();\nloop { «b += b»; }"),
        too_many("«fill([])»;").with("fn fill(a) { loop { a.push(0); } }"),
        too_many("«[1].map(|x| { let a = []; loop { a.push(0); } })»;"),
        too_many("let a = [];\n«try { loop { a.push(0); } } catch { loop { a.push(0); } }»"),
        too_many("let a = [[]];\nloop { «a[0].push(0)»; }"),
        too_many("let m = #{ a: [] };\nloop { «m.a.push(0)»; }"),
        // What a function does to the items is no method of the array.
        attack(
            "let a = []; a.pad(4000, 0);\n«loop { a.for_each(|| { this = [this]; }); a.push(0); }»",
            Ends::At(Items),
        ),
    ]);
}

/// Rhai's own functions would ask for memory first; in a release build its sizes overflow.
#[test]
fn one_call_that_would_make_gigabytes() {
    let mut attacks = vec![
        too_many("let a = [];\n«a.pad(4097, 0)»;"),
        too_many("let a = [];\n«a.pad(1000000000, 0)»;"),
        too_many("let a = [];\n«a.pad(9223372036854775807, 0)»;"),
        too_many("let a = []; a.pad(4000, 0); let b = []; «b.pad(4000, a)»;"),
        attack(
            "let a = [1]; a.pad(-9223372036854775807 - 1, 0);",
            Ends::Well,
        ),
        attack(
            "let a = [1]; a.splice(-9223372036854775807 - 1, 9223372036854775807, [2]);",
            Ends::Well,
        ),
        attack(
            "let a = [1]; a.splice(9223372036854775807, 9223372036854775807, [2]);",
            Ends::Well,
        ),
        attack(
            "let a = [1]; a.insert(-9223372036854775807 - 1, 0); a.truncate(9223372036854775807);",
            Ends::Well,
        ),
        attack(
            "let a = [1]; let b = a.extract(-9223372036854775807 - 1, 9223372036854775807);",
            Ends::Well,
        ),
        attack(
            "let a = [1]; let b = a.drain(-9223372036854775807 - 1..9223372036854775807);",
            Ends::Well,
        ),
        attack(
            "let a = [1]; let b = a.retain(0..=9223372036854775807); a.chop(9223372036854775807);",
            Ends::Well,
        ),
    ];
    // 1 + 2^n items, 2^(64 - n) times, are none when one counts in 64 bits.
    for power in 1..12 {
        let items = (1_i64 << power) - 1;
        let times = 1_i128 << (64 - power);
        let times = times.min(i128::from(i64::MAX));
        attacks.push(too_many(format!(
            "let a = []; a.pad({items}, 0);\nlet b = []; «b.pad({times}, a)»;"
        )));
    }
    try_all(attacks);
}

/// Assigning to a new key of a map is not held to `items`; what it holds is held to `memory`.
#[test]
fn maps_that_grow() {
    let endless = |body: &str| attack(body, Ends::At(Operations));
    // One long text, 4,000 times.
    let texts = |body: &str, ends: Ends| {
        let map =
            "let s = \"\"; s.pad(65536, 'a'); let m = #{}; for i in 0..4000 { m[`k${i}`] = s; }\n";
        attack(format!("{map}«{body}»"), ends)
    };
    try_all(vec![
        endless("let m = #{}; let i = 0;\n«loop { m[`k${i}`] = i; i += 1; }»"),
        endless("let m = #{}; let i = 0;\n«loop { m.set(`k${i}`, i); i += 1; }»"),
        too_many("let m = #{}; for i in 0..4200 { m[`k${i}`] = i; }\n«m.set(\"x\", 1)»;"),
        too_many("let m = #{}; for i in 0..4200 { m[`k${i}`] = i; }\nlet n = «m.len()»;"),
        too_many("let m = #{}; for i in 0..4200 { m[`k${i}`] = i; }\nlet n = «m.keys()»;"),
        too_many("let m = #{}; for i in 0..4200 { m[`k${i}`] = i; }\nlet n = «#{ a: m }»;"),
        too_many(
            "let m = #{}; for i in 0..2100 { m[`a${i}`] = i; }\nlet n = #{}; for i in 0..2100 { n[`b${i}`] = i; }\n«m += n»;",
        ),
        too_many(
            "let m = #{}; for i in 0..2100 { m[`a${i}`] = i; }\nlet n = #{}; for i in 0..2100 { n[`b${i}`] = i; }\nlet o = «m + n»;",
        ),
        too_many(
            "let m = #{}; for i in 0..2100 { m[`a${i}`] = i; }\nlet n = #{}; for i in 0..2100 { n[`b${i}`] = i; }\n«m.fill_with(n)»;",
        ),
        attack(
            "let a = []; a.pad(4000, 0); let m = #{}; let i = 0;\n«loop { m[`k${i}`] = a + []; i += 1; }»",
            Ends::At(Memory),
        ),
        // All of it as text would be 256 MiB, and as JSON, and as a value of a cache.
        texts("let text = m.to_string();", Ends::At(Memory)),
        texts("let text = `${m}`;\nlet n = 1;", Ends::At(Memory)),
        texts("let text = \"\" + m;\nlet n = 1;", Ends::At(Memory)),
        texts("let text = \"\"; text += m;\nlet n = 1;", Ends::At(Memory)),
        texts("let text = m.to_json();", Ends::Wrong("longer than")),
        texts("let text = json_encode(m);", Ends::Wrong("longer than")),
        texts("CACHE.set(\"k\", m);", Ends::At(ScriptLimit::String)),
        texts("let v = CACHE.get_or(\"k\", || m);", Ends::At(ScriptLimit::String)),
        texts("let n = m;\nlet same = m == n;", Ends::Well),
        // A map beyond `items`, copied again and again.
        attack(
            format!(
                "let a = []; a.pad(200, 0); let m = #{{}};\nfor i in 0..4000 {{ m[`k${{i}}`] = a; }}\n«{}»",
                (0..40)
                    .map(|n| format!("let m{n} = m; "))
                    .collect::<String>()
            ),
            Ends::At(Memory),
        )
        .twice(),
    ]);
}

#[test]
fn sums_of_many_arrays() {
    let mut variables = "let a = []; a.pad(4000, 0);\n«".to_owned();
    for number in 0..1000 {
        variables += &format!("let v{number} = a + [];\n");
    }
    variables.push('»');
    try_all(vec![
        attack(variables, Ends::At(Memory)),
        attack(
            "let a = []; a.pad(4000, 0); let f = ();\n«for i in 0..2000 { let b = a + []; let g = f; f = || { g == b }; }»",
            Ends::At(Memory),
        ),
        attack(
            "let a = []; a.pad(4000, 0);\nfor i in 0..1000 { let b = a + []; }",
            Ends::Well,
        ),
        attack(
            "«let a = []; a.pad(4000, 0);\nlet b = []; loop { b.push(a); }»",
            Ends::At(Items),
        ),
    ]);
}

/// No call is longer than its arguments are large.
#[test]
fn work_on_large_arrays() {
    let large = "let a = []; for n in 0..4000 { a.push(n); }\n";
    let well = |body: &str| attack(format!("{large}{body}"), Ends::Well);
    try_all(vec![
        well("let b = a + []; let same = a == b;"),
        well("let b = a + []; let found = a.contains(b) || b in a;"),
        well("let lists = []; for n in 0..2000 { lists.push([]); } let found = lists.index_of(a);"),
        well("a.sort(); a.reverse(); let b = a.order_desc(); a.dedup();"),
        well("let s = a.to_string(); let t = `${a}`;"),
        well("switch a { 1 => throw \"no\", _ => () }"),
        well("for n in 0..1000 { a.shift(); } for n in 0..1000 { a.remove(0); }"),
        well("let m = #{ a: a }; let text = m.to_json();"),
        well(
            "a.truncate(2000); let b = a.map(|x| x + 1); let sum = b.reduce(|sum, x| sum + x, 0);",
        ),
    ]);
}

/// A comparator that fails is a failure, and one that makes no sense is not the end of the worker.
#[test]
fn comparators() {
    let shuffled = "let a = []; for n in 0..200 { a.push((n * 7919) % 200); }\n";
    let with = |body: &str, ends: Ends| attack(format!("{shuffled}{body}"), ends);
    let mut attacks = Vec::new();
    for name in ["sort", "sort_by", "order", "order_by"] {
        attacks.extend([
            with(
                &format!("a.{name}(|x, y| {{ «throw \"no\"»; }});"),
                Ends::Wrong("no"),
            ),
            with(
                &format!("«a.{name}(|x, y| \"text\")»;"),
                Ends::Wrong("whole number"),
            ),
            with(
                &format!("«a.{name}(|x, y| x > y)»;"),
                Ends::Wrong("whole number"),
            ),
            with(
                &format!("a.{name}(|x, y| x - y); a.{name}(|x, y| 0);"),
                Ends::Well,
            ),
            with(
                &format!("a.{name}(|x, y| 1); a.{name}(|x, y| -1);"),
                Ends::Well,
            ),
            with(
                &format!("try {{ a.{name}(|x, y| (x * 31 + y * 17) % 3 - 1); }} catch {{}}"),
                Ends::Well,
            ),
        ]);
    }
    attacks.push(with(
        "«a.dedup(|x, y| { throw \"no\"; })»;",
        Ends::Wrong("no"),
    ));
    attacks.push(with("«a.dedup(|x, y| 1)»;", Ends::Wrong("true or false")));
    attacks.push(with("«a.filter(|x| 1)»;", Ends::Wrong("true or false")));
    try_all(attacks);
}
