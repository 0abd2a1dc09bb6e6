//! Hooks that run without a request: `every(interval, fn)`.

use std::time::Duration;

use crate::support::launch::serving;
use crate::support::upstream::{Action, Upstream, ok};
use crate::support::wait::{Gate, SOON, until};

#[test]
fn what_one_fetches_the_hooks_of_requests_find() {
    let config = Upstream::start(|seen| ok(format!("value {}", seen.target())));
    let routes = |path: &str| {
        format!(
            r#"
            const KEPT = cache("1h", 10);
            every("1h", || {{
                let r = fetch("config", #{{ path: "{path}" }});
                if r.status == 200 {{ KEPT.set("v", r.body().text()); }}
                metric("refreshed").inc();
            }});
            route("/").respond(|req| {{
                let value = KEPT.get("v");
                respond(200, if value == () {{ "none" }} else {{ value }})
            }});
            "#
        )
    };
    let proxy = serving(&routes("/one"))
        .settings("[server]\nthreads = 2")
        .pool("config", config.address())
        .start();
    until("the first run", SOON, || proxy.text("/") == "value /one");
    assert_eq!(config.hits(), 1, "on one worker, once");
    assert_eq!(proxy.metric("background_runs_total", &[]), 1.0);
    assert_eq!(proxy.metric("background_failures_total", &[]), 0.0);
    assert_eq!(
        config.last_request().header("cdn-loop").as_deref(),
        Some("edgewright")
    );

    // The new program's runs at once, although an hour has not passed.
    std::fs::write(proxy.file("routes.rhai"), routes("/two")).unwrap();
    assert_eq!(proxy.reload().0, 200);
    until("the new one's run", SOON, || {
        proxy.text("/") == "value /two"
    });
    assert_eq!(config.hits(), 2);

    // Without one nothing runs any more, and the program serves.
    std::fs::write(
        proxy.file("routes.rhai"),
        "route(\"/\").respond(200, \"three\");",
    )
    .unwrap();
    assert_eq!(proxy.reload().0, 200);
    until("the last program", SOON, || proxy.text("/") == "three");
    assert_eq!(config.hits(), 2);
}

#[test]
fn one_runs_again_after_its_interval_also_when_it_fails() {
    let proxy = serving(
        r#"
        const RUNS = counter();
        every("1s", || {
            if RUNS.add("n", 1) == 1 { throw "not yet"; }
        });
        route("/").respond(|req| respond(200, `${RUNS.get("n")}`));
        "#,
    )
    .start();
    until("three runs", SOON, || {
        proxy.text("/").parse::<u32>().unwrap() >= 3
    });
    let failures = proxy.log.matching("script failure");
    assert_eq!(failures.len(), 1, "{failures:?}");
    for part in ["route=none", "hook=every", "at=routes.rhai:4:", "not yet"] {
        assert!(failures[0].contains(part), "{part}: {}", failures[0]);
    }
    assert_eq!(proxy.metric("background_failures_total", &[]), 1.0);
    let labels = [("hook", "every"), ("kind", "error")];
    assert_eq!(proxy.metric("script_failures_total", &labels), 1.0);
}

#[test]
fn one_that_never_ends_is_stopped_and_stalls_nobody() {
    let proxy = serving(
        r#"
        every("1h", || { loop {} });
        route("/").respond(200, "ok");
        "#,
    )
    .settings("[server]\nthreads = 1")
    .start();
    assert_eq!(proxy.text("/"), "ok");
    proxy.log.wait("script failure", SOON);
    let labels = [("hook", "every")];
    assert_eq!(proxy.metric("script_failures_total", &labels), 1.0);
    assert_eq!(proxy.text("/"), "ok");
}

#[test]
fn a_reload_cancels_what_runs_and_lets_the_old_program_go() {
    let gate = Gate::new();
    let held = gate.clone();
    let slow = Upstream::start(move |_| {
        held.pass(SOON);
        ok("late")
    });
    let proxy = serving(
        r#"
        const OLD = cache("1h", 10);
        every("1h", || {
            let r = fetch("slow", #{ timeout: "10m" });
            log("warn", "ran on");
            OLD.set("v", r.body().text());
        });
        route("/").respond(|req| respond(200, OLD.get("v") ?? "none"));
        "#,
    )
    .pool("slow", slow.address())
    .start();
    slow.wait_hits(1, SOON);
    assert_eq!(proxy.text("/"), "none");
    let settings = std::fs::read_to_string(proxy.file("edgewright.toml")).unwrap();
    assert!(settings.contains("slow"));
    std::fs::write(
        proxy.file("routes.rhai"),
        "route(\"/\").respond(200, \"new\");",
    )
    .unwrap();
    assert_eq!(proxy.reload().0, 200);
    // The state of the old program is freed with it.
    until("the old program to be gone", SOON, || {
        assert_eq!(proxy.text("/"), "new");
        let text = proxy.ask_admin("/metrics").text();
        !text.contains("edgewright_state_keys{")
    });
    gate.open();
    assert_eq!(proxy.text("/"), "new");
    assert!(proxy.log.matching("ran on").is_empty());
    assert!(proxy.log.matching("script failure").is_empty());
}

#[test]
fn the_end_of_the_process_waits_for_none() {
    let silent = Upstream::start(|_| {
        Action::Write(Box::new(|_| {
            Gate::new().pass(SOON);
            Ok(())
        }))
    });
    let mut proxy = serving(
        r#"
        every("1h", || { let r = fetch("silent", #{ timeout: "10m" }); });
        route("/").respond(200, "ok");
        "#,
    )
    .settings("[server.shutdown]\ndrain = \"10m\"")
    .pool("silent", silent.address())
    .start();
    silent.wait_hits(1, SOON);
    proxy.signal("TERM");
    let (status, _) = proxy.wait_exit(Duration::from_secs(20));
    assert!(status.success());
}
