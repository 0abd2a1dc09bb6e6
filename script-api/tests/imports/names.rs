//! Names of other files, and the same names in several.

use edgewright_script::request::Request as _;

use super::*;

#[test]
fn a_gate_of_another_file() {
    let main = r#"
        import "auth" as auth;
        route("/{*rest}").on_request(auth::gate).to("web");
    "#;
    let mut program = program(main, &[("auth.rhai", AUTH)]);
    assert_eq!(program.get("/a"), End::Answer(401, "inner".to_owned()));
    let mut request = MemoryRequest::new("GET", "h", "/a").with_header("x-api-key", "k-alice");
    assert_eq!(program.run(&mut request).unwrap(), End::Pool("web".into()));
    assert_eq!(request.header("x-client"), Some(&b"alice"[..]));
}

#[test]
fn wherever_a_function_or_constant_may_be_named() {
    let files: &[(&str, &str)] = &[(
        "lib/text.rhai",
        r#"const MARK = "!";
        const OF = #{ a: #{ b: "deep" } };
        const SHOUT = |text| text + MARK;
        fn mark(text) { text + MARK }
        fn mark(text, more) { text + MARK + more }
        fn answer(req) { respond(200, mark("hook")) }
        fn nothing() { "none" }"#,
    )];
    for (body, expected) in [
        ("t::mark(`x`)", "x!"),
        ("t::mark(`x`, `y`)", "x!y"),
        ("t::nothing()", "none"),
        ("t::MARK", "!"),
        ("t::OF.a.b", "deep"),
        ("t::OF[`a`].b", "deep"),
        ("t :: mark ( `x` )", "x!"),
        ("t:: /* é */ mark // so\n (`x`)", "x!"),
        ("`<${t::mark(`y`)}|${t::MARK}>`", "<y!|!>"),
        (
            r"`\${t::x}\$${t::MARK}$${`${t::mark(`z`)}`}`",
            "${t::x}\\$!$z!",
        ),
        ("t::SHOUT.call(`x`)", "x!"),
        ("[`a`, `b`].map(t::mark).reduce(|all, x| all + x)", "a!b!"),
        ("[`a`].map(|x| t::mark(x) + t::MARK)[0]", "a!!"),
        ("{ let f = t::mark; f.call(`x`) }", "x!"),
        ("Fn(\"t::mark\").call(`x`)", "x!"),
        ("#{ mark: t::mark(`m`) }.mark", "m!"),
        ("switch t::MARK { `!` => t::nothing(), _ => `no` }", "none"),
        (
            "{ let t = `local`; let MARK = `own`; t + MARK + t::MARK }",
            "localown!",
        ),
    ] {
        let hook = format!(
            "import \"lib/text\" as t;\nroute(\"/{{*r}}\").respond(|req| respond(200, {body}));"
        );
        answers(&hook, files, expected);
        let loading =
            format!("import \"lib/text\" as t;\nroute(\"/{{*r}}\").respond(200, {body});");
        answers(&loading, files, expected);
        let function = format!(
            "import \"lib/text\" as t;\nroute(\"/{{*r}}\").respond(f);\nfn f(req) {{ respond(200, {body}) }}"
        );
        answers(&function, files, expected);
    }
    answers(
        "import \"lib/text\" as t; route(\"/{*r}\").respond(t::answer);",
        files,
        "hook!",
    );
}

#[test]
fn names_of_different_files_are_different() {
    let main = r#"
        import "a" as a;
        import "b" as b;
        const K = "main";
        fn which() { K }
        route("/{*r}").respond(|req| {
            let seen = [K, which(), a::K, a::which(), a::later(), b::K, b::which(), b::ask_a()];
            respond(200, seen.reduce(|all, x| all + " " + x))
        });
    "#;
    let a = r#"
        const K = "a";
        let which = "a let";
        fn which() { K }
        fn later() { (|| `${K}+${which()}`).call() }
    "#;
    let b = r#"
        import "a" as other;
        const K = other::K + "b";
        fn which() { K }
        fn ask_a() { other::which() + K }
    "#;
    answers(
        main,
        &[("a.rhai", a), ("b.rhai", b)],
        " main main a a a+a ab ab aab",
    );
}

#[test]
fn what_is_no_name_of_the_file_stays_what_it_is() {
    // Every name here is one of the top level too.
    let library = r#"
        const path = "const path";
        const method = |x| "const method";
        const x = "const x";
        let route = "let route";
        fn len(a, b, c) { "fn len" }
        fn header(a, b, c, d, e) { a + b + c + d + e }
        fn key(a) { "fn key " + a }
        fn twice() { this * 2 }
        fn int.thrice() { this * 3 }

        fn properties(req) { req.path + req?.method }
        fn in_map() { let m = #{ path: 1, method : 2, "x": 3 }; `${m.path}${m.method}${m.x}${m["x"]}` }
        fn natives() { `${"four".len()} ${"one, two".split(", ").len()}` }
        fn parameters(path, x) { let method = path + x; method }
        fn closures() { [1, 2].map(|x| x + 1).filter(|path| path > 2)[0] }
        fn loops() { let all = ""; for (x, path) in ["a", "b"] { all += x + path; } all + x }
        fn caught() { let x = ""; try { throw "thrown" } catch (path) { x = path } x }
        fn hidden() { let x = "inner"; { let x = "innermost"; } x + path }
        fn methods() { let n = 2; `${n.twice()} ${n.thrice()}` }
        fn by_text() { Fn("key").call("text") + is_def_fn("key", 1) + is_def_fn("i64", "thrice", 0) + is_def_fn("key", 2) }
        fn texts() { "path x key(1) ${x}" + `x \${x} ${x} x` }
        fn indexes() { let x = [1, 2]; x[x.len() - 1] }
        fn switches() { switch 1 { 1 => x, _ => path } }
        fn many() { header("a", "b", "c", "d", "e") + len(1, 2, 3) }

        route("/library").respond(|req| respond(200, path + route));
    "#;
    for (call, expected) in [
        ("properties(req)", "/aGET"),
        ("in_map()", "1233"),
        ("natives()", "4 2"),
        ("parameters(\"p\", \"q\")", "pq"),
        ("closures()", "3"),
        ("loops()", "a0b1const x"),
        ("caught()", "thrown"),
        ("hidden()", "innerconst path"),
        ("methods()", "4 6"),
        ("by_text()", "fn key texttruetruefalse"),
        ("texts()", "path x key(1) ${x}x ${x} const x x"),
        ("indexes()", "2"),
        ("switches()", "const x"),
        ("many()", "abcdefn len"),
        ("method.call(1)", "const method"),
    ] {
        let main = format!(
            "import \"library\" as lib; route(\"/{{*r}}\").respond(|req| respond(200, `${{lib::{call}}}`));"
        );
        answers(&main, &[("library.rhai", library)], expected);
        // As it is in a file by itself.
        let alone =
            format!("{library} route(\"/{{*r}}\").respond(|req| respond(200, `${{{call}}}`));");
        answers(&alone, &[], expected);
    }
    let mut program = program("import \"library\";", &[("library.rhai", library)]);
    assert_eq!(
        program.get("/library"),
        End::Answer(200, "const pathlet route".into())
    );
}

#[test]
fn closures_and_constants_of_modules_in_hooks() {
    let library = r#"
        const LIMITS = #{ gold: 10, free: 1 };
        const GATE = |req| if !allowed(req.header("tier")) { return respond(403, "by gate"); };
        fn allowed(tier) { tier in LIMITS && LIMITS[tier] > 1 }
        fn at_least(n) { |req| if (LIMITS[req.header("tier")] ?? 0) < n { respond(402, `needs ${n}`) } }
    "#;
    let main = r#"
        import "lib" as lib;
        route("/gate").on_request(lib::GATE).to("web");
        route("/made").on_request(lib::at_least(5)).to("web");
    "#;
    let mut program = program(main, &[("lib.rhai", library)]);
    let mut ask = |path: &'static str, tier: &'static str| {
        let request = MemoryRequest::new("GET", "h", path);
        program.run(&mut request.with_header("tier", tier)).unwrap()
    };
    assert_eq!(ask("/gate", "free"), End::Answer(403, "by gate".into()));
    assert_eq!(ask("/gate", "gold"), End::Pool("web".into()));
    assert_eq!(ask("/made", "free"), End::Answer(402, "needs 5".into()));
    assert_eq!(ask("/made", "gold"), End::Pool("web".into()));
}

#[test]
fn a_program_may_write_what_a_file_would_be_called() {
    let main = r#"
        import "auth" as auth;
        const auth__K = "main";
        route("/{*r}").respond(|req| respond(200, auth__K + auth::K + auth::f()));
    "#;
    answers(
        main,
        &[("auth.rhai", "const K = \"K\"; fn f() { K + \"auth__K\" }")],
        "mainKKauth__K",
    );
    let files = &[
        ("lib/a.rhai", "const K = 1; fn f() { K }"),
        ("lib-a.rhai", "const K = 2; fn f() { K }"),
        ("1.rhai", "const K = 3; fn f() { K }"),
    ];
    let main = r#"
        import "lib/a" as a;
        import "lib-a" as b;
        import "1" as c;
        route("/{*r}").respond(|req| respond(200, `${a::f()}${b::f()}${c::f()}${a::K}${b::K}${c::K}`));
    "#;
    answers(main, files, "123123");
}

#[test]
fn state_of_a_file_is_found_again_whatever_other_files_there_are() {
    let limits = "const LIMIT = rate(2, \"1m\");
        fn limited(req) { if !LIMIT.allow(\"k\") { return respond(429); } }";
    let main = r#"
        import "lib/limits" as limits;
        const LIMIT = rate(9, "1m");
        route("/{*rest}").on_request(limits::limited).respond(|req| respond(200, `${limits::LIMIT.remaining("k")} ${LIMIT.remaining("k")}`));
    "#;
    let inputs = with_files(main, &[("lib/limits.rhai", limits)]);
    let mut first = program_from(&inputs);
    assert_eq!(first.get("/a"), End::Answer(200, "1 9".to_owned()));
    let names = inputs.state.samples().into_iter().map(|sample| sample.name);
    assert_eq!(names.collect::<Vec<_>>(), ["LIMIT", "lib/limits::LIMIT"]);

    // The other file would take its stem.
    let main = format!("import \"lib-limits\" as other;{main}");
    let files = [("lib/limits.rhai", limits), ("lib-limits.rhai", limits)];
    let mut second = program_from(&Inputs {
        state: inputs.state.clone(),
        ..with_files(&main, &files)
    });
    assert_eq!(second.get("/a"), End::Answer(200, "0 9".to_owned()));
    assert_eq!(second.get("/a"), End::Answer(429, String::new()));
    assert_eq!(inputs.state.samples().len(), 3);
}
