//! What a program can't call at all.

use crate::{
    harness::{Ends, attack, try_all},
    support::errors,
};

#[test]
fn what_does_not_load() {
    for (body, message) in [
        ("sleep(60);", "sleep"),
        ("eval(\"1\");", "eval"),
        ("let f = Fn(\"eval\");", "eval"),
        ("import \"other\" as other;", "import"),
        ("import \"../secret\" as secret; secret::x();", "import"),
        ("exit();", "exit"),
        ("let t = timestamp();", "timestamp"),
        ("const M = #{ a: 1 }; M.a = 2;", "constant"),
        ("MAP.a = 2;", "constant"),
        ("MAP[\"b\"] = 2;", "constant"),
        ("LIST[0] = 2;", "constant"),
        ("let f = |x| x; let g = f.curry(1);", "curry"),
        ("let f = |x| x; let g = curry(f, 1);", "curry"),
        ("let n = 0; let f = || { n += 1; };", ""),
        ("let b = blob(1000000000);", "blob"),
        // Never freed, in each call.
        ("let f = (); f = || f;", "never be freed"),
        (
            "let f = (); f = |n| if n == 0 { 0 } else { f.call(n - 1) };",
            "never be freed",
        ),
        (
            "let o = #{ list: [] }; o.size = || o.list.len();",
            "never be freed",
        ),
        ("let f = Fn(\"count$\");", "count$"),
    ] {
        let found = errors(&format!(
            "const LIST = [1]; const MAP = #{{ a: 1 }};\nroute(\"/a\").on_request(|req| {{\n{body}\n}}).to(\"web\");"
        ));
        assert!(
            found.contains("routes.rhai:") && found.contains(message),
            "{body}: {found}"
        );
    }
}

/// Names that a program puts together while it runs.
#[test]
fn what_can_not_be_called() {
    let wrong = |body: &str, message| attack(body, Ends::Wrong(message));
    try_all(vec![
        wrong(
            "let name = \"ev\" + \"al\";\nlet f = «Fn(name)»; f.call(\"1\");",
            "",
        ),
        wrong(
            "let name = \"sle\" + \"ep\"; let f = Fn(name);\n«f.call(60)»;",
            "can't be called",
        ),
        wrong(
            "let name = \"ex\" + \"it\"; let f = Fn(name);\n«f.call()»;",
            "",
        ),
        wrong(
            "let name = \"count\" + \"$\";\nlet f = «Fn(name)»; f.call();",
            "",
        ),
        wrong(
            "let name = \"ro\" + \"ute\"; let f = Fn(name);\n«f.call(\"/x\")»;",
            "",
        ),
        wrong("«print(\"x\")»;", "no standard output"),
        wrong("«print(1)»;", "no standard output"),
        wrong("«print([1])»;", "no standard output"),
        wrong("«print()»;", "no standard output"),
        wrong("«debug(\"x\")»;", "no standard output"),
        wrong("«debug(#{ a: 1 })»;", "no standard output"),
        attack(
            "let t = type_of(req); let d = is_def_var(\"x\"); let e = is_def_fn(\"y\", 1);",
            Ends::Well,
        ),
        attack(
            "let list = LIST; list.push(1); let map = MAP; map.b = 1;",
            Ends::Well,
        ),
        attack(
            "let x = LIST.filter(|x| x > 1); let y = LIST.to_string() + LIST.len();",
            Ends::Well,
        ),
    ]);
}
