//! Case `many-args`: a filter that reads the first 100 arguments is bypassed with the 101st (VeryNginx
//! 218, openresty 358).

use crate::support::client::get;
use crate::support::launch::serving;
use crate::support::upstream::Upstream;

const ROUTES: &str = r#"
    const INJECTION = regex("(?i)select.*from");
    route("/first").on_request(|req| if INJECTION.is_match(req.query("b")) { respond(403) }).to("web");
    route("/all").on_request(|req| {
        for value in req.queries("a") { if INJECTION.is_match(value) { return respond(403); } }
    }).to("web");
    route("/matched").if_query("b", INJECTION).respond(403);
    route("/matched").to("web");
"#;

#[test]
fn no_argument_is_too_far_behind_to_be_seen() {
    let web = Upstream::fixed("ok");
    let proxy = serving(ROUTES)
        .settings("[limits]\nuri = \"60KiB\"\nrequest_header = \"64KiB\"")
        .pool("web", web.address())
        .start();
    for count in [100, 101, 300, 10_000] {
        let many = "a=1&".repeat(count);
        for (target, last) in [
            ("/first", "b=select%20*%20from+users"),
            ("/first", "%62=SELECT+x+FROM+y"),
            ("/all", "a=select+from"),
            ("/matched", "b=select+from"),
        ] {
            // A hook that goes through more of them runs out of operations, which is a refusal too.
            if target == "/all" && count > 1000 {
                continue;
            }
            let status = proxy.get(&format!("{target}?{many}{last}")).status;
            assert_eq!(status, 403, "{target} behind {count}");
        }
        assert_eq!(web.hits(), 0);
        // What is harmless arrives whole.
        let target = format!("/first?{many}b=selected");
        assert_eq!(proxy.get(&target).status, 200);
        assert_eq!(web.take_requests()[0].target(), target);
    }
}

/// With the limits as they are by default the longest of them are refused, never cut.
#[test]
fn what_is_too_long_is_refused_and_not_cut() {
    let web = Upstream::fixed("ok");
    let proxy = serving(ROUTES).pool("web", web.address()).start();
    let target = format!("/first?{}b=selected", "a=1&".repeat(3000));
    let refused = crate::support::client::exchange(proxy.address(), &get(&target).bytes());
    assert_eq!(refused.unwrap().status, 414);
    assert_eq!(web.hits(), 0);
}
