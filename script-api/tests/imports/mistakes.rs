//! Mistakes are found at load, with their place in their own file.

use super::*;

#[test]
fn mistakes_in_imports() {
    let auth = &[("auth.rhai", AUTH)];
    for (main, expected) in [
        (
            "import \"atuh\" as auth;",
            "routes.rhai:1:8: error: there is no file `atuh.rhai` in the configuration's folder",
        ),
        (
            "let a = 1;\n  import \"../auth\" as auth;",
            "routes.rhai:2:10: error: `../auth` lies outside the configuration's folder",
        ),
        (
            "import \"/etc/edge/auth\" as auth;",
            "routes.rhai:1:8: error: `/etc/edge/auth` lies outside the configuration's folder",
        ),
        (
            "import \"lib/../auth\" as auth;",
            "routes.rhai:1:8: error: `lib/../auth` lies outside the configuration's folder",
        ),
        (
            "import \"\" as auth;",
            "routes.rhai:1:8: error: `` names no file",
        ),
        (
            "import \"au\" + \"th\" as auth;",
            "routes.rhai:1:13: error: an `import` ends here (write it as `import \"auth\" as auth;`)",
        ),
        (
            "const N = \"auth\";\nimport N as auth;",
            "routes.rhai:2:8: error: `import` takes a text in quotes (write it as `import \"auth\" as auth;`)",
        ),
        (
            "import `a${1}` as auth;",
            "routes.rhai:1:8: error: `import` takes a text in quotes (write it as `import \"auth\" as auth;`)",
        ),
        (
            "import \"auth\" as auth;\nimport \"auth\" as auth;",
            "routes.rhai:2:18: error: another import is already called `auth` (choose another name)",
        ),
        (
            "import \"auth\" as global;",
            "routes.rhai:1:18: error: `global` means the file itself (choose another name)",
        ),
        (
            "import \"routes\" as me;",
            "routes.rhai:1:8: error: the imports go in a circle: `routes.rhai` imports `routes.rhai` (put what both need into a file of its own, which both import)",
        ),
        (
            "import \"auth\" as auth;\nfn f() { import \"auth\" as inner; inner::gate(1) }",
            "routes.rhai:2:10: error: `import` can't stand in a function: files are read only while loading (move it to the top level)",
        ),
        (
            "if true { import \"auth\" as auth; }",
            "routes.rhai:1:11: error: `import` can't stand in a block: files are read before anything runs (move it to the top level)",
        ),
    ] {
        refused(main, auth, expected);
    }
}

#[test]
fn mistakes_in_names() {
    let auth = &[(
        "auth.rhai",
        "const KEYS = 1;\nlet state = 1;\nfn gate(req) { hash() }\nprivate fn hash() { 1 }\nfn mixed(a) { 1 }\nprivate fn mixed(a, b) { 2 }",
    )];
    for (line, expected) in [
        (
            "route(\"/\").on_request(auth::gat).to(\"web\");",
            "routes.rhai:2:23: error: there is no `gat` in `auth.rhai` (did you mean `auth::gate`?)",
        ),
        (
            "fn f(req) { `${auth::KEY}` }",
            "routes.rhai:2:16: error: there is no `KEY` in `auth.rhai` (did you mean `auth::KEYS`?)",
        ),
        (
            "let x = auth::nothing_like_it();",
            "routes.rhai:2:9: error: there is no `nothing_like_it` in `auth.rhai`",
        ),
        (
            "let x = auth::hash();",
            "routes.rhai:2:9: error: `hash` is private in `auth.rhai` (other files see it without the `private`)",
        ),
        (
            "let x = auth::mixed(1, 2);",
            "routes.rhai:2:9: error: `mixed` is private in `auth.rhai` (other files see it without the `private`)",
        ),
        (
            "let x = auth::state;",
            "routes.rhai:2:9: error: `state` is a `let` of `auth.rhai`, which other files don't see (make it a `const`)",
        ),
        (
            "let x = atuh::gate(1);",
            "routes.rhai:2:9: error: unknown module `atuh` (did you mean `auth`?)",
        ),
        (
            "let x = keys::K;",
            "routes.rhai:2:9: error: unknown module `keys` (import it at the top level: `import \"keys\" as keys;`)",
        ),
        (
            "let x = auth::keys::K;",
            "routes.rhai:2:9: error: what `auth` imports itself is not seen here (import that file here too, under a name of its own)",
        ),
        (
            "let x = Fn(\"auth::gat\");",
            "routes.rhai:2:12: error: there is no `gat` in `auth.rhai` (did you mean `auth::gate`?)",
        ),
        (
            "let x = Fn(\"atuh::gate\");",
            "routes.rhai:2:12: error: there is no function `atuh::gate`",
        ),
        // Found by the checks that every program goes through.
        (
            "let x = auth::gate();",
            "routes.rhai:2:9: error: `auth::gate` takes 1 argument, not 0",
        ),
        (
            "let x = auth::KEYS(1);",
            "routes.rhai:2:9: error: `auth::KEYS` is a variable, not a function (a function held by a variable is called as `auth::KEYS.call(..)`)",
        ),
        (
            "fn f(req) { auth::KEYS = 2; }",
            "routes.rhai:2:13: error: `auth::KEYS` is a constant and can't be assigned to (choose another name for the variable)",
        ),
        (
            "fn f(req) { auth::KEYS; 1 }",
            "routes.rhai:2:13: error: this value is thrown away (write `return auth::KEYS`)",
        ),
        (
            "fn f(req) { gate(req) }",
            "routes.rhai:2:13: error: unknown function `gate` (did you mean `auth::gate`?)",
        ),
        (
            "fn f(req) { KEYS + 1 }",
            "routes.rhai:2:13: error: undefined variable `KEYS` (did you mean `auth::KEYS`?)",
        ),
        (
            "fn f(req) { hash() }",
            "routes.rhai:2:13: error: unknown function `hash`",
        ),
        (
            "route(\"/\").on_request(auth::KEYS).to(\"web\");",
            "routes.rhai:2:12: error: `on_request` can't be called with (Route, a number) \
             (it is `on_request(hook: function) -> Route`)",
        ),
    ] {
        let main = format!("import \"auth\" as auth;\n{line}");
        refused(&main, auth, expected);
    }
}

#[test]
fn mistakes_inside_of_an_imported_file() {
    let main = "import \"auth\" as auth;\nlet own = 1;\nconst OWN = 2;\nfn own_tool(x) { x }";
    for (library, expected) in [
        ("let x = ;", "auth.rhai:1:9: error: unexpected `;`"),
        (
            "fn f() {\n  g(1",
            "auth.rhai:2:6: error: expected `)` to close the arguments list of this function call 'g'",
        ),
        (
            "\n\nlet match = 1;",
            "auth.rhai:3:5: error: `match` is a reserved word (choose another name)",
        ),
        (
            "const K = 1; /* no end\nfn f() { }",
            "auth.rhai:1:14: error: this comment has no end (it ends with `*/`; in a comment, `/*` begins another one)",
        ),
        (
            "const K = 1;\nK = 2;",
            "auth.rhai:2:1: error: `K` is a constant and can't be assigned to (declare it with `let` if it is to change)",
        ),
        (
            "const KEYS = 1;\nfn f() { KEYZ }",
            "auth.rhai:2:10: error: undefined variable `KEYZ` (did you mean `KEYS`?)",
        ),
        (
            "fn gate(req) { gat(req) }",
            "auth.rhai:1:16: error: unknown function `gat` (did you mean `gate`?)",
        ),
        (
            "fn gate(req) { gate(req, 1) }",
            "auth.rhai:1:16: error: `gate` takes 1 argument, not 2",
        ),
        (
            "fn gate(req) { req.gate() }",
            "auth.rhai:1:20: error: unknown method `gate` (`gate` is a function of this program: call it as `gate(req)`)",
        ),
        (
            "fn f() { LATER }\nlet x = LATER;\nconst LATER = 1;",
            "auth.rhai:2:9: error: undefined variable `LATER` (`LATER` is declared further below: a constant stands above its use)",
        ),
        (
            "let seen = 1;\nfn f() { seen + 1 }",
            "auth.rhai:2:10: error: undefined variable `seen` (`seen` is a `let` of the top level, which functions don't see: make it a `const`)",
        ),
        (
            "fn contains(a, b) { a == b }",
            "auth.rhai:1:19: error: `contains` is already a function with 2 arguments: a function of the program would replace it everywhere (choose another name)",
        ),
        (
            "export const K = 1;",
            "auth.rhai:1:1: error: `export` isn't needed: a file that imports this one sees all its functions and constants (take it away; what must not be seen is a `private fn` or a `let`)",
        ),
        (
            "route(\"/x\").on_request(gate).to(\"wbe\");\nfn gate(req) { }",
            "auth.rhai:1:34: error: there is no pool `wbe` (did you mean `web`?)",
        ),
        (
            "route(\"/x\").on_request(gate).to(\"web\");\nfn gate(req, more) { more }",
            "auth.rhai:1:13: error: a function for `on_request` takes 1 (req), this one takes 2",
        ),
        (
            "const R = route(\"/x\").to(\"web\");",
            "auth.rhai:1:1: error: the constant `R` holds a value of type `Route` (constants are visible in hooks, so they hold plain data, tables, networks, patterns, shared state and functions; use `let` for a route or a site)",
        ),
        ("\nthrow `stop`;", "auth.rhai:2:1: error: stop"),
        (
            "fn inner() { 1 + `x`.missing }\nfn outer() { inner() }\nconst K = outer();",
            "auth.rhai:1:22: error: unknown property `missing` (in `inner`, called at 2:14; in `outer`, called at 3:11)",
        ),
        (
            "const K = Fn(`gat${1}`);",
            "auth.rhai:1:11: error: in an imported file, `Fn` takes the name of a function in quotes (a function can be named without `Fn`: `let f = gate;`)",
        ),
        (
            "fn f() { Fn(\"gat\") }\nfn gate() { 1 }",
            "auth.rhai:1:13: error: there is no function `gat` (did you mean `gate`?)",
        ),
        (
            "fn check(x) { this + x }\nfn f() { let m = #{ check: |x| x }; m.check(1) }",
            "auth.rhai:2:39: error: `check` is a function of this file and the key of a map: which one is called doesn't show (give one of them another name)",
        ),
        (
            "let x = `\r`;",
            "auth.rhai:1:1: error: a carriage return without a line feed: save the file with ordinary line endings",
        ),
        // What the program's own file declares is not seen, nor suggested.
        (
            "fn f() { OWN + 1 }",
            "auth.rhai:1:10: error: undefined variable `OWN`",
        ),
        (
            "fn f() { own_tool(1) }",
            "auth.rhai:1:10: error: unknown function `own_tool`",
        ),
        (
            "fn f() { [1].map(own_tool) }",
            "auth.rhai:1:18: error: undefined variable `own_tool`",
        ),
        (
            "fn f() { 1.own_tool() }",
            "auth.rhai:1:12: error: unknown method `own_tool`",
        ),
        (
            "fn f() { Fn(\"own_tool\").call(1) }",
            "auth.rhai:1:13: error: there is no function `own_tool`",
        ),
        (
            "fn f() { own_tol(1) + OWM }",
            "auth.rhai:1:10: error: unknown function `own_tol`\nauth.rhai:1:23: error: undefined variable `OWM`",
        ),
        (
            "fn f() { auth::f() }",
            "auth.rhai:1:10: error: unknown module `auth` (import it at the top level: `import \"auth\" as auth;`)",
        ),
    ] {
        refused(main, &[("auth.rhai", library)], expected);
    }
}

#[test]
fn all_mistakes_of_all_files_at_once() {
    let main =
        "import \"a\" as a;\nimport \"b\" as b;\nimport \"gone\" as gone;\nlet x = a::y + gone::z;";
    refused(
        main,
        &[
            ("a.rhai", "let x = ;"),
            ("b.rhai", "import \"none\" as none;"),
        ],
        "a.rhai:1:9: error: unexpected `;`\n\
         b.rhai:1:8: error: there is no file `none.rhai` in the configuration's folder\n\
         routes.rhai:3:8: error: there is no file `gone.rhai` in the configuration's folder",
    );
    refused(
        "import \"a\" as a;\nlet x = one;\nlet y = a::two();",
        &[("a.rhai", "fn f() { b::three() }")],
        "a.rhai:1:10: error: unknown module `b` (import it at the top level: `import \"b\" as b;`)\n\
         routes.rhai:3:9: error: there is no `two` in `a.rhai`",
    );
    refused(
        "import \"a\" as a;\nlet x = one;",
        &[("a.rhai", "fn f() { two }\n\n\n\nfn g() { three }")],
        "a.rhai:1:10: error: undefined variable `two`\n\
         a.rhai:5:10: error: undefined variable `three`\n\
         routes.rhai:2:9: error: undefined variable `one`",
    );
}
