//! State that all workers share and that outlives programs. Case `first-hits`: a counter's creation
//! races (kong 2100, apisix 5588).

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::client::{Connection, get};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::{Upstream, ok};
use crate::support::wait::{SOON, until};

/// Ten in `window` for each key.
fn limited(window: &str) -> String {
    format!(
        r#"
        const LIMIT = rate(10, "{window}");
        route("/{{*rest}}").on_request(limited).to("web");
        fn limited(req) {{
            let key = req.query("key");
            if !LIMIT.allow(key) {{
                return respond(429).header("retry-after", LIMIT.retry_after(key));
            }}
        }}
        "#
    )
}

/// Sends a request on each connection at the same moment; the statuses that came back. Each 429 says
/// when to come back.
fn at_once(connections: &mut [Connection], key: &str) -> Vec<u16> {
    let start = Barrier::new(connections.len());
    thread::scope(|scope| {
        let clients: Vec<_> = connections
            .iter_mut()
            .map(|connection| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    let response = connection.send(&get(&format!("/?key={key}"))).unwrap();
                    if response.status == 429 {
                        let wait: u64 = response.header("retry-after").unwrap().parse().unwrap();
                        assert!(wait >= 1, "{wait}");
                    }
                    response.status
                })
            })
            .collect();
        clients.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

fn passed(statuses: &[u16]) -> usize {
    assert!(statuses.iter().all(|status| [200, 429].contains(status)));
    statuses.iter().filter(|&&status| status == 200).count()
}

fn connections(proxy: &Proxy, count: usize) -> Vec<Connection> {
    (0..count)
        .map(|_| Connection::open(proxy.address()).unwrap())
        .collect()
}

#[test]
fn of_a_hundred_first_hits_exactly_ten_pass() {
    let web = Upstream::fixed("ok");
    let proxy = serving(&limited("1h"))
        .settings("[server]\nthreads = 4")
        .pool("web", web.address())
        .start();
    // Over 100 connections all workers take part.
    let mut clients = connections(&proxy, 100);
    for round in 0..5 {
        let statuses = at_once(&mut clients, &format!("k{round}"));
        assert_eq!(passed(&statuses), 10);
    }
    assert_eq!(web.hits(), 50);
    let labels = [("kind", "rate"), ("name", "LIMIT")];
    assert_eq!(proxy.metric("state_keys", &labels), 5.0);
    assert_eq!(proxy.metric("state_full_total", &labels), 0.0);
}

#[test]
fn over_the_edge_of_the_window_ten_more_pass_and_no_eleventh() {
    const WINDOW: Duration = Duration::from_secs(2);
    let web = Upstream::fixed("ok");
    let proxy = serving(&limited("2s")).pool("web", web.address()).start();
    let mut clients = connections(&proxy, 30);
    let before = Instant::now();
    let mut all = passed(&at_once(&mut clients, "k"));
    assert!(all >= 10);
    // Asked on and on, until a second window has begun.
    until("more than one window's hits to pass", SOON, || {
        all += passed(&at_once(&mut clients, "k"));
        all >= 20
    });
    // The first one began after `before`, and they follow each other at their own length.
    let windows = before.elapsed().as_nanos().div_ceil(WINDOW.as_nanos());
    assert!(all as u128 <= 10 * windows, "{all} in {windows} windows");
}

#[test]
fn counts_and_values_survive_a_reload() {
    let routes = |version: &str, limit: u32| {
        format!(
            r#"
            const LIMIT = rate({limit}, "1h");
            const HITS = counter();
            const KEPT = cache("1h", 100);
            route("/limit").respond(|req| respond(if LIMIT.allow("k") {{ 200 }} else {{ 429 }}));
            route("/hits").respond(|req| respond(200, "" + HITS.add("k", 1)));
            route("/kept").respond(|req| respond(200, KEPT.get_or("k", || "{version}")));
            route("/version").respond(200, "{version}");
            "#
        )
    };
    let proxy = serving(&routes("one", 3)).start();
    for status in [200, 200, 200, 429] {
        assert_eq!(proxy.get("/limit").status, status);
    }
    assert_eq!(proxy.text("/hits"), "1");
    assert_eq!(proxy.text("/kept"), "one");

    std::fs::write(proxy.file("routes.rhai"), routes("two", 5)).unwrap();
    assert_eq!(proxy.reload().0, 200);
    until("the new program to serve", SOON, || {
        proxy.text("/version") == "two"
    });
    // What was used stays used; the new limit has two more.
    for status in [200, 200, 429] {
        assert_eq!(proxy.get("/limit").status, status);
    }
    assert_eq!(proxy.text("/hits"), "2");
    assert_eq!(proxy.text("/kept"), "one");

    // What no program has any more is gone when the last request of the old one has ended.
    std::fs::write(
        proxy.file("routes.rhai"),
        "route(\"/\").respond(200, \"three\");",
    )
    .unwrap();
    assert_eq!(proxy.reload().0, 200);
    until("the state to be freed", SOON, || {
        // Workers give up the old program when they see the new one.
        proxy.get("/");
        !proxy
            .ask_admin("/metrics")
            .text()
            .contains("edgewright_state_keys{")
    });
}

#[test]
fn a_value_that_many_miss_is_asked_for_once_by_each_worker() {
    let authz = Upstream::start(|_| ok("made"));
    let proxy = serving(
        r#"
        const KEPT = cache("1h", 100);
        route("/{*rest}").on_request(|req| {
            let value = KEPT.get_or(req.query("key"), || fetch("authz").body().text());
            return respond(200, value);
        }).to("authz");
        "#,
    )
    .settings("[server]\nthreads = 2")
    .pool("authz", authz.address())
    .start();
    let mut clients = connections(&proxy, 40);
    let statuses = at_once(&mut clients, "k");
    assert_eq!(passed(&statuses), 40);
    assert!((1..=2).contains(&authz.hits()), "{}", authz.hits());
}
