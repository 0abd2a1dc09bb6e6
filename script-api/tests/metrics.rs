//! `metric(name, labels)`: what is found at load, and what is counted.

#![allow(clippy::unwrap_used)]

mod support;

use edgewright_script::{
    engine::Failure,
    memory::MemoryRequest,
    state::{StateStore, metric::SeriesValue},
};
use support::{errors, inputs, program_from, try_load};

fn hook(body: &str) -> String {
    format!("route(\"/\").on_request(|req| {{ {body} }}).to(\"web\");")
}

/// Runs the body of a hook, and gives what it counted: `name{values} value`.
fn counted(body: &str) -> Result<Vec<String>, Failure> {
    let mut inputs = inputs(&hook(body));
    inputs.state = StateStore::default();
    let store = inputs.state.clone();
    let mut runner = program_from(&inputs);
    runner.run(&mut MemoryRequest::new("GET", "a", "/?plan=gold"))?;
    let samples = store.metric_samples();
    let shown = samples.iter().flat_map(|sample| {
        sample.series.iter().map(|(values, value)| {
            let value = match value {
                SeriesValue::Number(number) => number.to_string(),
                SeriesValue::Histogram { count, sum, .. } => format!("{count} {sum}"),
            };
            format!("{}{values:?} {value}", sample.rule.name)
        })
    });
    Ok(shown.collect())
}

#[test]
fn each_kind_counts_what_it_counts() {
    assert_eq!(
        counted(
            r#"
            metric("a_total", #{ plan: req.query("plan"), b: true }).inc();
            metric("a_total", #{ b: true, plan: "gold" }).add(2);
            metric("a_total", #{ b: (), plan: 7 }).add(0.5);
            metric("depth").set(3);
            metric("depth").set(-1.5);
            metric("took").observe(1);
            metric("took").observe(0.25);
            "#
        )
        .unwrap(),
        [
            "a_total[\"\", \"7\"] 0.5",
            "a_total[\"true\", \"gold\"] 3",
            "depth[] -1.5",
            "took[] 2 1.25",
        ]
    );
}

#[test]
fn what_a_metric_cannot_take_is_a_failure() {
    for (body, says) in [
        ("metric(\"a\").add(-1);", "only grows"),
        ("metric(\"a\").add(0.0 / 0.0);", "can't take NaN"),
        (
            "metric(\"a\", #{ l: [1] }).inc();",
            "the label `l` of the metric `a` is text",
        ),
        (
            "metric(\"a\", #{ l: req }).inc();",
            "not a value of type `Request`",
        ),
        ("let f = Fn(\"metric\"); f.call(\"b\");", "no metric `b`"),
    ] {
        let failure = counted(body).unwrap_err();
        assert!(
            failure.message.contains(says),
            "{body}: {}",
            failure.message
        );
    }
}

#[test]
fn names_kinds_and_labels_are_checked_at_load() {
    for (body, says) in [
        (
            "metric(\"a\").inc(); metric(\"a\").set(1);",
            "is a counter in line 1 and can't be a gauge here",
        ),
        (
            "metric(\"a\", #{ x: 1 }).inc(); metric(\"a\", #{ y: 1 }).inc();",
            "has the labels x in line 1, and the labels y here",
        ),
        (
            "metric(\"a\").inc(); metric(\"a\", #{ y: 1 }).inc();",
            "has no labels in line 1",
        ),
        (
            "metric(\"a-b\").inc();",
            "`a-b` can't be the name of a metric",
        ),
        ("metric(\"A\").inc();", "`A` can't be the name of a metric"),
        ("metric(\"\").inc();", "can't be the name of a metric"),
        (
            "metric(req.path).inc();",
            "the name of a metric is a text in quotes",
        ),
        (
            "let l = #{ a: 1 }; metric(\"a\", l).inc();",
            "are written out where it is used",
        ),
        (
            "metric(\"a\", #{ le: 1 }).inc();",
            "`le` can't be the name of a label",
        ),
        (
            "metric(\"a\", #{ __x: 1 }).inc();",
            "`__x` can't be the name of a label",
        ),
        (
            "metric(\"a\", #{ \"x-y\": 1 }).inc();",
            "`x-y` can't be the name of a label",
        ),
        (
            "metric(\"a\", #{ a:1, b:1, c:1, d:1, e:1, f:1, g:1, h:1, i:1 }).inc();",
            "8 labels at the most",
        ),
        (
            "metric(\"a\").increment();",
            "a metric has no method `increment`",
        ),
        ("metric(\"a\");", "a metric is used where it is named"),
        (
            "let m = metric(\"a\"); m.inc();",
            "a metric is used where it is named",
        ),
        ("\"a\".metric(#{ }).inc();", "`metric` is a function"),
        (
            "metric(\"a\").observe(1); metric(\"a_count\").inc();",
            "the histogram `a` has `a_count`",
        ),
        ("metric(\"a\", #{}, 1).inc();", "metric"),
    ] {
        let found = errors(&hook(body));
        assert!(found.contains(says), "{body}: {found}");
        assert!(found.contains("routes.rhai:1:"), "{body}: {found}");
    }
    let many: String = (0..101)
        .map(|n| format!("metric(\"m{n}\").inc();"))
        .collect();
    assert!(errors(&hook(&many)).contains("100 metrics at the most"));
    // Bare functions too, and none at the top level.
    let found = errors(
        "fn f() { metric(\"a\").inc(); metric(\"a\").observe(1); } route(\"/\").respond(200);",
    );
    assert!(found.contains("can't be a histogram"), "{found}");
    let found = errors("metric(\"a\").inc(); route(\"/\").respond(200);");
    assert!(
        found.contains("a metric can only be used in a hook"),
        "{found}"
    );
}

#[test]
fn a_function_of_the_program_is_none_of_them() {
    let source = "fn metric(a, b, c) { a } route(\"/\").on_request(|req| { let x = metric(1, 2, 3); }).to(\"web\");";
    assert!(try_load(source).is_ok());
}
