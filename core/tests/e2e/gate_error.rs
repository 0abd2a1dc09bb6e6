//! A gate that fails at run time on some requests must not let them through (Kong 6450).

use crate::support::client::{get, post};
use crate::support::launch::serving;
use crate::support::upstream::Upstream;
use crate::support::wait::{SOON, until};

#[test]
fn a_gate_that_fails_is_closed() {
    let web = Upstream::fixed("upstream");
    let proxy = serving(
        r#"
fn gate(req) {
    if req.method == "POST" {
        let roles = [];
        let first = roles[0];
        req.set_header("x-role", first);
    }
}
route("/gated/{*rest}").on_request(gate).to("web");
"#,
    )
    .pool("web", web.address())
    .start();
    let failures = |proxy: &crate::support::proxy::Proxy| {
        proxy.metric(
            "script_failures_total",
            &[
                ("route", "/gated/{*rest}"),
                ("hook", "on_request"),
                ("kind", "error"),
            ],
        )
    };

    assert_eq!(proxy.send(&get("/gated/x")).status, 200);
    assert_eq!(failures(&proxy), 0.0);

    let refused = proxy.send(&post("/gated/x", "payload"));
    assert_eq!(refused.status, 500);
    assert!(
        !refused.text().contains("roles"),
        "the client is told about the script: {}",
        refused.text()
    );
    let line = proxy.log.wait("script failure", SOON);
    for part in [
        "route=/gated/{*rest}",
        "hook=on_request",
        "at=routes.rhai:5:",
        "error=",
    ] {
        assert!(line.contains(part), "no {part} in {line}");
    }
    let column = line.split("at=routes.rhai:5:").nth(1).unwrap();
    let column: String = column.chars().take_while(char::is_ascii_digit).collect();
    // `let first = roles[0];` with four spaces before it: the place is on `roles[0]`.
    assert!(
        (17..=29).contains(&column.parse::<u32>().unwrap()),
        "{line}"
    );
    assert_eq!(failures(&proxy), 1.0);
    // A request is counted when its last byte is out, which the client may see first.
    until("the refused request to be counted", SOON, || {
        let labels = [("route", "/gated/{*rest}"), ("status", "500")];
        proxy.metric("requests_total", &labels) == 1.0
    });

    // GET goes on as before; the refused request never left the proxy.
    assert_eq!(proxy.send(&get("/gated/x")).status, 200);
    let methods: Vec<String> = web.requests().iter().map(|seen| seen.method()).collect();
    assert_eq!(methods, ["GET", "GET"]);
    assert_eq!(proxy.log.count("script failure"), 1, "{}", proxy.log.text());
}
