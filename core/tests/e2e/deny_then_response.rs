//! Case deny-then-response: hooks behind a local denial run twice or not at all (apisix 11823).

use crate::support::client::get;
use crate::support::launch::serving;
use crate::support::upstream::Upstream;
use crate::support::wait::SOON;

#[test]
fn each_later_hook_runs_once_with_is_local() {
    let web = Upstream::fixed("upstream");
    let proxy = serving(
        r#"
        on_log(|req, res| log("info", `all ${req.path} ${res.status} ${res.is_local}`));
        route("/{*rest}")
            .on_request(|req| { return respond(401, "who are you?"); })
            .on_request(|req| { log("error", "never"); })
            .on_response(|req, res| { res.add_header("x-seen", `${res.is_local}`); })
            .on_response_body(|req, res| { res.set_body(res.body().text() + " Say it!"); })
            .on_log(|req, res| log("info", `route ${res.status} ${res.is_local} ${res.bytes_sent} ${res.attempts}`))
            .to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    let response = proxy.send(&get("/a"));
    assert_eq!(
        (response.status, response.text().as_str()),
        (401, "who are you? Say it!")
    );
    assert_eq!(response.header("x-seen"), Some("true"));
    proxy.log.wait("route 401 true 20 0", SOON);
    assert_eq!(proxy.log.count("all /a 401 true"), 1);
    assert_eq!(proxy.log.count("route 401"), 1);
    assert_eq!(proxy.log.count("never"), 0);
    assert_eq!(web.hits(), 0);
}
