//! Case `spoofed-ip`: X-Forwarded-For decides access (tyk 624).

use crate::support::client::{Request, get};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::Upstream;

const ROUTES: &str = r#"
    const OFFICE = cidr(["10.0.0.0/8"]);
    route("/native").allow(OFFICE).to("web");
    route("/script").on_request(|req| if !OFFICE.contains(req.client_ip) { respond(403) }).to("web");
    route("/matched").from(OFFICE).to("web");
"#;

fn proxy(web: &Upstream, settings: &str) -> Proxy {
    serving(ROUTES)
        .settings(settings)
        .pool("web", web.address())
        .start()
}

fn claiming(target: &str, lines: &[&str]) -> Request {
    lines.iter().fold(get(target), |request, line| {
        request.header("x-forwarded-for", line)
    })
}

/// 403 of the native gate and the hook, 404 of the route with a condition, or 200 of all three.
fn is_let_in(proxy: &Proxy, lines: &[&str]) -> bool {
    let statuses = ["/native", "/script", "/matched"]
        .map(|target| proxy.send(&claiming(target, lines)).status);
    assert!(
        [[200; 3], [403, 403, 404]].contains(&statuses),
        "{lines:?}: {statuses:?}"
    );
    statuses == [200; 3]
}

#[test]
fn an_untrusted_peer_can_claim_nothing() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&web, "");
    for lines in [
        &["10.0.0.1"][..],
        &["10.0.0.1", "10.0.0.1"],
        &["::ffff:10.0.0.1"],
        &[],
    ] {
        assert!(!is_let_in(&proxy, lines), "{lines:?}");
    }
    let others = get("/native")
        .header("forwarded", "for=10.0.0.1")
        .header("x-real-ip", "10.0.0.1")
        .header("true-client-ip", "10.0.0.1")
        .header("x-client-ip", "10.0.0.1");
    assert_eq!(proxy.send(&others).status, 403);
    assert_eq!(web.hits(), 0);
}

#[test]
fn behind_trusted_proxies_the_right_most_untrusted_hop_counts() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(
        &web,
        "[trusted_proxies]\ncidrs = [\"127.0.0.0/8\", \"172.16.0.0/12\"]",
    );
    for (lines, expected) in [
        (&["10.0.0.1"][..], true),
        (&["::ffff:10.0.0.1"], true),
        (&["10.0.0.1, 172.16.0.1"], true),
        // What stands left of a hop that is not trusted is that hop's own claim.
        (&["10.0.0.1, 192.0.2.1"], false),
        (&["10.0.0.1, 192.0.2.1, 172.16.0.1"], false),
        // Two lines are one list.
        (&["10.0.0.1", "192.0.2.1"], false),
        (&["192.0.2.1", "10.0.0.1"], true),
        (&["192.0.2.1, 10.0.0.1", "172.16.0.1"], true),
        (&["10.0.0.1", "192.0.2.1, 172.16.0.1"], false),
        // What is no address ends the search at the hop before.
        (&["10.0.0.1, unknown"], false),
        (&["10.0.0.1, "], false),
    ] {
        assert_eq!(is_let_in(&proxy, lines), expected, "{lines:?}");
    }
}
