//! Case `first-hits`: a counter's creation races (kong 2100, apisix 5588). The native `.limit`; the
//! same with a `rate` in a hook is in `shared_state`.

use std::sync::Barrier;
use std::thread;

use crate::support::client::{Connection, Response, get};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::Upstream;
use crate::support::wait::{SOON, until};

fn at_once(connections: &mut [Connection], target: &str) -> Vec<Response> {
    let start = Barrier::new(connections.len());
    thread::scope(|scope| {
        let clients: Vec<_> = connections
            .iter_mut()
            .map(|connection| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    connection.send(&get(target)).unwrap()
                })
            })
            .collect();
        clients.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

/// The seconds until the next window, when it is refused as it should be.
fn refused(response: &Response, key: &str, window: u64) -> u64 {
    assert_eq!(response.status, 429, "{}", response.text());
    let wait: u64 = response.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=window).contains(&wait), "{wait}");
    let limit = format!("\"{key}\";r=0;t={wait}");
    assert_eq!(response.header("ratelimit"), Some(limit.as_str()));
    wait
}

#[test]
fn of_a_hundred_first_hits_exactly_ten_pass() {
    let web = Upstream::fixed("ok");
    let proxy =
        serving("route(\"/{*rest}\").limit(10, \"1h\", #{ key: \"query:key\" }).to(\"web\");")
            .settings("[server]\nthreads = 4")
            .pool("web", web.address())
            .start();
    // Over 100 connections all workers take part.
    let mut clients: Vec<_> = (0..100)
        .map(|_| Connection::open(proxy.address()).unwrap())
        .collect();
    for round in 0..5 {
        let responses = at_once(&mut clients, &format!("/?key=k{round}"));
        let (passed, others): (Vec<_>, Vec<_>) = responses
            .iter()
            .partition(|response| response.status == 200);
        assert_eq!(passed.len(), 10);
        for response in others {
            refused(response, "query:key", 3600);
            let policy = "\"query:key\";q=10;w=3600";
            assert_eq!(response.header("ratelimit-policy"), Some(policy));
        }
    }
    assert_eq!(web.hits(), 50);
    let labels = [("route", "/{*rest}"), ("gate", "limit")];
    assert_eq!(proxy.metric("gate_refusals_total", &labels), 450.0);
    let labels = [("kind", "rate"), ("name", "/{*rest} .limit")];
    assert_eq!(proxy.metric("state_keys", &labels), 5.0);
}

fn statuses(proxy: &Proxy, targets: &[(&str, &str)]) -> Vec<u16> {
    targets
        .iter()
        .map(|(target, client)| {
            let request = get(target).header("x-forwarded-for", client);
            proxy.send(&request).status
        })
        .collect()
}

#[test]
fn clients_are_told_apart_by_address_unless_said_otherwise() {
    let proxy = serving(
        r#"
        route("/ip").limit(1, "1h").respond(200);
        route("/all").limit(1, "1h", #{ key: "route", status: 503 }).respond(200);
        route("/both").limit(9, "1h", #{ key: "route" }).limit(1, "1h").respond(200);
        "#,
    )
    .settings("[trusted_proxies]\ncidrs = [\"127.0.0.0/8\"]")
    .start();
    let requests = [
        ("/ip", "192.0.2.1"),
        ("/ip", "192.0.2.1"),
        ("/ip", "192.0.2.2"),
        ("/ip", "2001:db8::1"),
        ("/ip", "2001:db8::2"),
        ("/ip", "2001:db8:0:1::2"),
        ("/all", "192.0.2.1"),
        ("/all", "192.0.2.2"),
        ("/both", "192.0.2.1"),
        ("/both", "192.0.2.1"),
        ("/both", "192.0.2.2"),
    ];
    assert_eq!(
        statuses(&proxy, &requests),
        [200, 429, 200, 200, 429, 200, 200, 503, 200, 429, 200]
    );
}

/// The hits of a constant are the same for a route's `.limit` and for hooks.
#[test]
fn a_rate_that_a_constant_holds_is_shared() {
    let proxy = serving(
        r#"
        const LIMIT = rate(3, "1h");
        route("/a").limit(LIMIT, #{ key: "header:x-key" }).respond(200);
        route("/b").limit(LIMIT, #{ key: "query:key" }).respond(200);
        route("/left").respond(|req| respond(200, LIMIT.remaining("k").to_string()));
        route("/script").respond(|req| {
            if LIMIT.allow("k") { respond(200) } else { respond(429).header("retry-after", LIMIT.retry_after("k")) }
        });
        "#,
    )
    .start();
    assert_eq!(proxy.send(&get("/a").header("x-key", "k")).status, 200);
    assert_eq!(proxy.get("/b?key=k").status, 200);
    assert_eq!(proxy.text("/left"), "1");
    assert_eq!(proxy.get("/script").status, 200);
    let refused_by_script = proxy.get("/script");
    assert_eq!(refused_by_script.status, 429);
    refused(&proxy.get("/b?key=k"), "query:key", 3600);
    assert_eq!(proxy.get("/b?key=other").status, 200);
}

#[test]
fn what_was_used_survives_a_reload() {
    let routes = |more: &str, limit: u32| {
        format!("{more} route(\"/x\").limit({limit}, \"1h\").respond(200, \"{limit}\");")
    };
    let proxy = serving(&routes("", 2)).start();
    for status in [200, 200, 429] {
        assert_eq!(proxy.get("/x").status, status);
    }
    // Another place in the file, and one more.
    let more = "route(\"/y\").limit(1, \"1h\").respond(200, \"y\");\n";
    std::fs::write(proxy.file("routes.rhai"), routes(more, 3)).unwrap();
    assert_eq!(proxy.reload().0, 200);
    until("the new program to serve", SOON, || {
        proxy.get("/y").status != 404
    });
    for status in [200, 429] {
        assert_eq!(proxy.get("/x").status, status);
    }
}
