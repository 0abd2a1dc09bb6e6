//! Where a request goes: a pool, a weighted split, a function's choice, an answer of the proxy.

use crate::support::client::{get, request};
use crate::support::launch::serving;
use crate::support::upstream::Upstream;

#[test]
fn to_a_pool_of_either_file() {
    let web = Upstream::fixed("web");
    let canary = Upstream::fixed("canary");
    let routes = format!(
        r#"
        pool("canary", ["{}"]);
        route("/web").to("web");
        route("/canary").to("canary");
        "#,
        canary.address()
    );
    let proxy = serving(&routes).pool("web", web.address()).start();
    assert_eq!(proxy.text("/web"), "web");
    assert_eq!(proxy.text("/canary"), "canary");
}

#[test]
fn a_weighted_split_is_about_right() {
    let web = Upstream::fixed("web");
    let canary = Upstream::fixed("canary");
    let proxy = serving(r#"route("/{*rest}").to(#{ web: 75, canary: 25 });"#)
        .pool("web", web.address())
        .pool("canary", canary.address())
        .start();
    let mut connection = crate::support::client::Connection::open(proxy.address()).unwrap();
    const REQUESTS: usize = 400;
    for _ in 0..REQUESTS {
        assert_eq!(connection.send(&get("/x")).unwrap().status, 200);
    }
    assert_eq!(web.hits() + canary.hits(), REQUESTS);
    // 100 are expected; a fair draw is outside of 60..=140 about once in 250,000 runs.
    assert!(
        (60..=140).contains(&canary.hits()),
        "{} of {REQUESTS} went to the 25 % pool",
        canary.hits()
    );
}

#[test]
fn a_weight_of_zero_gets_nothing() {
    let web = Upstream::fixed("web");
    let canary = Upstream::fixed("canary");
    let proxy = serving(r#"route("/{*rest}").to(#{ web: 100, canary: 0 });"#)
        .pool("web", web.address())
        .pool("canary", canary.address())
        .start();
    for _ in 0..50 {
        assert_eq!(proxy.get("/x").status, 200);
    }
    assert_eq!((web.hits(), canary.hits()), (50, 0));
}

#[test]
fn a_function_chooses_the_pool() {
    let web = Upstream::fixed("web");
    let canary = Upstream::fixed("canary");
    let proxy = serving(
        r#"route("/b/{*rest}").to(|req| if req.cookie("beta") == "1" { "canary" } else { "web" });"#,
    )
    .pool("web", web.address())
    .pool("canary", canary.address())
    .start();
    assert_eq!(proxy.text("/b/x"), "web");
    let beta = get("/b/x").header("Cookie", "beta=1");
    assert_eq!(proxy.send(&beta).text(), "canary");
}

#[test]
fn a_function_that_fails_or_names_no_pool_is_500_without_contact() {
    let web = Upstream::fixed("web");
    let proxy = serving(
        r#"
        route("/fails").to(|req| { let a = []; a[1] });
        route("/unknown").to(|req| "w" + req.header("x-rest"));
        "#,
    )
    .pool("web", web.address())
    .start();
    assert_eq!(proxy.get("/fails").status, 500);
    let unknown = proxy.send(&get("/unknown").header("x-rest", "bb"));
    assert_eq!(unknown.status, 500);
    assert_eq!(web.hits(), 0);
    let known = proxy.send(&get("/unknown").header("x-rest", "eb"));
    assert_eq!(known.text(), "web");
}

#[test]
fn least_requests_prefers_the_idle_target_and_round_robin_alternates() {
    let one = Upstream::fixed("one");
    let two = Upstream::fixed("two");
    let targets = format!("targets = [\"{}\", \"{}\"]", one.address(), two.address());
    let proxy = serving(r#"route("/{*rest}").to("web");"#)
        .settings(&format!(
            "[pools.web]\n{targets}\nbalance = \"round_robin\""
        ))
        .start();
    for _ in 0..10 {
        assert_eq!(proxy.get("/x").status, 200);
    }
    assert_eq!((one.hits(), two.hits()), (5, 5));

    let gate = crate::support::wait::Gate::new();
    let held = gate.clone();
    let busy = Upstream::start(move |_| {
        held.pass(crate::support::wait::SOON);
        crate::support::upstream::ok("busy")
    });
    let idle = Upstream::fixed("idle");
    let proxy = serving(r#"route("/{*rest}").to("web");"#)
        .settings(&format!(
            "[pools.web]\ntargets = [\"{}\", \"{}\"]",
            busy.address(),
            idle.address()
        ))
        .start();
    let address = proxy.address();
    // Requests are sent until one is stuck in the busy target; from then on all go to the idle one.
    let stuck: Vec<_> = std::iter::from_fn(|| {
        (busy.hits() == 0).then(|| {
            let before = busy.hits() + idle.hits();
            let thread = std::thread::spawn(move || get("/x").send(address));
            crate::support::wait::until("a request", crate::support::wait::SOON, || {
                busy.hits() + idle.hits() > before
            });
            thread
        })
    })
    .take(100)
    .collect();
    assert_eq!(busy.hits(), 1);
    for _ in 0..20 {
        // A slot is given back a moment after the answer: only then is the idle target idle again.
        crate::support::wait::until("the idle target", crate::support::wait::SOON, || {
            let labels = &[("pool", "web")];
            proxy.metric("upstream_requests_in_flight", labels) == 1.0
        });
        assert_eq!(proxy.text("/x"), "idle");
    }
    gate.open();
    for thread in stuck {
        assert_eq!(thread.join().unwrap().status, 200);
    }
}

#[test]
fn answers_of_the_proxy_itself() {
    let proxy = serving(
        r#"
        route("/fixed").respond(418, "short\n");
        route("/headers").respond(respond(200, "ok").header("x-one", "1").header("x-two", "2"));
        route("/fn/{name}").respond(|req| respond(200, "hello " + req.param("name")));
        route("/moved").redirect(302, "/new");
        route("/gone").redirect(308, "https://example.org/new?a=1");
        route("/status").respond(|req| respond(204));
        "#,
    )
    .start();
    let fixed = proxy.get("/fixed");
    assert_eq!((fixed.status, fixed.text().as_str()), (418, "short\n"));
    assert_eq!(fixed.header("content-length"), Some("6"));
    let headers = proxy.get("/headers");
    assert_eq!(headers.header("x-one"), Some("1"));
    assert_eq!(headers.header("x-two"), Some("2"));
    assert_eq!(proxy.text("/fn/world"), "hello world");
    let moved = proxy.get("/moved");
    assert_eq!(
        (moved.status, moved.header("location")),
        (302, Some("/new"))
    );
    let gone = proxy.get("/gone");
    assert_eq!(
        (gone.status, gone.header("location")),
        (308, Some("https://example.org/new?a=1"))
    );
    let empty = proxy.send(&request("GET", "/status"));
    assert_eq!((empty.status, empty.text().as_str()), (204, ""));
}
