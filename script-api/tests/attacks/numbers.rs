//! Numbers at their ends, and large programs.

use crate::harness::{Attack, Ends, attack, try_all};

fn wrong(body: &str, message: &'static str) -> Attack {
    attack(body, Ends::Wrong(message))
}

#[test]
fn numbers_at_their_ends() {
    let well = |body: &str| attack(body, Ends::Well);
    try_all(vec![
        wrong("let x = 9223372036854775807;\n«x += 1»;", "overflow"),
        wrong("let x = 9223372036854775807;\nx = «x * 2»;", "overflow"),
        wrong("let x = -9223372036854775807;\nx = «x - 2»;", "overflow"),
        wrong("let x = -9223372036854775807 - 1;\nx = «-x»;", "overflow"),
        wrong(
            "let x = -9223372036854775807 - 1;\nx = «abs(x)»;",
            "overflow",
        ),
        wrong(
            "let x = -9223372036854775807 - 1;\nx = «x / -1»;",
            "overflow",
        ),
        wrong("let x = -9223372036854775807 - 1;\nx = «x % -1»;", ""),
        wrong("let x = 1;\nx = «x / 0»;", "zero"),
        wrong("let x = 1;\nx = «x % 0»;", "zero"),
        wrong("let x = 2;\nx = «x ** 9223372036854775807»;", "overflow"),
        wrong("let x = 2;\nx = «x ** -1»;", ""),
        wrong("let x = «(1.0e300).to_int()»;", "overflow"),
        wrong("let x = «parse_int(\"99999999999999999999\")»;", ""),
        wrong("let x = «parse_int(\"1\", 99)»;", "radix"),
        wrong(
            "let x = «parse_int(\"1\", -9223372036854775807 - 1)»;",
            "radix",
        ),
        wrong(
            "let a = [1];\nlet x = «a[-9223372036854775807 - 1]»;",
            "outside",
        ),
        wrong(
            "let s = \"abc\";\n«s[9223372036854775807] = 'x'»;",
            "outside",
        ),
        wrong("let x = 1;\nx = «x[99]»;", ""),
        well("let x = 1; x = x << 9223372036854775807; x = x >> 9223372036854775807;"),
        well("let x = 1; x = x << -9223372036854775807; x = x >> (-9223372036854775807 - 1);"),
        well("let x = 0; x[0..9223372036854775807] = 1;"),
        well(
            "let x = 0.0 / 0.0; let a = [x, 1.0]; a.sort(); let m = a.contains(x); let n = min(x, 1.0);",
        ),
        well("let x = (0.0 / 0.0).to_int();"),
        well("let r = 0..9223372036854775807; let x = r.contains(5) && r.end > 1 && !r.is_empty;"),
        well("let x = num(\"1e999\"); let y = num(\"99999999999999999999\");"),
    ]);
}

#[test]
fn large_programs() {
    let arms: String = (0..5000).map(|n| format!("{n} => {n},\n")).collect();
    let texts: String = (0..5000).map(|n| format!("\"k{n}\" => {n},\n")).collect();
    let ranges: String = (0..1000)
        .map(|n| format!("{}..{} => {n},\n", n * 10, n * 10 + 5))
        .collect();
    let chain: String = (0..100)
        .map(|n| format!("if x == {n} {{ {n} }} else "))
        .collect();
    let sum = vec!["1"; 100].join(" + ");
    let statements = "let y = x + 1;\n".repeat(3000);
    try_all(vec![
        attack(
            format!("let x = 4999;\nlet y = switch x {{ {arms} _ => 0 }};"),
            Ends::Well,
        ),
        attack(
            format!("let x = \"k4999\";\nlet y = switch x {{ {texts} _ => 0 }};"),
            Ends::Well,
        ),
        attack(
            format!("let x = 9999;\nlet y = switch x {{ {ranges} _ => 0 }};"),
            Ends::Well,
        ),
        attack(format!("let x = 99;\nlet y = {chain} {{ 0 }};"), Ends::Well),
        attack(format!("let x = {sum};"), Ends::Well),
        attack(format!("let x = 1;\n{statements}"), Ends::Well),
    ]);
}
