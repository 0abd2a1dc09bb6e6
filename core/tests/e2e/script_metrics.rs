//! Metrics that programs count themselves.

use crate::support::client::get;
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::Upstream;
use crate::support::wait::{SOON, until};

fn counted(proxy: &Proxy, sample: &str) -> Option<f64> {
    let text = proxy.ask_admin("/metrics").text();
    let line = text.lines().find_map(|line| line.strip_prefix(sample))?;
    Some(line.trim().parse().unwrap())
}

fn program(version: &str) -> String {
    format!(
        r#"
        route("/{{*rest}}")
            .on_request(|req| {{
                metric("requests_total", #{{ plan: req.query("plan"), version: "x" }}).inc();
                metric("bytes_total").add(2.5);
            }})
            .on_response(|req, res| {{
                metric("took_seconds", #{{ status: res.status }}).observe(0.02);
                metric("last_status").set(res.status);
                res.set_header("x-version", "{version}");
            }})
            .to("web");
        "#
    )
}

#[test]
fn hooks_count_on_all_workers_and_over_reloads() {
    let web = Upstream::fixed("ok");
    let proxy = serving(&program("one"))
        .settings("[server]\nthreads = 3")
        .pool("web", web.address())
        .start();
    for number in 0..30 {
        // Each on a connection of its own, so on several workers.
        let plan = if number % 3 == 0 { "?plan=gold" } else { "" };
        assert_eq!(proxy.get(&format!("/{plan}")).status, 200);
    }
    let gold = r#"script_requests_total{plan="gold",version="x"}"#;
    let none = r#"script_requests_total{plan="",version="x"}"#;
    assert_eq!(counted(&proxy, gold), Some(10.0));
    assert_eq!(counted(&proxy, none), Some(20.0));
    assert_eq!(counted(&proxy, "script_bytes_total"), Some(75.0));
    assert_eq!(counted(&proxy, "script_last_status"), Some(200.0));
    let bucket = |bound| format!("script_took_seconds_bucket{{status=\"200\",le=\"{bound}\"}}");
    assert_eq!(counted(&proxy, &bucket("0.01")), Some(0.0));
    assert_eq!(counted(&proxy, &bucket("0.025")), Some(30.0));
    assert_eq!(
        counted(&proxy, r#"script_took_seconds_count{status="200"}"#),
        Some(30.0)
    );
    let labels = [("kind", "metric"), ("name", "requests_total")];
    assert_eq!(proxy.metric("state_keys", &labels), 2.0);

    std::fs::write(proxy.file("routes.rhai"), program("two")).unwrap();
    assert_eq!(proxy.reload().0, 200);
    until("the new program to serve", SOON, || {
        let response = get("/?plan=none").send(proxy.address());
        response.header("x-version") == Some("two")
    });
    assert_eq!(proxy.get("/?plan=gold").status, 200);
    assert_eq!(counted(&proxy, gold), Some(11.0));
}

#[test]
fn clients_cannot_make_series_without_end() {
    let proxy = serving(
        r#"
        route("/{*rest}").respond(|req| {
            for i in 0..200 { metric("hits", #{ user: `${req.query("n")}-${i}` }).inc(); }
            respond(200)
        });
        "#,
    )
    .start();
    for number in 0..6 {
        assert_eq!(proxy.get(&format!("/?n={number}")).status, 200);
    }
    let text = proxy.ask_admin("/metrics").text();
    let series = text.lines().filter(|line| line.starts_with("script_hits{"));
    assert_eq!(series.count(), 1001);
    assert_eq!(counted(&proxy, r#"script_hits{user="other"}"#), Some(200.0));
    let labels = [("kind", "metric"), ("name", "hits")];
    assert_eq!(proxy.metric("state_full_total", &labels), 200.0);
}
