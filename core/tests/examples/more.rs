//! What `requests.toml` can't say of some examples: what they log and count, and who is treated alike.

use std::fs;
use std::path::Path;

use crate::support::client::get;
use crate::support::launch::serving;
use crate::support::upstream::Upstream;
use crate::support::wait::SOON;

fn text(example: &str, file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../examples")
        .join(example)
        .join(file);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn an_experiment_keeps_its_users_apart() {
    let old = Upstream::fixed("old");
    let new = Upstream::fixed("new");
    let proxy = serving(&text("ab-test", "routes.rhai"))
        .pool("old", old.address())
        .pool("new", new.address())
        .start();
    let as_user = |user: usize| {
        let request = get("/checkout/").header("x-user", &format!("user-{user}"));
        proxy.send(&request).text()
    };
    let first: Vec<String> = (0..200).map(as_user).collect();
    let newer = first.iter().filter(|got| *got == "new").count();
    assert!((25..=55).contains(&newer), "{newer} of 200");
    for (user, got) in first.iter().enumerate().take(20) {
        assert_eq!(as_user(user), *got);
    }
    let metrics = proxy.ask_admin("/metrics").text();
    let counted = format!(
        "script_assigned_total{{experiment=\"checkout-2\",variant=\"new\"}} {}",
        new.hits()
    );
    assert!(metrics.lines().any(|line| line == counted), "{metrics}");

    // A visitor without a name gets one, and with it the same again.
    let visit = proxy.get("/checkout/");
    let cookie = visit.header("set-cookie").unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    for _ in 0..5 {
        let again = proxy.send(&get("/checkout/").header("cookie", &cookie));
        assert_eq!(again.text(), visit.text());
        assert_eq!(again.header("set-cookie"), None);
    }
    assert_eq!(proxy.text("/other"), "old");
}

#[test]
fn answers_are_logged_and_counted() {
    let web = Upstream::fixed("ok");
    let proxy = serving(&text("structured-log-and-metrics", "routes.rhai"))
        .settings("[log]\nformat = \"json\"")
        .pool("web", web.address())
        .start();
    let request = get("/a?q=1&api_key=hunter2").header("x-user", "alice");
    assert_eq!(proxy.send(&request.header("x-plan", "gold")).status, 200);
    let line = proxy.log.wait("answered", SOON);
    for part in ["alice", "/a", "q=1", "api_key=***"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(!line.contains("hunter2"), "{line}");
    // The upstream gets what was sent.
    assert_eq!(web.last_request().target(), "/a?q=1&api_key=hunter2");
    assert_eq!(
        proxy
            .send(&get("/healthz").header("x-plan", "made up"))
            .status,
        200
    );
    let text = proxy.ask_admin("/metrics").text();
    for line in [
        "script_answers_total{class=\"2xx\",plan=\"gold\"} 1",
        "script_answers_total{class=\"2xx\",plan=\"other\"} 1",
        "script_answer_seconds_count{plan=\"gold\"} 1",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
}

#[test]
fn clients_of_a_sticky_canary_stay_on_their_side() {
    let web = Upstream::fixed("web");
    let canary = Upstream::fixed("canary");
    let proxy = serving(&text("sticky-canary", "routes.rhai"))
        .pool("web", web.address())
        .pool("canary", canary.address())
        .start();
    for _ in 0..10 {
        let first = proxy.get("/");
        let cookie = first.header("set-cookie").unwrap();
        let cookie = cookie.split(';').next().unwrap();
        for _ in 0..20 {
            let again = proxy.send(&get("/page").header("cookie", cookie));
            assert_eq!(again.text(), first.text());
            assert_eq!(again.header("set-cookie"), None);
        }
    }
}
