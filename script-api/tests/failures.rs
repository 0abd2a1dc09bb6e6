//! A gate that fails is a closed gate: every failure has a kind and a place.

#![allow(clippy::unwrap_used)]

mod support;

use std::{sync::Arc, time::Duration};

use edgewright_script::{
    engine::{FailureKind, Interpreter, Limits},
    load::load,
    memory::{MemoryRequest, MemoryResponse},
    program::Match,
};
use support::{Runner, inputs, program, program_of};

fn failure(edge: &mut Runner, path: &str) -> (FailureKind, String) {
    let failure = edge
        .run(&mut MemoryRequest::new("GET", "h", path))
        .expect_err("the hook must fail");
    (failure.kind, failure.to_string())
}

#[test]
fn an_error_has_its_line_and_column() {
    let mut edge = program(
        r#"route("/a").on_request(gate).to("web");
fn gate(req) {
    let parts = req.header("x-none").split(",");
    helper(parts)
}
fn helper(parts) {
    let third = parts[2];
}
"#,
    );
    let (kind, text) = failure(&mut edge, "/a");
    assert_eq!(kind, FailureKind::Error);
    assert!(text.starts_with("routes.rhai:7:"), "{text}");
}

#[test]
fn what_could_be_a_lost_refusal_is_a_failure() {
    let mut edge = program(
        r#"
        route("/bool").on_request(|req| { let ok = req.header("x") == "1"; ok }).to("web");
        route("/lost").on_request(|req| { let r = respond(403); let n = 1; }).to("web");
        route("/number").on_request(|req| { 42 }).to("web");
        route("/when").when(|req| { let n = 1; n }).to("web");
        route("/to").to(|req| { req.header("x-none") });
        route("/nopool").to(|req| { "we" + "b2" });
        "#,
    );
    for (path, message) in [
        ("/bool", "a bool is no verdict"),
        ("/lost", "made and not returned"),
        ("/when", "true or false"),
        ("/to", "name of a pool"),
        ("/nopool", "there is no pool `web2`"),
    ] {
        let (kind, text) = failure(&mut edge, path);
        assert_eq!(kind, FailureKind::Error, "{path}");
        assert!(text.contains(message), "{path}: {text}");
    }
    // A left-over value that can't be a refusal is ignored.
    assert!(
        edge.run(&mut MemoryRequest::new("GET", "h", "/number"))
            .is_ok()
    );
}

#[test]
fn what_runs_away_is_stopped() {
    let mut inputs = inputs(
        r#"
        route("/loop").on_request(|req| { loop {} }).to("web");
        route("/caught").on_request(|req| { try { loop {} } catch {} }).to("web");
        route("/map").on_request(|req| {
            let a = []; a.pad(100, 0);
            a.map(|x| { let n = 0; while n < 10000 { n += 1; } n });
        }).to("web");
        route("/sort").on_request(|req| {
            let a = []; for i in 0..200 { a.push(200 - i); }
            a.sort(|x, y| { let n = 0; while n < 10000 { n += 1; } x - y });
            loop {}
        }).to("web");
        route("/deep").on_request(|req| { down(1) }).to("web");
        route("/string").on_request(|req| { let s = "x"; loop { s += s; } }).to("web");
        route("/replace").on_request(|req| {
            let s = "a"; while s.len() < 60000 { s += s; if s.len() > 32768 { break; } }
            s.replace("a", s);
        }).to("web");
        route("/array").on_request(|req| { let a = []; loop { a.push(0); } }).to("web");
        fn down(n) { down(n + 1) }
        "#,
    );
    // A slow machine must not run out of time before it runs out of what is asked about.
    inputs.limits.time = Duration::from_secs(10);
    inputs.limits.wall_time = Duration::from_secs(60);
    let mut edge = program_of(&inputs);
    for (path, kind) in [
        ("/loop", FailureKind::Operations),
        ("/caught", FailureKind::Operations),
        ("/map", FailureKind::Operations),
        ("/sort", FailureKind::Operations),
        ("/deep", FailureKind::Memory),
        ("/string", FailureKind::Memory),
        ("/replace", FailureKind::Memory),
        ("/array", FailureKind::Memory),
    ] {
        let (found, text) = failure(&mut edge, path);
        assert_eq!(found, kind, "{path}: {text}");
        assert!(text.starts_with("routes.rhai:"), "{path}: {text}");
    }
}

#[test]
fn thousands_of_calls_leave_nothing_behind() {
    let mut edge = program(
        r#"
        route("/ok").on_request(|req| { let a = 1; let b = a + 1; }).to("web");
        route("/bad").on_request(|req| { let a = 1; throw "no"; }).to("web");
        "#,
    );
    for _ in 0..60_000 {
        // Rhai's own counter must not add up over calls.
        edge.get("/ok");
    }
    for _ in 0..200 {
        let (kind, text) = failure(&mut edge, "/bad");
        assert_eq!(kind, FailureKind::Error);
        assert!(text.contains("no"), "{text}");
    }
    edge.get("/ok");
}

#[test]
fn time_is_bounded_too() {
    let mut inputs = inputs(r#"route("/t").on_request(|req| { loop {} }).to("web");"#);
    inputs.limits = Limits {
        operations: u64::MAX,
        ..Limits::default()
    };
    let program = Arc::new(load(&inputs).unwrap().program);
    let mut edge = Runner {
        interpreter: Interpreter::new(program.clone()).unwrap(),
        program,
    };
    assert_eq!(failure(&mut edge, "/t").0, FailureKind::Time);
}

#[test]
fn the_response_is_changed_in_on_response_only() {
    let mut edge = program(
        r#"
        route("/r").on_response(|req, res| {
            if res.status == 404 { res.status = 410; }
            res.set_header("x-status", res.status);
            res.add_header("set-cookie", "a=1");
            res.remove_header("server");
        }).to("web");
        // In so many words it is refused at load.
        const CHANGE = |request| request.set_header("x", "1");
        route("/w").on_response(|req, res| { CHANGE.call(req); }).to("web");
        "#,
    );
    let mut request = MemoryRequest::new("GET", "h", "/r");
    let mut response = MemoryResponse {
        status: http::StatusCode::NOT_FOUND,
        headers: http::HeaderMap::from_iter([
            (http::header::SERVER, http::HeaderValue::from_static("x")),
            (
                http::header::SET_COOKIE,
                http::HeaderValue::from_static("b=2"),
            ),
        ]),
        is_local: false,
        body: "{\"a\":[1]}".into(),
    };
    let program = edge.program.clone();
    let Match::Found(found) = program.find(&request, &[]) else {
        panic!("no route");
    };
    let hook = program.route(found.route).on_response[0];
    edge.interpreter
        .on_response(hook, &mut request, &mut response)
        .unwrap();
    assert_eq!(response.status, 410);
    assert_eq!(response.headers["x-status"], "410");
    assert_eq!(response.headers.get_all("set-cookie").iter().count(), 2);
    assert!(!response.headers.contains_key("server"));

    request.path = "/w".to_owned();
    let Match::Found(found) = program.find(&request, &[]) else {
        panic!("no route");
    };
    let hook = program.route(found.route).on_response[0];
    let failed = edge
        .interpreter
        .on_response(hook, &mut request, &mut response)
        .unwrap_err();
    assert!(
        failed.message.contains("can only be changed in"),
        "{failed}"
    );
}
