//! `every(interval, fn)`: hooks that run without a request.

#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use bytes::Bytes;
use edgewright_script::{
    engine::{Arriving, Failure},
    outbound::Incoming,
};
use http::{HeaderMap, StatusCode};
use support::{End, Runner, errors, program};

/// Runs the first background hook; calls are answered with "fetched".
fn run(runner: &mut Runner) -> Result<(), Failure> {
    let hook = runner.program.background[0].hook;
    let ran = runner.interpreter.background(hook, |calls| {
        let answer = || {
            Ok(Incoming {
                status: StatusCode::OK,
                headers: HeaderMap::new(),
                body: Bytes::from_static(b"fetched"),
                arriving: Arriving::default(),
            })
        };
        calls.iter().map(|_| answer()).collect()
    });
    ran.map(|_| ())
}

#[test]
fn one_leaves_something_for_the_hooks_of_requests() {
    let mut runner = program(
        r#"
        const KEPT = cache("1m", 10);
        const RUNS = counter();
        const LIMIT = rate(1, "1h");
        every("90s", refresh);
        fn refresh() {
            if LIMIT.allow("k") { RUNS.add("n", 1); }
            KEPT.set("v", fetch("web").body().text());
            metric("refreshed").inc();
            log("info", "done");
        }
        route("/").respond(|req| respond(200, KEPT.get("v") + RUNS.get("n")));
        "#,
    );
    assert_eq!(
        runner.program.background[0].interval,
        Duration::from_secs(90)
    );
    run(&mut runner).unwrap();
    run(&mut runner).unwrap();
    assert_eq!(runner.get("/"), End::Answer(200, "fetched1".to_owned()));
}

#[test]
fn a_closure_keeps_what_it_captured() {
    let mut runner = program(
        r#"
        const KEPT = cache("1m", 10);
        for name in ["a"] { every("1s", || KEPT.set("v", name)); }
        route("/").respond(|req| respond(200, KEPT.get("v")));
        "#,
    );
    run(&mut runner).unwrap();
    assert_eq!(runner.get("/"), End::Answer(200, "a".to_owned()));
}

#[test]
fn a_failure_is_one_of_every() {
    for (body, says) in [
        ("throw \"broken\";", "broken"),
        ("loop {}", "operations"),
        ("shown(());", "unknown property"),
    ] {
        let mut runner = program(&format!(
            "every(\"1s\", || {{ {body} }});
             fn shown(x) {{ x.path }}
             route(\"/\").respond(200);"
        ));
        let failure = run(&mut runner).unwrap_err();
        let shown = failure.to_string();
        assert!(
            shown.contains(says) || failure.limit.is_some(),
            "{body}: {shown}"
        );
    }
}

#[test]
fn mistakes_are_found_at_load() {
    for (source, says) in [
        ("every(\"soon\", || 1);", "`soon` is no time"),
        (
            "every(\"500ms\", || 1);",
            "between 1s and 366 days, not 500ms",
        ),
        (
            "every(\"1s\", |req| 1);",
            "takes 0 (nothing), this one takes 1",
        ),
        ("every(\"1s\", || req.path);", "req"),
        ("every(\"1s\", refresh);", "refresh"),
        (
            "every(\"1s\", || respond(200));",
            "there is nobody to answer",
        ),
        ("every(\"1s\");", "every"),
        (
            "let n = 0; every(\"1s\", || { n += 1; });",
            "can't change `n`",
        ),
    ] {
        let found = errors(&format!("{source} route(\"/\").respond(200);"));
        assert!(found.contains(says), "{source}: {found}");
    }
    let many = "for i in 0..65 { every(\"1s\", || i); }";
    let found = errors(&format!("{many} route(\"/\").respond(200);"));
    assert!(found.contains("64 background hooks at the most"), "{found}");
}

#[test]
fn it_stands_at_the_top_level() {
    let found = errors("route(\"/\").respond(|req| { every(\"1s\", || 1); respond(200) });");
    assert!(found.contains("it belongs to the top level"), "{found}");
}
