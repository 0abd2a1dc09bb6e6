//! How many connections of clients there may be, which of them give way, and what they cost.

use std::fs;

use crate::support::client::{Connection, get};
use crate::support::launch::serving;
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
