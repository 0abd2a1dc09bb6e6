//! What a running proxy tells about itself: log lines, `/status`, `/metrics`, readiness.

use crate::support::client::{Connection, get, request};
use crate::support::command::edgewright;
use crate::support::launch::serving;
use crate::support::metrics;
use crate::support::ports;
use crate::support::upstream::{Upstream, ok};
use crate::support::wait::{Gate, SOON, until};

#[test]
fn the_start_is_told_in_the_log() {
    let web = Upstream::fixed("ok");
    let proxy = serving(r#"route("/{*rest}").to("web");"#)
        .pool("web", web.address())
        .settings("[server]\nthreads = 2")
        .start();
    let log = &proxy.log;
    log.wait(&format!("listening on {}", proxy.address()), SOON);
    log.wait(&format!("admin on {}", proxy.admin()), SOON);
    assert!(log.wait("cpu: affinity=", SOON).contains("threads=2"));
    log.wait("open files: limit", SOON);
    let loaded = log.wait("loaded revision=", SOON);
    assert!(
        loaded.contains("routes=1") && loaded.contains("pools=1"),
        "{loaded}"
    );
    let revision = proxy.status()["revision"].as_str().unwrap().to_owned();
    assert!(loaded.contains(&format!("revision={revision}")), "{loaded}");
}

#[test]
fn requests_are_counted_by_route_and_status() {
    let gate = Gate::new();
    let held = gate.clone();
    let web = Upstream::start(move |seen| {
        if seen.target().starts_with("/held") {
            held.pass(SOON);
        }
        ok("ok")
    });
    let proxy = serving(
        r#"
        route("/api/{version}/{*rest}").to("web");
        route("/held").to("web");
        site("admin.example.com").route("/{*rest}").respond(200, "admin");
        "#,
    )
    .pool("web", web.address())
    .start();
    for number in 0..5 {
        assert_eq!(proxy.get(&format!("/api/v1/{number}")).status, 200);
    }
    assert_eq!(proxy.get("/none").status, 404);
    assert_eq!(proxy.send(&get("/x").host("admin.example.com")).status, 200);
    // A request is counted when its last byte is out, which the client may see first.
    for (route, status, count) in [
        ("/api/{version}/{*rest}", "200", 5.0),
        ("none", "404", 1.0),
        ("admin.example.com/{*rest}", "200", 1.0),
    ] {
        until(route, SOON, || {
            let labels = [("route", route), ("status", status)];
            let counted = proxy.metric("requests_total", &labels);
            let timed = proxy.metric("request_duration_seconds_count", &[("route", route)]);
            counted == count && timed == count
        });
    }

    let address = proxy.address();
    let slow = std::thread::spawn(move || get("/held").send(address));
    web.wait_hits(6, SOON);
    until("one request in flight", SOON, || {
        proxy.metric("requests_in_flight", &[]) == 1.0
    });
    let status = proxy.status();
    assert!(
        status["pools"]
            .to_string()
            .contains(&web.address().to_string()),
        "{status}"
    );
    gate.open();
    assert_eq!(slow.join().unwrap().status, 200);
    until("no request in flight", SOON, || {
        proxy.metric("requests_in_flight", &[]) == 0.0
    });
}

#[test]
fn metrics_have_the_names_that_are_documented() {
    let web = Upstream::fixed("ok");
    let proxy = serving(r#"route("/{*rest}").to("web");"#)
        .pool("web", web.address())
        .start();
    assert_eq!(proxy.get("/").status, 200);
    until("the request to be counted", SOON, || {
        proxy.metric("requests_total", &[("status", "200")]) == 1.0
    });
    let text = proxy.ask_admin("/metrics").text();
    for name in [
        "requests_total",
        "request_duration_seconds_bucket",
        "requests_in_flight",
        "upstream_connections_total",
        "config_last_reload_successful",
        "config_last_reload_success_timestamp_seconds",
        "config_info",
        "threads",
        "open_files_limit",
    ] {
        let name = format!("edgewright_{name}");
        assert!(metrics::present(&text, &name), "no {name} in\n{text}");
    }
    assert!(text.contains("process_resident_memory_bytes"), "{text}");
    assert_eq!(proxy.ask_health("/metrics").status, 200);
    let revision = proxy.status()["revision"].as_str().unwrap().to_owned();
    assert_eq!(proxy.metric("config_info", &[("revision", &revision)]), 1.0);
}

#[test]
fn the_admin_and_health_listeners_serve_what_is_theirs() {
    let proxy = serving(r#"route("/{*rest}").respond(200, "traffic");"#).start();
    for (target, body) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
        for response in [proxy.ask_admin(target), proxy.ask_health(target)] {
            assert_eq!(
                (response.status, response.text().as_str()),
                (200, body),
                "{target}"
            );
        }
    }
    let status = proxy.status();
    for key in [
        "version",
        "revision",
        "loaded_at",
        "last_attempt",
        "last_error",
        "threads",
        "pools",
        "dns",
        "uptime",
    ] {
        assert!(status.get(key).is_some(), "no {key} in {status}");
    }
    // The kubelet's listener gives no way in.
    assert_eq!(proxy.ask_health("/status").status, 404);
    let reload = request("POST", "/reload")
        .host(&proxy.health().to_string())
        .body("");
    assert_eq!(reload.send(proxy.health()).status, 404);
    assert_eq!(proxy.ask_admin("/reload").status, 405);
    // And the traffic listener serves the program and nothing of these.
    assert_eq!(proxy.text("/status"), "traffic");
}

#[test]
fn log_lines_can_be_json() {
    let proxy = serving(r#"route("/").on_request(|req| { let a = []; a[0] }).respond(200, "x");"#)
        .settings("[log]\nformat = \"json\"")
        .start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    assert_eq!(connection.send(&get("/")).unwrap().status, 500);
    let line = proxy.log.wait("script failure", SOON);
    let json: serde_json::Value =
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
    assert!(json.is_object());
    for line in proxy.log.matching("{") {
        assert!(
            serde_json::from_str::<serde_json::Value>(&line).is_ok(),
            "{line}"
        );
    }
}

#[test]
fn the_health_command_asks_a_running_one() {
    let proxy = serving(r#"route("/").respond(200, "ok");"#).start();
    for address in [proxy.admin(), proxy.health()] {
        for words in [vec!["health"], vec!["health", "--ready"]] {
            let address = address.to_string();
            let words: Vec<&str> = words.into_iter().chain(["--address", &address]).collect();
            assert_eq!(edgewright(&words).code, Some(0), "{words:?}");
        }
    }
    let closed = ports::free([127, 0, 0, 1].into(), 1)[0].to_string();
    assert_eq!(edgewright(["health", "--address", &closed]).code, Some(1));
}
