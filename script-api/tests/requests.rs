//! What programs do with requests and responses: values for later hooks, queries, cookies.

#![allow(clippy::unwrap_used)]

mod support;

use edgewright_script::{
    engine::{Failure, Verdict},
    memory::{MemoryRequest, MemoryResponse},
};
use http::{HeaderMap, HeaderValue, StatusCode};
use support::{End, Runner, errors, program};

/// Runs the body of a hook on a request.
fn hook(body: &str, request: &mut MemoryRequest) -> Result<End, Failure> {
    let source = format!("route(\"/{{*rest}}\").on_request(|req| {{ {body} }}).to(\"web\");");
    program(&source).run(request)
}

fn get(target: &str) -> MemoryRequest {
    MemoryRequest::new("GET", "any.example", target)
}

/// The query that is left of `query` after the body of a hook.
fn query_after(query: &str, body: &str) -> String {
    let mut request = get(&format!("/?{query}"));
    hook(body, &mut request).unwrap();
    request.query
}

/// The Cookie lines that are left of `lines`.
fn cookies_after(lines: &[&'static str], body: &str) -> Vec<String> {
    let mut request = get("/");
    for line in lines {
        request = request.with_header("cookie", line);
    }
    hook(body, &mut request).unwrap();
    let lines = request.headers.get_all("cookie").into_iter();
    lines
        .map(|line| line.to_str().unwrap().to_owned())
        .collect()
}

/// The answer's text.
fn text(body: &str, request: &mut MemoryRequest) -> String {
    match hook(body, request).unwrap() {
        End::Answer(200, text) => text,
        other => panic!("{other:?}"),
    }
}

fn on_response(runner: &mut Runner, lines: &[&'static str]) -> Result<Vec<String>, Failure> {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append("set-cookie", HeaderValue::from_static(line));
    }
    let mut response = MemoryResponse {
        status: StatusCode::OK,
        headers,
        is_local: false,
        body: Default::default(),
    };
    let hook = runner.program.routes[0].on_response[0];
    let verdict = runner
        .interpreter
        .on_response(hook, &mut get("/"), &mut response)?;
    let headers = match verdict {
        Verdict::Continue => response.headers,
        Verdict::Answer(answer) => answer.headers.into_iter().collect(),
    };
    let lines = headers.get_all("set-cookie").into_iter();
    Ok(lines
        .map(|line| line.to_str().unwrap().to_owned())
        .collect())
}

/// The Set-Cookie lines that an `on_response` makes of `lines`.
fn set_cookies(lines: &[&'static str], body: &str) -> Result<Vec<String>, Failure> {
    let source = format!("route(\"/\").on_response(|req, res| {{ {body} }}).to(\"web\");");
    on_response(&mut program(&source), lines)
}

#[test]
fn values_reach_later_hooks_of_the_same_request_only() {
    let mut runner = program(
        r#"
        on_request(|req| req.set("user", #{ name: "alice", groups: ["a", "b"], raw: random_bytes(2) }));
        route("/")
            .on_request(|req| { if req.query("x") != () { req.set("more", 7); } })
            .on_response(|req, res| {
                let user = req.get("user");
                res.set_header("x-user", user.name + user.groups[1] + user.raw.len());
                res.set_header("x-more", req.get("more"));
                res.set_header("x-none", req.get("none"));
                req.set("seen", true);
            })
            .to("web");
        "#,
    );
    for (target, more) in [("/?x=1", Some("7")), ("/", None)] {
        let mut request = get(target);
        runner.run(&mut request).unwrap();
        let mut response = MemoryResponse {
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            is_local: false,
            body: Default::default(),
        };
        let hook = runner.program.routes[0].on_response[0];
        runner
            .interpreter
            .on_response(hook, &mut request, &mut response)
            .unwrap();
        let header = |name| {
            response
                .headers
                .get(name)
                .map(|value| value.to_str().unwrap())
        };
        assert_eq!(header("x-user"), Some("aliceb2"));
        assert_eq!(header("x-more"), more);
        assert_eq!(header("x-none"), None);
        assert!(request.values.get("seen").is_some());
    }
}

#[test]
fn a_value_is_a_copy_and_unit_removes_it() {
    let body = r#"
        let list = [1];
        req.set("list", list);
        list.push(2);
        let kept = req.get("list");
        kept.push(3);
        let before = req.get("list").len();
        req.set("list", ());
        req.set("never", ());
        return respond(200, `${before} ${req.get("list") == ()} ${req.get(()) == ()}`);
    "#;
    assert_eq!(text(body, &mut get("/")), "1 true true");
}

#[test]
fn values_are_plain_data_and_bounded() {
    for (body, says) in [
        (
            "req.set(\"k\", req);",
            "a request can't hold a value of type `Request`",
        ),
        ("req.set(\"k\", [|x| x]);", "a request can't hold functions"),
        (
            "let a = respond(403); req.set(\"k\", a);",
            "a request can't hold functions, answers",
        ),
        (
            "for i in 0..65 { req.set(`k${i}`, i); }",
            "keeps 64 values at the most",
        ),
        (
            "let s = \"x\"; s.pad(60000, \"x\"); for i in 0..5 { req.set(`k${i}`, s); }",
            "262144 bytes at the most",
        ),
        ("req.set(req.header(\"none\"), 1);", "is text, not `()`"),
    ] {
        let failure = hook(body, &mut get("/")).unwrap_err();
        assert!(
            failure.message.contains(says),
            "{body}: {}",
            failure.message
        );
    }
}

#[test]
fn a_condition_leaves_nothing_behind() {
    let found = errors("route(\"/\").when(|req| { req.set(\"k\", 1); true }).to(\"web\");");
    assert!(
        found.contains("a `.when` only looks at the request"),
        "{found}"
    );
    let mut runner = program(
        "fn keep(o) { let r = o.of; r.set(\"k\", 1); }
         route(\"/\").when(|req| { keep(#{ of: req }); true }).to(\"web\");",
    );
    let failure = runner.run(&mut get("/")).unwrap_err();
    assert!(failure.message.contains("only looks at the request"));
}

#[test]
fn queries_change_where_they_are_told_to_and_nowhere_else() {
    const SENT: &str = "b=%2f&a=1+2&utm_source=x&%61=%7e&c&b=x=y";
    for (body, left) in [
        (
            "req.set_query(\"c\", \"é &\");",
            "b=%2f&a=1+2&utm_source=x&%61=%7e&c=%C3%A9%20%26&b=x=y",
        ),
        ("req.set_query(\"a\", 7);", "b=%2f&a=7&utm_source=x&c&b=x=y"),
        ("req.set_query(\"a\", ());", "b=%2f&utm_source=x&c&b=x=y"),
        (
            "req.add_query(\"d\", true);",
            "b=%2f&a=1+2&utm_source=x&%61=%7e&c&b=x=y&d=true",
        ),
        ("req.add_query(\"d\", ());", SENT),
        ("req.remove_query(\"none\");", SENT),
        (
            "req.sort_query();",
            "a=1+2&%61=%7e&b=%2f&b=x=y&c&utm_source=x",
        ),
        (
            "for name in req.query_names() { if name.starts_with(\"utm_\") { req.remove_query(name); } }",
            "b=%2f&a=1+2&%61=%7e&c&b=x=y",
        ),
        ("req.query_string = \"x=1&y=a b#c\";", "x=1&y=a%20b%23c"),
        ("req.query_string = \"\";", ""),
    ] {
        assert_eq!(query_after(SENT, body), left, "{body}");
    }
    let seen = text(
        "req.set_query(\"a\", \"n w\"); return respond(200, req.query(\"a\") + req.queries(\"a\").len() + req.query_names())",
        &mut get(&format!("/?{SENT}")),
    );
    assert_eq!(seen, "n w1[\"b\", \"a\", \"utm_source\", \"c\"]");
}

#[test]
fn a_query_grows_within_bounds_and_a_long_one_can_shrink() {
    let grow = "let s = \"x\"; s.pad(30000, \"x\"); for i in 0..3 { req.add_query(\"a\", s); }";
    let failure = hook(grow, &mut get("/")).unwrap_err();
    assert!(failure.limit.is_some(), "{}", failure.message);
    let long = format!("a=1&b={}", "x".repeat(65_600));
    let mut request = get(&format!("/?{long}"));
    hook("req.remove_query(\"b\");", &mut request).unwrap();
    assert_eq!(request.query, "a=1");
}

#[test]
fn the_request_cant_be_changed_once_it_was_sent() {
    for change in [
        "req.set_query(\"a\", 1)",
        "req.add_query(\"a\", 1)",
        "req.remove_query(\"a\")",
        "req.sort_query()",
        "req.query_string = \"\"",
        "req.set_cookie(\"a\", 1)",
        "req.remove_cookie(\"a\")",
    ] {
        let found = errors(&format!(
            "route(\"/\").on_response(|req, res| {{ {change}; }}).to(\"web\");"
        ));
        assert!(
            found.contains("the request was sent already"),
            "{change}: {found}"
        );
        let found = errors(&format!(
            "fn change(req) {{ {change}; }}
             route(\"/\").on_response(|r, res| change(r)).to(\"web\");"
        ));
        assert!(found.contains("comes here through `change`"), "{found}");
        // Where the checks don't see it.
        let mut runner = program(&format!(
            "fn change(o) {{ let req = o.of; {change}; }}
             route(\"/\").on_response(|r, res| change(#{{ of: r }})).to(\"web\");"
        ));
        assert!(on_response(&mut runner, &[]).is_err(), "{change}");
    }
}

#[test]
fn one_cookie_of_a_request_goes_and_another_stays() {
    let body = "req.remove_cookie(\"session\"); if req.cookie(\"session\") != () || req.cookie(\"lang\") != \"de\" { throw \"gone\"; }";
    assert_eq!(
        cookies_after(&["a=\"x y\"; session=1;lang=de ; session=2"], body),
        ["a=\"x y\";lang=de "]
    );
    assert_eq!(cookies_after(&["session=1", "lang=de"], body), ["lang=de"]);
    let lone = cookies_after(&["session=1"], "req.remove_cookie(\"session\");");
    assert!(lone.is_empty(), "{lone:?}");
}

#[test]
fn a_cookie_of_a_request_is_set_in_its_place_or_behind_the_others() {
    for (lines, left) in [
        (&["a=1; b=2; a=3"][..], &["a=9; b=2"][..]),
        (&["b=2", "a=1; c=3", "a=4"], &["b=2", "a=9; c=3"]),
        (&["b=2"], &["b=2; a=9"]),
        (&[], &["a=9"]),
    ] {
        assert_eq!(cookies_after(lines, "req.set_cookie(\"a\", 9);"), left);
    }
    let gone = cookies_after(&["a=1; b=2"], "req.set_cookie(\"a\", ());");
    assert_eq!(gone, ["b=2"]);
    let failure = hook("req.set_cookie(\"a\", \"1; b=2\");", &mut get("/")).unwrap_err();
    assert!(
        failure.message.contains("url_encode"),
        "{}",
        failure.message
    );
}

#[test]
fn responses_keep_all_their_cookies() {
    let lines = set_cookies(
        &["up=1; Path=/x"],
        r#"
        res.set_cookie("a", "1");
        res.set_cookie("__Host-b", "2", #{ secure: true, max_age: "30m", same_site: "strict" });
        res.add_header("set-cookie", "c=3");
        if res.headers("set-cookie").len() != 4 { throw "lost"; }
        "#,
    );
    assert_eq!(
        lines.unwrap(),
        [
            "up=1; Path=/x",
            "a=1; Path=/; HttpOnly; SameSite=Lax",
            "__Host-b=2; Path=/; Max-Age=1800; Secure; HttpOnly; SameSite=Strict",
            "c=3",
        ]
    );
}

#[test]
fn a_cookie_of_a_response_is_replaced_and_removed_by_its_name() {
    let body = r#"res.set_cookie("a", "2"); res.remove_cookie("b"); res.remove_cookie("none");"#;
    let lines = set_cookies(&["a=1", "ab=1; Secure", "b=1", "a=3; Path=/x"], body);
    assert_eq!(
        lines.unwrap(),
        ["ab=1; Secure", "a=2; Path=/; HttpOnly; SameSite=Lax"]
    );
}

#[test]
fn answers_carry_cookies() {
    let lines = set_cookies(
        &["up=1"],
        r#"return respond(200).cookie("a", "1").cookie("b", "", #{ max_age: 0, http_only: false, path: "/b", domain: "example.com" });"#,
    );
    assert_eq!(
        lines.unwrap(),
        [
            "a=1; Path=/; HttpOnly; SameSite=Lax",
            "b=; Path=/b; Domain=example.com; Max-Age=0; SameSite=Lax",
        ]
    );
    // At load too, and a cookie made of an answer that isn't returned is still a lost answer.
    let mut runner = program("route(\"/\").respond(respond(200).cookie(\"a\", 1));");
    assert_eq!(runner.get("/"), End::Answer(200, String::new()));
    let found = errors(
        "route(\"/\").on_request(|req| { respond(403).cookie(\"a\", 1); let x = 1; }).to(\"web\");",
    );
    assert!(found.contains("this answer is thrown away"), "{found}");
}

#[test]
fn bad_cookies_are_failures_that_say_why() {
    for (body, says) in [
        ("res.set_cookie(\"a\", \"1; Domain=x\");", "url_encode"),
        ("res.set_cookie(\"a b\", 1);", "no name of a cookie"),
        ("res.set_cookie(\"a\", ());", "max_age: 0"),
        ("res.set_cookie(\"a\", 1, #{ max_age: -1 });", "0 or more"),
        ("res.set_cookie(\"a\", 1, #{ max_age: \"soon\" });", "30m"),
        (
            "res.set_cookie(\"a\", 1, #{ httponly: true });",
            "did you mean `http_only`",
        ),
        (
            "res.set_cookie(\"a\", 1, #{ same_site: \"Laxx\" });",
            "did you mean `Lax`",
        ),
        (
            "res.set_cookie(\"a\", 1, #{ same_site: \"None\" });",
            "`secure: true`",
        ),
        (
            "res.set_cookie(\"a\", 1, #{ secure: \"yes\" });",
            "true or false",
        ),
        ("res.set_cookie(\"__Host-a\", 1);", "`secure: true`"),
        (
            "res.set_cookie(\"__Host-a\", 1, #{ secure: true, path: \"/x\" });",
            "its path is",
        ),
    ] {
        let failure = set_cookies(&[], body).unwrap_err();
        assert!(
            failure.message.contains(says),
            "{body}: {}",
            failure.message
        );
    }
}

#[test]
fn a_plain_connection_has_no_tls() {
    let body = "return respond(200, `${req.tls == ()} ${req.tls?.version == ()}`);";
    assert_eq!(text(body, &mut get("/")), "true true");
}
