//! `[pools.NAME.limits]`: so many requests at a time, and those that wait for a place.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use crate::support::client::{Connection, get};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::{Action, Upstream, ok};
use crate::support::wait::{Gate, SOON, until};

const ROUTES: &str = r#"route("/{*rest}").to("web");"#;

/// Answers `/held..` when the gate opens, and the rest at once.
fn upstream(gate: &Gate) -> Upstream {
    let gate = gate.clone();
    Upstream::start(move |seen| {
        if seen.target().starts_with("/held") {
            gate.pass(3 * SOON);
        }
        if seen.target().starts_with("/cut") {
            let half = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";
            return Action::BytesThenClose(half.to_vec());
        }
        ok("ok")
    })
}

fn settings(targets: &[&Upstream], limits: &str) -> String {
    let targets: Vec<_> = targets
        .iter()
        .map(|web| web.address().to_string())
        .collect();
    format!(
        "[pools.web]\ntargets = {targets:?}\n[pools.web.limits]\n{limits}\n[server]\nthreads = 3"
    )
}

fn proxy(targets: &[&Upstream], limits: &str) -> Proxy {
    serving(ROUTES).settings(&settings(targets, limits)).start()
}

fn send(proxy: &Proxy, target: &str) -> JoinHandle<u16> {
    let (address, request) = (proxy.address(), get(target));
    std::thread::spawn(move || request.send(address).status)
}

fn failed(proxy: &Proxy, reason: &str) -> f64 {
    let labels = [("pool", "web"), ("reason", reason)];
    proxy.metric("upstream_errors_total", &labels)
}

fn waiting(proxy: &Proxy) -> f64 {
    proxy.metric("upstream_requests_waiting", &[("pool", "web")])
}

fn until_free(proxy: &Proxy) {
    until("all places to be free", SOON, || {
        proxy.status()["pools"][0]["places_taken"] == 0
    });
}

#[test]
fn what_is_too_much_is_refused_at_once() {
    let gate = Gate::new();
    let web = upstream(&gate);
    let proxy = proxy(&[&web], "requests = 2");
    let held = [send(&proxy, "/held/1"), send(&proxy, "/held/2")];
    web.wait_hits(2, SOON);
    assert_eq!(proxy.status()["pools"][0]["places_taken"], 2);
    let refused = proxy.get("/x");
    assert_eq!(
        (refused.status, refused.text().as_str()),
        (503, "503 too many requests for the upstream\n")
    );
    assert_eq!(failed(&proxy, "breaker_open"), 1.0);
    proxy.log.wait("reason=breaker_open", SOON);
    assert_eq!(web.hits(), 2);
    gate.open();
    for held in held {
        assert_eq!(held.join().unwrap(), 200);
    }
    until_free(&proxy);
    assert_eq!(proxy.get("/x").status, 200);
}

#[test]
fn those_that_wait_get_their_turn() {
    let gate = Gate::new();
    let web = upstream(&gate);
    let proxy = proxy(&[&web], "requests = 1\nqueue = 2\nqueue_timeout = \"5m\"");
    let held = send(&proxy, "/held");
    web.wait_hits(1, SOON);
    let mut line = Vec::new();
    for number in 1..=2 {
        line.push(send(&proxy, &format!("/{number}")));
        until("it to wait", SOON, || waiting(&proxy) == f64::from(number));
    }
    let refused = proxy.get("/3");
    assert_eq!(
        (refused.status, refused.text().as_str()),
        (503, "503 too many requests wait for the upstream\n")
    );
    assert_eq!(failed(&proxy, "queue_full"), 1.0);
    gate.open();
    assert_eq!(held.join().unwrap(), 200);
    for one in line {
        assert_eq!(one.join().unwrap(), 200);
    }
    let order: Vec<_> = web.requests().iter().map(|seen| seen.target()).collect();
    assert_eq!(order, ["/held", "/1", "/2"]);
    assert_eq!(waiting(&proxy), 0.0);
    until_free(&proxy);
}

#[test]
fn a_wait_has_its_time() {
    let gate = Gate::new();
    let web = upstream(&gate);
    let proxy = proxy(
        &[&web],
        "requests = 1\nqueue = 5\nqueue_timeout = \"200ms\"",
    );
    let held = send(&proxy, "/held");
    web.wait_hits(1, SOON);
    let refused = proxy.get("/x");
    assert_eq!(
        (refused.status, refused.text().as_str()),
        (503, "503 no place at the upstream became free in time\n")
    );
    assert_eq!(failed(&proxy, "queue_timeout"), 1.0);
    assert_eq!((waiting(&proxy), web.hits()), (0.0, 1));
    gate.open();
    assert_eq!(held.join().unwrap(), 200);
}

#[test]
fn a_client_that_leaves_gives_its_place_in_the_line_up() {
    let gate = Gate::new();
    let web = upstream(&gate);
    let proxy = proxy(&[&web], "requests = 1\nqueue = 1\nqueue_timeout = \"5m\"");
    let held = send(&proxy, "/held");
    web.wait_hits(1, SOON);
    for _ in 0..3 {
        let mut leaving = Connection::open(proxy.address()).unwrap();
        leaving.write(&get("/leaving").bytes()).unwrap();
        until("it to wait", SOON, || waiting(&proxy) == 1.0);
        drop(leaving);
        until("it to be gone", SOON, || waiting(&proxy) == 0.0);
    }
    let next = send(&proxy, "/next");
    until("it to wait", SOON, || waiting(&proxy) == 1.0);
    gate.open();
    assert_eq!((held.join().unwrap(), next.join().unwrap()), (200, 200));
    assert_eq!(web.hits(), 2);
    assert_eq!(proxy.metric("requests_total", &[("status", "499")]), 3.0);
    until_free(&proxy);
}

#[test]
fn a_place_comes_back_whatever_way_a_request_ends() {
    let gate = Gate::new();
    let web = upstream(&gate);
    let proxy = proxy(&[&web], "requests = 1");
    for _ in 0..3 {
        let mut leaving = Connection::open(proxy.address()).unwrap();
        let hits = web.hits();
        leaving.write(&get("/held").bytes()).unwrap();
        web.wait_hits(hits + 1, SOON);
        drop(leaving);
        until_free(&proxy);
        assert!(get("/cut").try_send(proxy.address()).is_err());
        until_free(&proxy);
        assert_eq!(proxy.get("/x").status, 200);
        until_free(&proxy);
    }
    gate.open();
}

#[test]
fn each_target_has_its_bound() {
    let gate = Gate::new();
    let (one, two) = (upstream(&gate), upstream(&gate));
    let proxy = proxy(
        &[&one, &two],
        "requests_per_target = 1\nqueue = 1\nqueue_timeout = \"5m\"",
    );
    let held = [send(&proxy, "/held/1"), send(&proxy, "/held/2")];
    one.wait_hits(1, SOON);
    two.wait_hits(1, SOON);
    let third = send(&proxy, "/3");
    until("it to wait", SOON, || waiting(&proxy) == 1.0);
    assert_eq!(proxy.get("/4").status, 503);
    gate.open();
    for one in held.into_iter().chain([third]) {
        assert_eq!(one.join().unwrap(), 200);
    }
    assert_eq!(one.hits() + two.hits(), 3);
    until_free(&proxy);
}

#[test]
fn a_reload_with_another_bound_counts_on() {
    let gate = Gate::new();
    let web = upstream(&gate);
    let proxy = proxy(&[&web], "requests = 2");
    let held = [send(&proxy, "/held/1"), send(&proxy, "/held/2")];
    web.wait_hits(2, SOON);
    let reload = |from: &str, to: &str| {
        let settings = proxy.settings().replace("requests = 2", from);
        let settings = settings.replace(from, to);
        std::fs::write(proxy.file("edgewright.toml"), settings).unwrap();
        assert_eq!(proxy.reload().0, 200);
    };
    reload("requests = 2", "requests = 3");
    let third = send(&proxy, "/held/3");
    web.wait_hits(3, SOON);
    assert_eq!(proxy.get("/x").status, 503);
    reload("requests = 2", "requests = 1");
    assert_eq!(proxy.get("/x").status, 503);
    gate.open();
    for one in held.into_iter().chain([third]) {
        assert_eq!(one.join().unwrap(), 200);
    }
    until_free(&proxy);
    assert_eq!(proxy.get("/x").status, 200);
}

/// Many clients over all workers: the upstream never sees more than the bound, and all are served.
#[test]
fn the_bound_holds_over_all_workers() {
    const BOUND: usize = 3;
    let (now, high) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (now.clone(), high.clone());
    let web = Upstream::start(move |_| {
        let (now, high) = (counts.0.clone(), counts.1.clone());
        Action::Write(Box::new(move |stream| {
            high.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::yield_now();
            // Before the last byte, or the next request could come in between.
            now.fetch_sub(1, Ordering::SeqCst);
            std::io::Write::write_all(
                stream,
                b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
            )
        }))
    });
    let proxy = proxy(
        &[&web],
        &format!("requests = {BOUND}\nqueue = 100\nqueue_timeout = \"5m\""),
    );
    let address = proxy.address();
    let clients: Vec<_> = (0..16)
        .map(|_| {
            std::thread::spawn(move || {
                let statuses = (0..50).map(|_| get("/x").send(address).status);
                statuses.filter(|status| *status == 200).count()
            })
        })
        .collect();
    let served: usize = clients.into_iter().map(|one| one.join().unwrap()).sum();
    assert_eq!(served, 16 * 50);
    let high = high.load(Ordering::SeqCst);
    assert!((1..=BOUND).contains(&high), "{high} at a time");
    until_free(&proxy);
}
