//! Texts that grow, and work on texts as long as they can be.

use edgewright_script::engine::ScriptLimit::{Items, Memory, Operations, String as Text};

use crate::harness::{Attack, Ends, attack, try_all};

/// As long as a text can be.
const LONG: &str = "let s = \"\"; s.pad(65536, 'a');\n";

fn too_long(body: impl Into<String>) -> Attack {
    attack(body, Ends::At(Text))
}

fn long(body: &str, ends: Ends) -> Attack {
    attack(format!("{LONG}{body}"), ends)
}

#[test]
fn texts_that_grow() {
    try_all(vec![
        too_long("let s = \"x\";\nloop { «s += s»; }"),
        too_long("let s = \"x\";\nloop { s = «s + s»; }"),
        too_long("let s = \"x\";\nloop { s = «`${s}${s}`»; }"),
        too_long("let s = \"x\";\nloop { «s.append(s)»; }"),
        attack("let s = \"x\";\n«loop { s += [s]; }»", Ends::At(Memory)),
        attack("let s = \"x\";\n«loop { s = [s] + s; }»", Ends::At(Memory)),
        attack(
            "let s = \"x\";\n«loop { s = #{ a: s } + s; }»",
            Ends::At(Memory),
        ),
        too_long("let s = \"ab\";\nloop { «s.replace(\"a\", s)»; }"),
        too_long("let s = \"ab\";\nloop { «s.replace('a', s)»; }"),
        too_long("let s = \"ab\";\nloop { «s.replace(\"\", s)»; }"),
        too_long("let s = \"ab\";\nloop { s = «X.replace_all(\"xxx\", s + s)»; }"),
        too_long("let b = \"abc\".to_blob(); let s = \"\"; s.pad(60000, 'x');\nloop { «s += b»; }"),
        too_long("let a = [\"x\"];\nloop { «a[0] += a[0]»; }"),
        too_long("let m = #{ s: \"x\" };\nloop { «m.s += m.s»; }"),
        too_long("let s = \"x\";\n«[1].map(|i| { let t = s; loop { t += t; } })»;"),
        too_long("«double(\"x\")»;").with("fn double(s) { loop { s += s; } }"),
        too_long("let s = \"x\";\n«try { loop { s += s; } } catch { loop { s += s; } }»"),
    ]);
}

#[test]
fn one_call_that_would_make_gigabytes() {
    try_all(vec![
        long(
            "let t = s.sub_string(0);\n«s.replace(\"a\", t)»;",
            Ends::At(Text),
        ),
        long("let t = «EVIL.replace_all(s, s + \"$0\")»;", Ends::At(Text)),
        long(
            "let dollars = \"\"; dollars.pad(30000, \"$1\");\nlet t = «GROUPS.replace_all(s, dollars)»;",
            Ends::At(Text),
        ),
        long("let t = «GROUPS.captures(s)»;", Ends::At(Text)),
        long("let parts = «s.split(\"\")»;", Ends::At(Items)),
        long("let parts = «s.split('a')»;", Ends::At(Items)),
        long("let parts = «s.split(\"a\", 60000)»;", Ends::At(Items)),
        long("let parts = «s.split_rev(\"a\")»;", Ends::At(Items)),
        long("let parts = «s.to_chars()»;", Ends::At(Items)),
        long("let bytes = «s.to_blob()»;", Ends::At(Items)),
        attack(
            "let s = \"\"; s.pad(16384, '\u{10ffff}');\nlet t = «s.to_debug()»;",
            Ends::At(Text),
        ),
        attack(
            "let s = \"\"; s.pad(32768, '\u{390}');\n«s.make_upper()»;",
            Ends::At(Text),
        ),
        attack(
            "let s = \"\"; s.pad(32768, '\u{390}');\nlet t = «s.to_upper()»;",
            Ends::At(Text),
        ),
        attack("let s = \"x\";\n«s.pad(65537, 'x')»;", Ends::At(Text)),
        attack("let s = \"x\";\n«s.pad(1000000000, 'x')»;", Ends::At(Text)),
        attack(
            "let s = \"x\";\n«s.pad(9223372036854775807, \"xy\")»;",
            Ends::At(Text),
        ),
        attack(
            "let s = \"x\";\n«s.pad(16385, '\u{10ffff}')»;",
            Ends::At(Text),
        ),
        attack(
            "let s = \"x\"; s.pad(-9223372036854775807 - 1, 'x');",
            Ends::Well,
        ),
        attack(
            "let s = \"x\"; s.crop(-9223372036854775807 - 1, 9223372036854775807);",
            Ends::Well,
        ),
        attack(
            "let s = \"x\"; s.truncate(9223372036854775807); s.set(9223372036854775807, 'y');",
            Ends::Well,
        ),
        attack(
            "let s = \"x\"; let t = s.sub_string(-9223372036854775807 - 1, 9223372036854775807);",
            Ends::Well,
        ),
        attack(
            "let s = \"x\"; let t = s.split(-9223372036854775807 - 1); s.pop(9223372036854775807);",
            Ends::Well,
        ),
        attack(
            "let s = \"x\" «* 1000000»;",
            Ends::Wrong("`*` can't be called"),
        ),
    ]);
}

/// Rhai's own function never comes back.
#[test]
fn a_text_padded_with_nothing() {
    try_all(vec![
        attack(
            "let s = \"x\"; let nothing = req.query_string;\n«s.pad(10, nothing)»;",
            Ends::Wrong("pad with"),
        ),
        attack("let s = \"x\"; s.pad(1, \"\");", Ends::Well),
    ]);
}

/// A search takes time linear in the text, whatever the pattern; and many searches are counted.
#[test]
fn searches_in_long_texts() {
    let evil = "s.crop(1); s += \"b\";\n";
    try_all(vec![
        long(
            "return respond(200, if EVIL.is_match(s) { \"yes\" } else { \"no\" });",
            Ends::Saying("yes"),
        ),
        long(
            &format!(
                "{evil}return respond(200, if EVIL.is_match(s) {{ \"yes\" }} else {{ \"no\" }});"
            ),
            Ends::Saying("no"),
        ),
        long(
            &format!("{evil}return respond(200, `${{EVIL.captures(s)}}`);"),
            Ends::Saying(""),
        ),
        long("let t = «QUADRATIC.replace_all(s, \"\")»;", Ends::InTime),
        long(
            "for i in 0..100 { let n = s.index_of(\"ab\"); }",
            Ends::Well,
        ),
        long(
            "for i in 0..100 { let n = s.index_of('b', -65535); }",
            Ends::Well,
        ),
        long(
            "for i in 0..100 { let n = \"b\" in s; let m = s.contains(\"aaab\"); }",
            Ends::Well,
        ),
        long(
            "for c in s.chars() { if c == 'b' { return respond(403); } break; }",
            Ends::Well,
        ),
        long("«for c in s {}\nfor c in s {}»", Ends::At(Operations)),
        long("«loop { let n = s.index_of(\"ab\"); }»", Ends::InTime),
        long("«loop { s.crop(0, 65536); }»", Ends::InTime),
        long("«loop { let t = s.to_upper(); }»", Ends::InTime),
        long("«loop { let t = s.sub_string(1); }»", Ends::InTime),
        long("«loop { s[65535] = 'b'; }»", Ends::InTime),
        long("«loop { let n = num(s); }»", Ends::InTime),
    ]);
}

#[test]
fn many_texts_that_are_long() {
    let mut variables = LONG.to_owned();
    variables.push('«');
    for number in 0..1000 {
        variables += &format!("let v{number} = s.sub_string({number});\n");
    }
    variables.push('»');
    try_all(vec![
        attack(variables, Ends::At(Memory)),
        long(
            "let m = #{};\nlet i = 0;\n«loop { m[`k${i}`] = s.sub_string(i); i += 1; }»",
            Ends::At(Memory),
        ),
        long(
            "let all = ();\n«for i in 0..1000 { let kept = all; let t = s.sub_string(i); all = || { kept == t }; }»",
            Ends::At(Memory),
        ),
        long(
            "let r = respond(200);\n«loop { r.header(\"x-a\", s); }»",
            Ends::At(Memory),
        ),
        long("«loop { req.add_header(\"x-a\", s); }»", Ends::At(Memory)),
        long(
            "let a = [];\n«loop { a.push(respond(200, s)); }»",
            Ends::At(Memory),
        ),
        // Each alone is let go.
        long("for i in 0..1000 { let t = s.sub_string(i); }", Ends::Well),
        long(
            "let a = [];\nfor i in 0..10 { «a.push(s)»; }",
            Ends::At(Text),
        ),
    ]);
}

/// The message is what a person reads in one line of the log.
#[test]
fn messages_are_short() {
    let failed = |body: &str| {
        let body = format!("{LONG}{body}");
        let source = format!("route(\"/a\").on_request(|req| {{\n{body}\n}}).to(\"web\");");
        let failure = crate::harness::on_a_worker(move || {
            let mut edge = crate::harness::runner(&source, crate::harness::unhurried());
            let mut request = edgewright_script::memory::MemoryRequest::new("GET", "h", "/a");
            edge.run(&mut request).unwrap_err()
        });
        failure.message
    };
    for body in [
        "throw s;",
        "throw #{ message: s };",
        "throw [s, s];",
        "throw #{ a: [[s]] };",
        "let a = [s]; for i in 0..500 { a = [a]; } throw a;",
        "let f = || s; for i in 0..500 { let g = f; f = || g; } throw [f];",
        "let f = (); let g = || f; f = g; throw [f];",
        "req.path = s;",
        "req.set_header(s + \"\\n\", \"x\");",
    ] {
        let message = failed(body);
        assert!(message.len() < 2000, "{} bytes: {body}", message.len());
    }
}
