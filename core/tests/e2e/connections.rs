//! How many connections of clients there may be, which of them give way, and what they cost.

use std::fs;
use std::time::Duration;

use crate::support::certificates::Authority;
use crate::support::client::{Connection, get};
use crate::support::http2::{Client, request};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::tls_client::asking_for;
use crate::support::upstream::{Upstream, ok};
use crate::support::wait::{Gate, SOON, until};

const ROUTES: &str = r#"
    route("/").respond(200, "here\n");
    route("/slow").to("web");
"#;

fn limited(most: usize) -> crate::support::launch::Builder {
    serving(ROUTES).settings(&format!(
        "[server]\nthreads = 1\n\n[limits]\nconnections = {most}"
    ))
}

#[test]
fn whoever_has_been_idle_longest_gives_way() {
    let proxy = limited(3).pool("web", "127.0.0.1:9").start();
    let mut kept: Vec<Connection> = (0..3)
        .map(|_| {
            let mut connection = Connection::open(proxy.address()).unwrap();
            assert_eq!(connection.send(&get("/")).unwrap().status, 200);
            connection
        })
        .collect();
    // The first one is not the one that has waited longest any more.
    assert_eq!(kept[0].send(&get("/")).unwrap().status, 200);
    let mut fourth = Connection::open(proxy.address()).unwrap();
    assert_eq!(fourth.send(&get("/")).unwrap().status, 200);
    assert!(kept[1].closed_within(SOON));
    for index in [0, 2] {
        assert_eq!(kept[index].send(&get("/")).unwrap().status, 200);
    }
    let hits = [("limit", "connections")];
    assert_eq!(proxy.metric("limit_hits_total", &hits), 1.0);
    assert_eq!(proxy.metric("connections_open", &[]), 3.0);
    assert_eq!(proxy.metric("connections_limit", &[]), 3.0);
}

/// Who is served is not cut: the next one waits.
#[test]
fn requests_do_not_give_way() {
    let gate = Gate::new();
    let waits = gate.clone();
    let web = Upstream::start(move |_| {
        waits.pass(SOON);
        ok("slow")
    });
    let proxy = limited(2).pool("web", web.address()).start();
    let open = || {
        let mut connection = Connection::open(proxy.address()).unwrap();
        connection
            .write(b"GET /slow HTTP/1.1\r\nHost: edge.test\r\n\r\n")
            .unwrap();
        connection
    };
    let mut all: Vec<Connection> = (0..2).map(|_| open()).collect();
    web.wait_hits(2, SOON);
    all.push(open());
    until("the third one waits", SOON, || {
        proxy.metric("limit_hits_total", &[("limit", "connections")]) >= 1.0
    });
    assert_eq!(web.hits(), 2);
    gate.open();
    for connection in &mut all {
        assert_eq!(connection.read_response("GET").unwrap().text(), "slow");
    }
    assert_eq!(web.hits(), 3);
}

/// An upstream that answers when the gate opens.
fn gated(gate: &Gate) -> Upstream {
    let waits = gate.clone();
    Upstream::start(move |_| {
        waits.pass(2 * SOON);
        ok("slow")
    })
}

fn hits(proxy: &Proxy) -> f64 {
    proxy.metric("limit_hits_total", &[("limit", "connections")])
}

/// Opens a connection with a request on it.
fn asks(proxy: &Proxy, target: &str) -> Connection {
    let mut connection = Connection::open(proxy.address()).unwrap();
    connection.write(&get(target).bytes()).unwrap();
    connection
}

/// The limit was hit when nobody was idle: whoever becomes idle after that, when nobody waits any more, is left alone.
#[test]
fn a_wish_that_was_fulfilled_ends_nobody() {
    let gate = Gate::new();
    let web = gated(&gate);
    let proxy = limited(2).pool("web", web.address()).start();
    let (mut stays, leaves) = (asks(&proxy, "/slow"), asks(&proxy, "/slow"));
    web.wait_hits(2, SOON);
    let mut third = asks(&proxy, "/");
    until("the third one to wait", SOON, || hits(&proxy) >= 1.0);
    drop(leaves);
    assert_eq!(third.read_response("GET").unwrap().status, 200);
    gate.open();
    assert_eq!(stays.read_response("GET").unwrap().text(), "slow");
    for _ in 0..3 {
        for connection in [&mut stays, &mut third] {
            assert_eq!(connection.send(&get("/")).unwrap().status, 200);
        }
    }
}

/// Those that wait beyond the limit have been established, and have sent their requests.
#[test]
fn whoever_waits_for_a_place_at_the_end_is_served() {
    let gate = Gate::new();
    let web = gated(&gate);
    let mut proxy = limited(2).pool("web", web.address()).start();
    let mut all: Vec<Connection> = (0..2).map(|_| asks(&proxy, "/slow")).collect();
    web.wait_hits(2, SOON);
    all.extend((0..5).map(|_| asks(&proxy, "/slow")));
    until("one to wait", SOON, || hits(&proxy) >= 1.0);
    proxy.signal("TERM");
    web.wait_hits(7, SOON);
    gate.open();
    for connection in &mut all {
        assert_eq!(connection.read_response("GET").unwrap().text(), "slow");
    }
    assert_eq!(proxy.wait_exit(SOON).0.code(), Some(0));
}

#[test]
fn an_idle_connection_of_http2_gives_way_and_a_busy_one_does_not() {
    let gate = Gate::new();
    let web = gated(&gate);
    let proxy = limited(1)
        .listener("http2 = true")
        .pool("web", web.address())
        .start();
    let ask = |path: &str| request("GET", path).body(()).unwrap();
    let idle = Client::connect(proxy.address());
    assert_eq!(idle.send(ask("/"), b"").unwrap().status, 200);
    let busy = Client::connect(proxy.address());
    let streams = std::thread::spawn(move || {
        let answers = busy.send_all(vec![ask("/slow")]);
        (busy, answers)
    });
    web.wait_hits(1, SOON);
    assert!(
        idle.send(ask("/"), b"").is_err(),
        "it should have been told to go"
    );
    let mut third = asks(&proxy, "/");
    until("the third one to wait", SOON, || hits(&proxy) >= 2.0);
    gate.open();
    let (busy, answers) = streams.join().unwrap();
    let answer = answers.into_iter().next().unwrap().expect("it was cut");
    assert_eq!(answer.message.text(), "slow");
    // Idle by now.
    assert_eq!(third.read_response("GET").unwrap().status, 200);
    assert!(busy.send(ask("/"), b"").is_err());
}

/// A client that never says what it has heard of.
#[test]
fn a_dead_connection_of_http2_gives_way_too() {
    let proxy = limited(1)
        .listener("http2 = true")
        .pool("web", "127.0.0.1:9")
        .start();
    let mut dead = Connection::open(proxy.address()).unwrap();
    dead.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
        .unwrap();
    let mut next = asks(&proxy, "/");
    assert_eq!(next.read_response("GET").unwrap().status, 200);
    assert!(dead.closed_within(SOON));
}

#[test]
fn a_slow_handshake_gives_way() {
    let own = Authority::new("of the test").issue(&["a.test"]);
    let proxy = serving(ROUTES)
        .settings(
            "[server]\nthreads = 1\n\n[limits]\nconnections = 2\ntls_handshake_timeout = \"60s\"",
        )
        .listener("[listeners.tls]\ncertificates = [{ cert = \"0.crt\", key = \"0.key\" }]")
        .file("0.crt", &own.chain)
        .file("0.key", &own.key)
        .pool("web", "127.0.0.1:9")
        .start();
    let mut silent: Vec<Connection> = (0..2)
        .map(|_| Connection::open(proxy.address()).unwrap())
        .collect();
    let tunnel = asking_for("a.test").to(proxy.address());
    assert_eq!(get("/").send(tunnel.address()).status, 200);
    let left = silent.iter_mut();
    let left = left.filter_map(|one| one.closed_within(Duration::from_millis(1)).then_some(()));
    assert_eq!(left.count(), 1, "one for one");
}

#[test]
fn what_the_limit_is_follows_from_the_open_files() {
    let proxy = serving("route(\"/\").respond(200);").start();
    let status = proxy.status();
    let files = status["open_files_limit"].as_u64().unwrap();
    let limit = status["connections_limit"].as_u64().unwrap();
    assert!(limit >= 64 && limit <= files.max(64), "{status}");
    assert_eq!(status["connections"], 0);
}

/// Resident memory of the process, in bytes.
fn resident(pid: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: usize = line
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    kib * 1024
}

/// At most 30 KB each, after a request to an upstream; and it is given back.
#[test]
fn idle_connections_cost_little() {
    let soak = std::env::var_os("EDGEWRIGHT_SOAK").is_some();
    let count = if soak { 5000 } else { 500 };
    let web = Upstream::fixed("web");
    let proxy = serving("route(\"/\").to(\"web\");")
        .settings("[server]\nthreads = 2\n\n[limits]\nconnections = 6000")
        .pool("web", web.address())
        .start();
    let mut warm = Connection::open(proxy.address()).unwrap();
    for _ in 0..200 {
        assert_eq!(warm.send(&get("/")).unwrap().text(), "web");
    }
    let before = resident(proxy.pid());
    let all: Vec<Connection> = (0..count)
        .map(|_| {
            let mut connection = Connection::open(proxy.address()).unwrap();
            assert_eq!(connection.send(&get("/")).unwrap().text(), "web");
            connection
        })
        .collect();
    let with = resident(proxy.pid());
    let each = with.saturating_sub(before) / count;
    println!("{each} bytes for each of {count} idle connections");
    assert!(each <= 30_000, "{each} bytes for each of {count}");
    drop(all);
    until("all are gone", SOON, || {
        proxy.metric("connections_open", &[]) <= 1.0
    });
    // jemalloc gives pages back 5 s after they are free.
    let most = before + count * 30_000 / 4;
    until("the memory is given back", 4 * SOON, || {
        resident(proxy.pid()) <= most
    });
}
