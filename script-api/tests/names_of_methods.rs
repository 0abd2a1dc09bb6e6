//! Functions of a program that are called like a method of routes.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod support;

use edgewright_script::memory::MemoryRequest;
use support::{End, errors, program};

#[test]
fn a_gate_may_be_called_like_a_method_of_routes() {
    let mut program = program(
        r#"
        route("/a").limit(5, "1m").deny("192.0.2.1").on_request(limit).on_request(|req| deny(req)).to("web");
        fn limit(req) { if req.header("x-limit") != () { return respond(429); } }
        fn deny(req) { if req.header("x-deny") != () { return respond(403); } }
        "#,
    );
    // The route has both methods all the same.
    assert!(program.program.routes[0].gates.is_some());
    let mut with = |name: &'static str| {
        let request = MemoryRequest::new("GET", "any.example", "/a");
        program.run(&mut request.with_header(name, "1")).unwrap()
    };
    assert_eq!(with("x-limit"), End::Answer(429, String::new()));
    assert_eq!(with("x-deny"), End::Answer(403, String::new()));
    assert_eq!(with("x-other"), End::Pool("web".to_owned()));
}

#[test]
fn what_hooks_have_too_stays_reserved() {
    for (name, parameters) in [
        ("header", "a, b"),
        ("respond", "a"),
        ("rate", "a, b"),
        ("allow", "a"),
    ] {
        let source = format!("fn {name}({parameters}) {{ 1 }}\nroute(\"/\").to(\"web\");");
        let found = errors(&source);
        assert!(found.contains("is already a function"), "{name}: {found}");
    }
}
