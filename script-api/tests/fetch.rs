//! Calls to other services in the middle of a hook, with a network in memory.

#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use bytes::Bytes;
use edgewright_script::{
    engine::{FailureKind, Limits, ScriptLimit, Step, Subject, Verdict},
    memory::MemoryRequest,
    outbound::{CallFailure, CallFailureKind, Incoming, Outgoing, Recipient, Reply},
    program::HookId,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use support::{Runner, errors, inputs, program, program_of};

/// The first hook of the only route.
fn gate(runner: &Runner) -> HookId {
    runner.program.routes[0].on_request[0]
}

fn answer(status: u16, body: &'static str) -> Reply {
    Ok(Incoming {
        status: StatusCode::from_u16(status).unwrap(),
        headers: HeaderMap::from_iter([
            ("x-user".parse().unwrap(), HeaderValue::from_static("alice")),
            ("x-user".parse().unwrap(), HeaderValue::from_static("bob")),
        ]),
        body: Bytes::from_static(body.as_bytes()),
        ..Incoming::default()
    })
}

fn refused() -> Reply {
    Err(CallFailure {
        kind: CallFailureKind::Connect,
        message: "pool `api` can't be reached".to_owned(),
    })
}

/// A route whose gate is `fn gate(req) { .. }`.
fn with_gate(body: &str) -> String {
    format!("route(\"/\").on_request(gate).to(\"web\");\nfn gate(req) {{\n{body}\n}}")
}

/// Runs the gate; `network` answers its calls. Gives what it says and the calls that it made.
fn run(
    body: &str,
    mut network: impl FnMut(&Outgoing) -> Reply,
) -> (Result<Verdict, String>, Vec<Outgoing>) {
    let mut runner = program(&with_gate(body));
    let hook = gate(&runner);
    let mut calls = Vec::new();
    let mut request = MemoryRequest::new("GET", "example.com", "/").with_header("x-key", "k");
    let said = runner
        .interpreter
        .finish::<Verdict>(hook, &mut request, |asked| {
            calls.extend_from_slice(asked);
            asked.iter().map(&mut network).collect()
        });
    (said.map_err(|failure| failure.to_string()), calls)
}

fn status(said: &Result<Verdict, String>) -> u16 {
    match said {
        Ok(Verdict::Answer(answer)) => answer.status.as_u16(),
        other => panic!("no answer: {other:?}"),
    }
}

fn failure(body: &str) -> String {
    run(body, |_| answer(200, "")).0.unwrap_err()
}

#[test]
fn goes_on_where_it_stopped() {
    let (said, calls) = run(
        r#"let seen = [];
           for path in ["/a", "/b"] {
               let r = fetch("api", #{ path: path, headers: #{ "x-key": req.header("x-key") } });
               seen.push(`${r.status}${r.body().text()}`);
           }
           respond(200, seen.reduce(|all, one| all + one, ""))"#,
        |call| answer(201, if call.target == "/a" { "one" } else { "two" }),
    );
    let Ok(Verdict::Answer(made)) = said else {
        panic!("{said:?}")
    };
    assert_eq!(made.body, "201one201two");
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].target, "/a");
    assert_eq!(calls[0].headers[0].1, "k");
    assert_eq!(calls[0].method, Method::GET);
    assert_eq!(calls[0].timeout, Duration::from_secs(5));
}

#[test]
fn what_a_reply_has() {
    let (said, _) = run(
        r##"let r = fetch("api");
            if r.error != () || r.status != 200 { return respond(500); }
            if r.header("X-User") != "alice" || r.header("x-none") != () { return respond(501); }
            if r.headers("x-user") != ["alice", "bob"] { return respond(502); }
            let body = r.body();
            if body.len() != 13 || body.bytes().len() != 13 { return respond(503); }
            if body.json().user.name != "a" && body.text() != `{"n": [1, 2]}` { return respond(504); }
            respond(204)"##,
        |_| answer(200, r#"{"n": [1, 2]}"#),
    );
    // `user` is absent, and what is absent has no name.
    assert!(said.unwrap_err().contains("routes.rhai:9:"), "the place");
}

#[test]
fn a_failed_call_looks_like_a_gateway_that_failed() {
    for (kind, status_seen) in [
        (CallFailureKind::Unavailable, 503),
        (CallFailureKind::Connect, 502),
        (CallFailureKind::Timeout, 504),
        (CallFailureKind::TooLarge, 502),
        (CallFailureKind::Broken, 502),
    ] {
        let (said, _) = run(
            r#"let r = fetch("api");
               if r.error == () || r.header("x") != () || r.body().len() != 0 { return respond(200); }
               respond(r.status, r.error)"#,
            |_| {
                Err(CallFailure {
                    kind,
                    message: "told".to_owned(),
                })
            },
        );
        assert_eq!(status(&said), status_seen);
    }
}

#[test]
fn several_calls_at_once() {
    let (said, calls) = run(
        r#"let all = fetch_all(["api", #{ to: "web", path: "/x?y=1", method: "POST", body: "b" }]);
           if fetch_all([]).len() != 0 { return respond(500); }
           respond(all[0].status + all[1].status)"#,
        |call| {
            if call.target == "/" {
                answer(201, "")
            } else {
                refused()
            }
        },
    );
    assert!(said.unwrap_err().contains("703"), "201 + 502");
    assert_eq!(calls.len(), 2);
    assert_eq!(
        (&calls[1].method, &calls[1].body[..]),
        (&Method::POST, &b"b"[..])
    );
}

#[test]
fn urls_name_servers() {
    let call = |to: &str| {
        let body = format!("let r = fetch(\"{to}\"); respond(r.status)");
        let (said, calls) = run(&body, |_| answer(200, ""));
        said.map(|_| (calls[0].recipient.clone(), calls[0].target.clone()))
    };
    let server = |tls, host: &str, port| Recipient::Server {
        tls,
        host: host.to_owned(),
        port,
    };
    for (to, recipient, target) in [
        ("http://Example.com", server(false, "example.com", 80), "/"),
        ("https://a.b/c?d=e", server(true, "a.b", 443), "/c?d=e"),
        ("http://[::1]:81/", server(false, "::1", 81), "/"),
        (
            "http://10.0.0.1:8080?q",
            server(false, "10.0.0.1", 8080),
            "/?q",
        ),
    ] {
        assert_eq!(call(to).unwrap(), (recipient, target.to_owned()), "{to}");
    }
    for (to, reason) in [
        ("ftp://a/", "must begin with"),
        ("http://user:pw@a/", "credentials"),
        ("http://a/#x", "`#`"),
        ("http://a:99999/", "port"),
        ("http:///x", "no URL"),
        ("http://a b/", "no URL"),
    ] {
        let told = call(to).unwrap_err();
        assert!(
            told.contains(reason) && told.contains("routes.rhai:3:"),
            "{to}: {told}"
        );
    }
}

#[test]
fn bodies() {
    let sent = |body: &str| {
        let body =
            format!("let o = #{{}}; o.body = {body}; let r = fetch(\"api\", o); respond(r.status)");
        let (said, calls) = run(&body, |_| answer(200, ""));
        let kind = calls.first().and_then(|call| call.headers.first().cloned());
        said.map(|_| (calls[0].body.clone(), kind.map(|(_, value)| value)))
    };
    let (text, kind) = sent("\"ä\"").unwrap();
    assert_eq!(
        (&text[..], kind.unwrap()),
        (
            "ä".as_bytes(),
            HeaderValue::from_static("text/plain; charset=utf-8")
        )
    );
    let (json, kind) = sent("#{ a: [1, (), 2.5], b: \"x\" }").unwrap();
    assert_eq!(json, r#"{"a":[1,null,2.5],"b":"x"}"#);
    assert_eq!(kind.unwrap(), "application/json");
    let (none, kind) = sent("()").unwrap();
    assert!(none.is_empty() && kind.is_none());
    assert!(sent("1").unwrap_err().contains("not a value of type `i64`"));
    assert!(sent("[|x| x]").unwrap_err().contains("JSON"));
}

#[test]
fn options_are_checked_when_they_are_made_at_run_time() {
    for (options, reason) in [
        ("#{ path: \"x\" }", "must begin with `/`"),
        ("#{ path: \"/a b\" }", "percent-encoded"),
        ("#{ path: \"/a\\r\\nx: y\" }", "percent-encoded"),
        ("#{ path: 5 }", "is text"),
        ("#{ method: \"G ET\" }", "no method"),
        ("#{ method: \"CONNECT\" }", "no method"),
        ("#{ timeout: \"0s\" }", "from 1 ms"),
        ("#{ timeout: 5 }", "is text"),
        ("#{ headers: [] }", "are a map"),
        ("#{ headers: #{ \"a b\": \"1\" } }", "no header name"),
        ("#{ headers: #{ a: \"1\\r\\nb: 2\" } }", "header"),
        (
            "#{ headers: #{ \"Content-Length\": \"1\" } }",
            "sets the header",
        ),
        (
            "#{ headers: #{ connection: \"close\" } }",
            "sets the header",
        ),
    ] {
        let told = failure(&format!(
            "let o = {options}; let r = fetch(\"api\", o); respond(r.status)"
        ));
        assert!(told.contains(reason), "{options}: {told}");
    }
    let told = failure("let o = #{}; o.pth = \"/\"; let r = fetch(\"api\", o); respond(r.status)");
    assert!(told.contains("did you mean `path`?"), "{told}");
    let told = failure("let n = \"nowhere\"; let r = fetch(n); respond(r.status)");
    assert!(told.contains("there is no pool `nowhere`"), "{told}");
    let told =
        failure("let n = \"http://a/\"; let r = fetch(n, #{ path: \"/\" }); respond(r.status)");
    assert!(told.contains("a URL has its own path"), "{told}");
}

#[test]
fn what_can_be_seen_at_load_is_found_at_load() {
    let told = errors(&with_gate("let r = fetch(\"wbe\"); respond(r.status)"));
    assert!(
        told.contains("routes.rhai:3:15") && told.contains("did you mean `web`?"),
        "{told}"
    );
    let told = errors(&with_gate(
        "let r = fetch(\"web\", #{ pth: \"/\" }); respond(r.status)",
    ));
    assert!(
        told.contains("routes.rhai:3:25") && told.contains("did you mean `path`?"),
        "{told}"
    );
    let told = errors(&with_gate(
        "let r = fetch_all([#{ too: \"web\" }, \"apy\"]); respond(200)",
    ));
    assert!(
        told.contains("did you mean `to`?") && told.contains("did you mean `api`?"),
        "{told}"
    );
    let told = errors("let r = fetch(\"web\");");
    assert!(
        told.contains("can only stand in a hook") && told.contains("1:9"),
        "{told}"
    );
}

#[test]
fn a_hook_that_can_t_wait_is_refused_at_load() {
    for (program, place) in [
        (
            "route(\"/\").when(|req| fetch(\"api\").status == 200).to(\"web\");",
            "1:23",
        ),
        (
            "route(\"/\").respond(|req| respond(fetch(\"api\").status));",
            "1:34",
        ),
        // Also in what it calls.
        (
            "route(\"/\").when(|req| ok(req)).to(\"web\");\nfn ok(req) { asks() }\nfn asks() { fetch(\"api\").status == 200 }",
            "3:13",
        ),
    ] {
        let told = errors(program);
        assert!(
            told.contains(place) && told.contains("it may stand in `on_request`"),
            "{told}"
        );
    }
}

#[test]
fn a_hook_that_can_t_wait_fails_when_the_tree_does_not_show_it() {
    let mut runner = program(
        "const ASK = |pool| fetch(pool).status == 200;\nroute(\"/\").when(|req| ASK.call(\"api\")).to(\"web\");",
    );
    let hook = runner.program.routes[0].when[0];
    let mut request = MemoryRequest::new("GET", "example.com", "/");
    let failure = runner.interpreter.when(hook, &mut request).unwrap_err();
    assert!(failure.message.contains("can only stand in"), "{failure}");
}

#[test]
fn calls_of_a_hook_are_bounded() {
    let mut inputs = inputs(&with_gate(
        "loop { try { let r = fetch(\"api\"); } catch { } }",
    ));
    inputs.limits = Limits {
        fetches: 3,
        ..Limits::default()
    };
    let mut runner = program_of(&inputs);
    let hook = gate(&runner);
    let mut request = MemoryRequest::new("GET", "example.com", "/");
    let mut calls = 0;
    let said = runner
        .interpreter
        .finish::<Verdict>(hook, &mut request, |asked| {
            calls += asked.len();
            asked.iter().map(|_| answer(200, "")).collect()
        });
    let failure = said.unwrap_err();
    assert_eq!(
        (failure.kind, failure.limit),
        (FailureKind::Waiting, Some(ScriptLimit::Fetches))
    );
    assert_eq!(
        (calls, failure.place.line, failure.place.column),
        (3, 3, 22)
    );
}

#[test]
fn a_long_hook_lets_others_have_a_turn() {
    let mut inputs = inputs(&with_gate("let n = 0; loop { n += 1; }"));
    inputs.limits = Limits {
        operations: 1_000_000,
        time: Duration::from_secs(10),
        ..Limits::default()
    };
    let mut runner = program_of(&inputs);
    let hook = gate(&runner);
    let mut request = MemoryRequest::new("GET", "example.com", "/");
    let mut running = runner.interpreter.start::<Verdict>(hook).unwrap();
    let mut turns = 0;
    let failure = loop {
        match running.resume(Subject::Request(&mut request)) {
            Step::Turn => turns += 1,
            Step::Ended(said) => break said.unwrap_err(),
            Step::Calls(_) | Step::Load(_) | Step::Password(_) => panic!("it waits for nobody"),
        }
    };
    assert_eq!(failure.limit, Some(ScriptLimit::Operations));
    // A million operations take some 20 ms at the least, a turn about 0.03 ms.
    assert!(turns > 10, "{turns} turns");
}

#[test]
fn time_that_a_hook_is_suspended_is_not_its_own() {
    let mut inputs = inputs(&with_gate(
        "let n = 0; while n < 500 { n += 1; } let r = fetch(\"api\"); while n < 1000 { n += 1; } respond(r.status)",
    ));
    inputs.limits = Limits {
        time: Duration::from_millis(200),
        wall_time: Duration::from_millis(400),
        operations: 1_000_000,
        ..Limits::default()
    };
    let mut runner = program_of(&inputs);
    let hook = gate(&runner);
    let mut request = MemoryRequest::new("GET", "example.com", "/");
    let mut running = runner.interpreter.start::<Verdict>(hook).unwrap();
    let mut step = running.resume(Subject::Request(&mut request));
    while matches!(step, Step::Turn) {
        step = running.resume(Subject::Request(&mut request));
    }
    assert!(matches!(step, Step::Calls(_)));
    // Both clocks go on well beyond the hook's time.
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_millis(600) {
        std::hint::spin_loop();
    }
    step = running.answer(Subject::Request(&mut request), vec![answer(200, "")]);
    while matches!(step, Step::Turn) {
        step = running.resume(Subject::Request(&mut request));
    }
    assert!(matches!(step, Step::Ended(Ok(_))), "{step:?}");
}
