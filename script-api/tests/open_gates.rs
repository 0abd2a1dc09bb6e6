//! Ways in which a gate could be left open without anyone noticing. Each is a failure, or works.

#![allow(clippy::unwrap_used)]

mod support;

use edgewright_script::memory::MemoryRequest;
use support::{End, errors, program, try_load};

/// The request fails: it reaches no upstream.
#[track_caller]
fn closed(source: &str) -> String {
    let mut request = MemoryRequest::new("GET", "h", "/a").with_header("u", "eve");
    let ended = program(source).run(&mut request);
    let failure = ended.expect_err("the gate must be closed");
    failure.to_string()
}

/// The program answers with this status.
#[track_caller]
fn answers(source: &str, status: u16) {
    let mut request = MemoryRequest::new("GET", "h", "/a").with_header("u", "eve");
    let ended = program(source).run(&mut request).unwrap();
    assert!(
        matches!(ended, End::Answer(found, _) if found == status),
        "{ended:?}"
    );
}

/// The program does not load, and says why.
#[track_caller]
fn refused(source: &str, reason: &str) {
    let found = errors(source);
    assert!(found.contains(reason), "expected `{reason}` in:\n{found}");
}

#[test]
fn a_constant_is_not_a_parameter_of_the_same_name() {
    answers(
        r#"const user = "admin";
        fn ok(user) { user == "admin" }
        route("/{*r}").on_request(|req| { if !ok(req.header("u")) { return respond(403); } }).to("web");"#,
        403,
    );
    answers(
        r#"const u = "admin";
        route("/{*r}").on_request(|req| {
            if !["eve"].all(|u| u == "admin") { return respond(403); }
        }).to("web");"#,
        403,
    );
    answers(
        r#"const e = 1;
        route("/{*r}").on_request(|req| {
            for e in [7] { if e == 7 { return respond(403); } }
        }).to("web");"#,
        403,
    );
}

#[test]
fn functions_in_constants_can_be_called() {
    answers(
        r#"const RULES = #{ "/a": |req| respond(403) };
        route("/{*r}").on_request(|req| {
            let rule = RULES[req.path];
            if rule != () { return rule.call(req); }
        }).to("web");"#,
        403,
    );
    answers(
        r#"const G = |req| respond(403);
        route("/{*r}").on_request(|req| { return G.call(req); }).to("web");"#,
        403,
    );
    answers(
        r#"let rules = [|req| respond(403)];
        route("/{*r}").on_request(|req| { rules[0].call(req) }).to("web");"#,
        403,
    );
    refused(
        r#"const T = table(#{ a: |req| respond(403) });"#,
        "a table holds plain data",
    );
}

#[test]
fn answers_made_at_load_and_lost_are_seen() {
    for gate in [
        "let r = DENY; let n = 1;",
        "let r = (); r = DENY; let n = 1;",
        "let all = [DENY]; let n = 1;",
        "let r = deny(); let n = 1;",
        "let r = T.get(\"d\"); let n = 1;",
    ] {
        let found = closed(&format!(
            r#"const DENY = respond(403);
            const T = table(#{{ d: respond(403) }});
            fn deny() {{ return DENY; }}
            route("/{{*r}}").on_request(|req| {{ {gate} }}).to("web");"#
        ));
        assert!(found.contains("made and not returned"), "{gate}: {found}");
    }
    let captured = closed(
        r#"let deny = respond(403);
        route("/{*r}").on_request(|req| { let r = deny; let n = 1; }).to("web");"#,
    );
    assert!(captured.contains("made and not returned"), "{captured}");
}

#[test]
fn answers_lost_in_to_and_when_are_seen() {
    closed(r#"route("/{*r}").to(|req| { let r = respond(403); "web" });"#);
    // In so many words it is refused at load.
    closed(
        r#"const MAKE = || respond(403);
        route("/{*r}").when(|req| { let r = MAKE.call(); true }).to("web");"#,
    );
}

#[test]
fn a_when_changes_nothing() {
    let found = closed(
        r#"const SET = |r| r.set_header("x", "1");
        route("/{*r}").when(|req| { SET.call(req); true }).to("web");"#,
    );
    assert!(found.contains("can only be changed in"), "{found}");
}

#[test]
fn failures_in_callbacks_are_failures() {
    for (body, message) in [
        ("a.sort(|x, y| { throw \"boom\" });", "boom"),
        ("a.sort(|x, y| { loop {} });", "operations"),
        ("a.sort(|x, y| { \"text\" });", "whole number"),
        ("a.dedup(|x, y| { throw \"boom\" });", "boom"),
        ("a.dedup(|x, y| { loop {} });", "operations"),
        ("let b = a.filter(|x| \"yes\");", "true or false"),
        ("let b = a.some(|x| req.header(\"u\"));", "true or false"),
        ("let b = a.all(|x| ());", "true or false"),
        ("let b = a.find(|x| 1);", "true or false"),
        (
            "try { a.map(|x| { loop {} }) } catch {} let n = 1;",
            "operations",
        ),
    ] {
        let found = closed(&format!(
            r#"route("/{{*r}}").on_request(|req| {{ let a = [3, 1, 2, 2]; {body} }}).to("web");"#
        ));
        assert!(found.contains(message), "{body}: {found}");
    }
}

#[test]
fn callbacks_that_work_do() {
    let mut edge = program(
        r#"route("/a").respond(|req| {
            let a = [3, 1, 2, 2];
            a.sort(|x, y| x - y);
            let b = [1, 1, 2]; b.dedup(|x, y| x == y);
            let all = [a, b, a.filter(|x| x > 1), a.some(|x| x == 3), a.all(|x, i| i < 4), a.find(|x| x > 2)];
            respond(200, all.to_string())
        });"#,
    );
    let expected = "[[1, 2, 2, 3], [1, 2], [2, 2, 3], true, true, 3]";
    assert_eq!(edge.get("/a"), End::Answer(200, expected.to_owned()));
}

#[test]
fn text_is_not_compared_with_a_number() {
    for gate in ["level < 5", "5 > level", "level >= 1.5", "2.5 <= level"] {
        let found = closed(&format!(
            r#"fn low(level) {{ {gate} }}
            route("/{{*r}}").on_request(|req| {{ if low(req.header("u")) {{ return respond(403); }} }}).to("web");"#
        ));
        assert!(found.contains("use num(..)"), "{gate}: {found}");
    }
    answers(
        r#"fn low(level) { level < 5 && level < 5.5 && "a" < "b" && 1 <= 1 }
        route("/{*r}").on_request(|req| { if low(num("4")) { return respond(403); } }).to("web");"#,
        403,
    );
}

#[test]
fn a_function_is_no_verdict() {
    let found = closed(
        r#"fn gate(req) { respond(403) }
        route("/{*r}").on_request(|req| { let g = gate; g }).to("web");"#,
    );
    assert!(found.contains("a function is no verdict"), "{found}");
}

#[test]
fn functions_are_not_called_by_a_text() {
    let failed = closed(
        r#"fn is_eve(u) { "not a bool" }
        route("/{*r}").on_request(|req| {
            let name = "is_" + "eve";
            if ["eve"].some(name) { return respond(403); }
        }).to("web");"#,
    );
    assert!(
        failed.contains("`some` takes a function, not the text \"is_eve\""),
        "{failed}"
    );
    answers(
        r#"fn eve() { false }
        route("/{*r}").on_request(|req| {
            if ["bob", "eve"].index_of(req.header("u")) == 1 { return respond(403); }
        }).to("web");"#,
        403,
    );
    answers(
        r#"const NAMES = ["eve", 1, "bob", "eve"];
        const FOUND = [NAMES.index_of("eve", 1), NAMES.index_of("eve", -4), NAMES.index_of("eve", 9), NAMES.index_of("no")];
        route("/{*r}").respond(if FOUND == [3, 0, -1, -1] { 200 } else { 500 });"#,
        200,
    );
}

#[test]
fn curry_is_closed() {
    refused(
        "let f = |a, b| a; let g = f.curry(1);",
        "`curry` isn't available",
    );
    assert!(
        try_load(r#"let x = 1; route("/a").respond(|req| respond(200, x.to_string()));"#).is_ok()
    );
}

#[test]
fn a_capture_is_no_part_of_a_host() {
    for target in ["https://a.com{x}", "https://{x}/y", "https://{x}"] {
        refused(
            &format!(r#"route("/g/{{*x}}").redirect(302, "{target}");"#),
            "a capture can't be part of a host",
        );
    }
    assert!(try_load(r#"route("/g/{*x}").redirect(302, "https://a.com/{x}");"#).is_ok());
}

#[test]
fn long_programs_load() {
    let mut source = String::new();
    for number in 0..600 {
        source.push_str(&format!("const K{number} = {number};\n"));
    }
    source.push_str("fn deep(n) { ");
    for number in 0..60 {
        source.push_str(&format!("if n == {number} {{ {number} }} else "));
    }
    source.push_str("{ 0 } }\n");
    for number in 0..20_000 {
        source.push_str(&format!("route(\"/r{number}\").respond(200, \"x\");\n"));
    }
    assert_eq!(try_load(&source).unwrap().program.routes.len(), 20_000);
}
