//! Reload on request: SIGHUP and `POST /reload`, in files of an ordinary folder.

use std::time::Duration;

use crate::support::client::{Connection, get};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::{Upstream, ok};
use crate::support::versions::replace;
use crate::support::wait::{Gate, SOON, until};

/// A program that says which version it is, by its own answer and around an upstream's.
fn version(name: &str) -> String {
    format!(
        r#"
        const VERSION = "{name}";
        route("/version").respond(200, VERSION);
        route("/up/{{*rest}}").on_response(|req, res| res.set_header("x-version", VERSION)).to("web");
        "#
    )
}

fn write(proxy: &Proxy, text: &str) {
    std::fs::write(proxy.file("routes.rhai"), text).unwrap();
}

fn total(proxy: &Proxy, result: &str) -> f64 {
    proxy.metric("config_reloads_total", &[("result", result)])
}

#[test]
fn post_reload_tells_what_happened() {
    let web = Upstream::fixed("ok");
    let proxy = serving(&version("one")).pool("web", web.address()).start();
    let first = proxy.status()["revision"].as_str().unwrap().to_owned();
    assert_eq!(first.len(), 12, "{first}");

    let (status, body) = proxy.reload();
    assert_eq!(
        (status, &body["result"]),
        (200, &"unchanged".into()),
        "{body}"
    );
    assert_eq!(body["revision"], first.as_str());

    write(&proxy, &version("two"));
    let (status, body) = proxy.reload();
    assert_eq!(status, 200, "{body}");
    // The watch may have been quicker; then there is nothing left to load.
    assert!(
        body["result"] == "loaded" || body["result"] == "unchanged",
        "{body}"
    );
    assert_ne!(body["revision"], first.as_str());
    assert_eq!(proxy.text("/version"), "two");
    assert_eq!(proxy.status()["revision"], body["revision"]);

    write(&proxy, "route(\"/version\").respond(200, VERSIONN);\n");
    let (status, body) = proxy.reload();
    assert_eq!((status, &body["result"]), (422, &"failed".into()), "{body}");
    let errors = body["errors"].to_string();
    assert!(errors.contains("routes.rhai:1:"), "{errors}");
    assert!(errors.contains("VERSIONN"), "{errors}");
    assert_eq!(proxy.text("/version"), "two");
    assert_eq!(proxy.metric("config_last_reload_successful", &[]), 0.0);
    assert!(total(&proxy, "failed") >= 1.0);
    assert!(total(&proxy, "loaded") >= 1.0);
    assert!(total(&proxy, "unchanged") >= 1.0);
}

#[test]
fn sighup_reloads() {
    let web = Upstream::fixed("ok");
    let mut proxy = serving(&version("one")).pool("web", web.address()).start();
    // Nothing changed: only the signal can be what is counted.
    let before = total(&proxy, "unchanged");
    proxy.signal("HUP");
    until("SIGHUP to be counted", SOON, || {
        total(&proxy, "unchanged") > before
    });
    write(&proxy, &version("two"));
    proxy.signal("HUP");
    until("the new version", SOON, || proxy.text("/version") == "two");
    assert!(proxy.running());
}

#[test]
fn a_bad_program_is_refused_and_explained_and_the_old_one_serves() {
    let web = Upstream::fixed("ok");
    let proxy = serving(&version("one")).pool("web", web.address()).start();
    let revision = proxy.status()["revision"].as_str().unwrap().to_owned();
    write(
        &proxy,
        "route(\"/version\").respond(200, \"two\");\nroute(\"/x\").to(\"wbe\");\n",
    );
    let line = proxy.log.wait("reload refused", SOON);
    assert!(
        line.contains(&format!("revision {revision} keeps serving")),
        "{line}"
    );
    assert!(line.contains("routes.rhai:2:"), "{line}");
    assert!(line.contains("wbe"), "{line}");
    assert_eq!(proxy.text("/version"), "one");
    until("the refusal in /status", SOON, || {
        let status = proxy.status();
        status["revision"] == revision.as_str()
            && status["last_error"].to_string().contains("routes.rhai:2:")
    });
    // Being refused does not make it unready: it serves.
    assert_eq!(proxy.ask_admin("/readyz").status, 200);

    write(&proxy, &version("three"));
    until("the good version", SOON, || {
        proxy.text("/version") == "three"
    });
    until("success to be told", SOON, || {
        proxy.metric("config_last_reload_successful", &[]) == 1.0
            && proxy.status()["last_error"].is_null()
    });
    let line = proxy.log.wait("reloaded revision=", SOON);
    assert!(
        line.contains("routes=") && line.contains("pools="),
        "{line}"
    );
}

#[test]
fn settings_that_are_wrong_are_refused_too() {
    let web = Upstream::fixed("ok");
    let proxy = serving(&version("one")).pool("web", web.address()).start();
    let wrong = format!("{}\n[limts]\nuri = \"1KiB\"\n", proxy.settings());
    std::fs::write(proxy.file("edgewright.toml"), wrong).unwrap();
    let (status, body) = proxy.reload();
    assert_eq!(status, 422, "{body}");
    assert!(
        body["errors"].to_string().contains("limits"),
        "no suggestion: {body}"
    );
    assert_eq!(proxy.text("/version"), "one");
}

#[test]
fn a_request_ends_in_the_generation_it_began_in() {
    let gate = Gate::new();
    let held = gate.clone();
    let web = Upstream::start(move |seen| {
        if seen.target() == "/up/slow" {
            held.pass(SOON);
        }
        ok("ok")
    });
    let proxy = serving(&version("one")).pool("web", web.address()).start();
    let address = proxy.address();
    let slow = std::thread::spawn(move || get("/up/slow").send(address));
    web.wait_hits(1, SOON);
    write(&proxy, &version("two"));
    assert_eq!(proxy.reload().0, 200);
    assert_eq!(proxy.get("/up/fast").header("x-version"), Some("two"));
    gate.open();
    let slow = slow.join().unwrap();
    assert_eq!((slow.status, slow.header("x-version")), (200, Some("one")));
}

#[test]
fn a_pool_that_did_not_change_keeps_its_connections() {
    let web = Upstream::fixed("ok");
    let proxy = serving(&version("one")).pool("web", web.address()).start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    for _ in 0..5 {
        assert_eq!(connection.send(&get("/up/x")).unwrap().status, 200);
    }
    let before = web.connections();
    for name in ["two", "three", "four"] {
        write(&proxy, &version(name));
        assert_eq!(proxy.reload().0, 200);
        for _ in 0..5 {
            let response = connection.send(&get("/up/x")).unwrap();
            assert_eq!(response.header("x-version"), Some(name));
        }
    }
    assert_eq!(web.connections(), before, "a reload opened new connections");
}

#[test]
fn a_pool_that_changed_is_used_at_once() {
    let old = Upstream::fixed("old");
    let new = Upstream::fixed("new");
    let proxy = serving(&version("one")).pool("web", old.address()).start();
    assert_eq!(proxy.text("/up/x"), "old");
    let settings = proxy
        .settings()
        .replace(&old.address().to_string(), &new.address().to_string());
    std::fs::write(proxy.file("edgewright.toml"), settings).unwrap();
    assert_eq!(proxy.reload().0, 200);
    assert_eq!(proxy.text("/up/x"), "new");
}

#[test]
fn a_listener_that_changed_waits_for_a_restart_and_that_is_told() {
    let web = Upstream::fixed("ok");
    let proxy = serving(&version("one")).pool("web", web.address()).start();
    let other = crate::support::ports::free([127, 0, 0, 1].into(), 1)[0];
    let settings = proxy
        .settings()
        .replace(&proxy.address().to_string(), &other.to_string());
    std::fs::write(proxy.file("edgewright.toml"), settings).unwrap();
    assert_eq!(proxy.reload().0, 200);
    let status = proxy.status();
    assert!(
        status["restart_required"].to_string().contains("listeners"),
        "{status}"
    );
    proxy.log.wait("takes effect at the next start", SOON);
    assert_eq!(proxy.text("/version"), "one");
}

/// Names of the threads that serve.
fn workers(proxy: &Proxy) -> usize {
    let threads = std::fs::read_dir(format!("/proc/{}/task", proxy.pid())).unwrap();
    let names = threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("comm")));
    names
        .filter(|name| name.as_ref().unwrap().starts_with("worker-"))
        .count()
}

/// A thread that a worker starts has its name for a moment.
fn has_two_workers(proxy: &Proxy) {
    until("two workers", SOON, || workers(proxy) == 2);
}

#[test]
fn what_waits_for_a_restart_is_told_once_and_all_the_rest_is_in_force() {
    let (old, new) = (Upstream::fixed("old"), Upstream::fixed("new"));
    let proxy = serving(&version("one"))
        .pool("web", old.address())
        .settings("[server]\nthreads = 2\n[limits]\nrequest_headers = 50")
        .listener("http2 = true")
        .start();
    has_two_workers(&proxy);
    let before = proxy.settings().to_owned();
    let after = before
        .replace(&old.address().to_string(), &new.address().to_string())
        .replace("threads = 2", "threads = 5")
        .replace("request_headers = 50", "request_headers = 3")
        .replace("http2 = true", "http2 = false");
    let settings = proxy.file("edgewright.toml");
    std::fs::write(&settings, &after).unwrap();
    assert_eq!(proxy.reload().0, 200);
    let status = proxy.status();
    let waiting = [
        "[server] threads",
        "[[listeners]]",
        "[limits] request_headers (for HTTP/2)",
    ];
    assert_eq!(status["restart_required"], serde_json::json!(waiting));
    assert_eq!(status["threads"], 2);
    has_two_workers(&proxy);
    assert_eq!(proxy.text("/up/x"), "new");
    // Of HTTP/1.1 the new limit holds.
    let four = get("/version")
        .header("a", "1")
        .header("b", "2")
        .header("c", "3");
    assert_eq!(proxy.send(&four).status, 431);

    // The next reload does not repeat it, and one that takes it back asks for no restart.
    replace(&proxy, &version("two"));
    assert_eq!(proxy.reload().0, 200);
    assert_eq!(proxy.log.count("takes effect at the next start"), 3);
    std::fs::write(&settings, &before).unwrap();
    assert_eq!(proxy.reload().0, 200);
    assert_eq!(proxy.status()["restart_required"], serde_json::json!([]));
    assert_eq!(proxy.log.count("takes effect at the next start"), 3);
    assert_eq!(proxy.send(&four).status, 200);
}

#[test]
fn a_reload_says_what_it_has_changed() {
    let web = Upstream::fixed("ok");
    let routes = "const KEYS = table(\"keys.json\");\nroute(\"/a\").to(\"web\");\nroute(\"/b\").to(\"web\");\n";
    let proxy = serving(routes)
        .file("keys.json", "{}")
        .pool("web", web.address())
        .start();
    let changed = "// Everything is a line further down.\nroute(\"/a\").timeout(\"5s\").to(\"web\");\n\
                   route(\"/b\").to(\"web\");\nroute(\"/c\").to(\"more\");\npool(\"more\", [\"127.0.0.1:9\"]);\n";
    replace(&proxy, changed);
    let line = proxy.log.wait("reloaded revision=", SOON);
    let expected =
        "routes=3 pools=2 changed: routes +1 -0 ~1, pools +1 -0 ~0, files -keys.json ~routes.rhai";
    assert!(line.contains(expected), "{line}");
    until("the same in /status", SOON, || {
        !proxy.status()["last_attempt"]["changes"].is_null()
    });
    let attempt = &proxy.status()["last_attempt"];
    assert_eq!(attempt["result"], "loaded");
    let changes = serde_json::json!({
        "routes": {"added": 1, "removed": 0, "changed": 1},
        "pools": {"added": 1, "removed": 0, "changed": 0},
        "files": {"added": 0, "removed": 1, "changed": 1},
        "named": ["-keys.json", "~routes.rhai"],
    });
    assert_eq!(attempt["changes"], changes);
}

#[test]
fn a_burst_of_reloads_under_load_loses_no_request() {
    let web = Upstream::fixed("ok");
    let proxy = serving(&version("v0")).pool("web", web.address()).start();
    let load = crate::support::load::Load::start(
        proxy.address(),
        "/up/x",
        16,
        crate::support::load::Until::Elapsed(Duration::from_secs(60)),
    );
    for number in 1..=20 {
        replace(&proxy, &version(&format!("v{number}")));
        assert_eq!(proxy.reload().0, 200);
        assert_eq!(proxy.text("/version"), format!("v{number}"));
    }
    load.stop();
    load.finish().assert_all_ok();
}
