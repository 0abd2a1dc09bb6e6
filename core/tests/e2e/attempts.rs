//! `.to(req, attempt)`: a function that is asked for each attempt.

use std::net::TcpListener;

use crate::support::client::get;
use crate::support::launch::serving;
use crate::support::upstream::Upstream;

/// An address where nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[test]
fn the_next_attempt_goes_where_the_function_says() {
    let backup = Upstream::fixed("backup");
    let proxy = serving(
        r#"
        route("/").to(|req, attempt| {
            if attempt.number == 1 { return "main"; }
            req.set_header("x-attempt", `${attempt.number} ${attempt.last_error}`);
            let failed = attempt.targets.filter(|t| t.failed).map(|t| t.pool);
            req.set_header("x-failed", failed[0]);
            "backup"
        });
        route("/answers").to(|req, attempt| {
            if attempt.number > 1 { return respond(503, "back soon").header("retry-after", "30"); }
            "main"
        });
        route("/once").to(|req| "main");
        route("/fails").to(|req, attempt| {
            let none = [];
            if attempt.number > 1 { return none[attempt.number]; }
            "main"
        });
        "#,
    )
    .pool("main", nobody())
    .pool("backup", backup.address())
    .start();
    assert_eq!(proxy.text("/"), "backup");
    let seen = backup.only_request();
    assert_eq!(seen.headers("x-attempt"), ["2 refused"]);
    assert_eq!(seen.headers("x-failed"), ["main"]);
    let answered = proxy.send(&get("/answers"));
    assert_eq!(
        (answered.status, answered.text().as_str()),
        (503, "back soon")
    );
    assert_eq!(answered.header("retry-after"), Some("30"));
    assert_eq!(proxy.get("/once").status, 502);
    assert_eq!(proxy.get("/fails").status, 500);
}

#[test]
fn a_pool_without_anybody_is_a_failed_attempt() {
    let backup = Upstream::fixed("backup");
    let proxy = serving(
        r#"
        route("/").to(|req, attempt| switch attempt.last_error { "unavailable" => "backup", _ => "main" });
        route("/stays").to(|req, attempt| "main");
        "#,
    )
    .settings("[dns]\nstartup_timeout = \"100ms\"\n")
    .pool("main", "nobody.invalid:80")
    .pool("backup", backup.address())
    .start();
    assert_eq!(proxy.text("/"), "backup");
    assert_eq!(proxy.get("/stays").status, 503);
}
