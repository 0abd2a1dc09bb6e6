//! Targets that are checked, and targets that are left out since requests fail on them.

use std::io::Read as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use crate::support::client::{Connection, get};
use crate::support::grpc::{GrpcHealth, NOT_SERVING, SERVING};
use crate::support::launch::serving;
use crate::support::ports;
use crate::support::proxy::Proxy;
use crate::support::upstream::{Action, Seen, Upstream, answer, ok};
use crate::support::wait::{Gate, SOON, until};

const ROUTES: &str = r#"route("/{*rest}").to("web");"#;

/// One where nobody listens.
fn closed() -> SocketAddr {
    ports::free([127, 0, 0, 1].into(), 1)[0]
}

fn pool(targets: &[SocketAddr], tables: &str) -> String {
    let targets: Vec<String> = targets
        .iter()
        .map(|target| format!("\"{target}\""))
        .collect();
    format!(
        "[pools.web]\ntargets = [{}]\nbalance = \"round_robin\"\n{tables}",
        targets.join(", ")
    )
}

/// Whether requests may get the target, by the metric.
fn is_used(proxy: &Proxy, target: SocketAddr) -> bool {
    let target = target.to_string();
    proxy.metric("upstream_health", &[("pool", "web"), ("endpoint", &target)]) == 1.0
}

fn wait_used(proxy: &Proxy, target: SocketAddr, used: bool) {
    until("another verdict", SOON, || is_used(proxy, target) == used);
}

fn ejections(proxy: &Proxy, reason: &str) -> f64 {
    proxy.metric(
        "upstream_ejections_total",
        &[("pool", "web"), ("reason", reason)],
    )
}

/// What `/status` says of a target.
fn told(proxy: &Proxy, target: SocketAddr) -> serde_json::Value {
    let status = proxy.status();
    let endpoints = status["pools"][0]["endpoints"].as_array().unwrap().clone();
    let target = target.to_string();
    let found = endpoints
        .iter()
        .find(|endpoint| endpoint["address"] == *target);
    found
        .unwrap_or_else(|| panic!("{target} in {status}"))
        .clone()
}

/// An upstream that answers its health check with `health` and says its name to everything else.
fn checked(name: &'static str, health: &Arc<AtomicU16>) -> Upstream {
    let health = health.clone();
    Upstream::start(move |seen: &Seen| {
        if seen.target() == "/healthz" {
            answer(health.load(Ordering::SeqCst), &[], "")
        } else {
            ok(name)
        }
    })
}

/// Requests that are no checks.
fn served(upstream: &Upstream) -> usize {
    let requests = upstream.requests();
    requests
        .iter()
        .filter(|seen| seen.target() != "/healthz")
        .count()
}

#[test]
fn a_target_whose_check_fails_gets_nothing_until_it_is_well() {
    let (one_says, two_says) = (Arc::new(AtomicU16::new(503)), Arc::new(AtomicU16::new(200)));
    let (one, two) = (checked("one", &one_says), checked("two", &two_says));
    let check = "[pools.web.health]\npath = \"/healthz\"\nhost = \"check.test\"\ninterval = \"100ms\"\n\
                 timeout = \"20s\"\n";
    let proxy = serving(ROUTES)
        .settings(&pool(&[one.address(), two.address()], check))
        .start();
    // The first result counts alone.
    wait_used(&proxy, one.address(), false);
    let before = served(&one);
    for _ in 0..20 {
        assert_eq!(proxy.text("/x"), "two");
    }
    assert_eq!(served(&one), before);
    let sick = told(&proxy, one.address());
    assert_eq!(sick["healthy"], false, "{sick}");
    assert_eq!(sick["usable"], false, "{sick}");
    assert_eq!(sick["ejected"], serde_json::Value::Null, "{sick}");
    assert_eq!(sick["last_failure"], "check: status 503", "{sick}");
    assert!(sick["since"].as_u64().unwrap() > 1_600_000_000, "{sick}");
    until("a verdict on the other", SOON, || {
        told(&proxy, two.address())["healthy"] == true
    });
    assert_eq!(proxy.metric("upstream_endpoints", &[("pool", "web")]), 1.0);
    let checks = |result: &str| {
        proxy.metric(
            "health_checks_total",
            &[("pool", "web"), ("result", result)],
        )
    };
    assert!(checks("failure") >= 1.0 && checks("success") >= 1.0);
    assert_eq!(checks("timeout"), 0.0);
    let asked = one.requests();
    assert_eq!(asked[0].header("host").as_deref(), Some("check.test"));
    proxy.log.wait("upstream unhealthy pool=web", SOON);

    one_says.store(204, Ordering::SeqCst);
    wait_used(&proxy, one.address(), true);
    until("requests for the one that is back", SOON, || {
        proxy.text("/x") == "one"
    });
    proxy.log.wait("upstream healthy pool=web", SOON);
}

#[test]
fn a_target_that_does_not_accept_is_found_by_tcp_checks() {
    let (gone, web) = (closed(), Upstream::fixed("ok"));
    let check = "[pools.web.health]\ninterval = \"100ms\"\nhealthy = 1\n\
                 [pools.web.ejection]\nconsecutive_failures = 0\n";
    let proxy = serving(ROUTES)
        .settings(&pool(&[gone, web.address()], check))
        .start();
    wait_used(&proxy, gone, false);
    let refused = || proxy.metric("upstream_connect_failures_total", &[("pool", "web")]);
    let before = refused();
    for _ in 0..20 {
        assert_eq!(proxy.text("/x"), "ok");
    }
    assert_eq!(refused(), before);
    assert_eq!(
        told(&proxy, gone)["last_failure"],
        "check: connection refused"
    );
    let back = Upstream::start_at(gone, |_| ok("back")).unwrap();
    until("requests for the one that is back", SOON, || {
        proxy.text("/x") == "back"
    });
    drop(back);
}

#[test]
fn a_grpc_target_is_used_while_it_says_that_it_serves() {
    let (one, two) = (GrpcHealth::start(NOT_SERVING), GrpcHealth::start(SERVING));
    let check = "[pools.web.health]\ntype = \"grpc\"\nservice = \"shop.Cart\"\ninterval = \"100ms\"\n\
                 timeout = \"20s\"\nhealthy = 1\nunhealthy = 1\n";
    let proxy = serving(ROUTES)
        .settings(&pool(&[one.address(), two.address()], check))
        .start();
    wait_used(&proxy, one.address(), false);
    assert_eq!(
        told(&proxy, one.address())["last_failure"],
        "check: NOT_SERVING"
    );
    let asked = one.asked();
    let address = one.address();
    assert_eq!(
        asked[0].uri,
        format!("http://{address}/grpc.health.v1.Health/Check")
    );
    assert_eq!(
        (&*asked[0].content_type, &*asked[0].te),
        ("application/grpc", "trailers")
    );
    assert_eq!(asked[0].body, b"\0\0\0\0\x0b\x0a\x09shop.Cart");
    until("a verdict on the other", SOON, || {
        told(&proxy, two.address())["healthy"] == true
    });
    one.say(SERVING);
    wait_used(&proxy, one.address(), true);
    two.say(NOT_SERVING);
    wait_used(&proxy, two.address(), false);
}

#[test]
fn a_target_that_must_be_checked_first_gets_nothing_before() {
    let gate = Gate::new();
    let door = gate.clone();
    let web = Upstream::start(move |seen: &Seen| {
        if seen.target() == "/healthz" {
            door.pass(SOON);
        }
        ok("ok")
    });
    let check =
        "[pools.web.health]\npath = \"/healthz\"\ntimeout = \"60s\"\ninitial = \"unhealthy\"\n";
    let proxy = serving(ROUTES)
        .settings(&pool(&[web.address()], check))
        .start();
    let refused = proxy.get("/x");
    assert_eq!(refused.status, 503);
    assert!(
        refused
            .text()
            .contains("all targets are ejected or unhealthy"),
        "{}",
        refused.text()
    );
    assert_eq!(served(&web), 0);
    gate.open();
    until("the first verdict", SOON, || proxy.get("/x").status == 200);
}

#[test]
fn a_target_that_refuses_is_left_out_and_comes_back_by_itself() {
    let (gone, web) = (closed(), Upstream::fixed("ok"));
    let ejection = "[pools.web.ejection]\nconsecutive_failures = 3\nbase_time = \"300ms\"\n\
                    max_time = \"300ms\"\n";
    let proxy = serving(ROUTES)
        .settings(&pool(&[gone, web.address()], ejection))
        .start();
    until("an ejection", SOON, || {
        assert_eq!(proxy.text("/x"), "ok");
        ejections(&proxy, "failures") >= 1.0
    });
    let line = proxy.log.wait("upstream ejected pool=web", SOON);
    assert!(line.contains("reason=failures"), "{line}");
    assert!(line.contains("connection refused"), "{line}");
    proxy.log.wait("upstream used again pool=web", SOON);
    let back = Upstream::start_at(gone, |_| ok("back")).unwrap();
    until("requests for the one that is back", SOON, || {
        proxy.text("/x") == "back"
    });
    wait_used(&proxy, gone, true);
    drop(back);
}

#[test]
fn an_ejected_target_is_not_even_tried_and_a_reload_changes_nothing_of_it() {
    let (gone, web) = (closed(), Upstream::fixed("ok"));
    let ejection =
        "[pools.web.ejection]\nconsecutive_failures = 1\nbase_time = \"1h\"\nmax_time = \"1h\"\n";
    let proxy = serving(ROUTES)
        .settings(&pool(&[gone, web.address()], ejection))
        .start();
    until("an ejection", SOON, || {
        proxy.get("/x");
        !is_used(&proxy, gone)
    });
    let refused = || proxy.metric("upstream_connect_failures_total", &[("pool", "web")]);
    let unchanged = |proxy: &Proxy| {
        let before = refused();
        for _ in 0..20 {
            assert_eq!(proxy.text("/x"), "ok");
        }
        assert_eq!(refused(), before);
        let told = told(proxy, gone);
        assert_eq!(told["ejected"], "failures", "{told}");
        assert_eq!(told["last_failure"], "connection refused", "{told}");
        assert_eq!(told["healthy"], serde_json::Value::Null, "{told}");
    };
    unchanged(&proxy);

    // A reload that leaves the pool as it is.
    std::fs::write(
        proxy.file("routes.rhai"),
        format!("{ROUTES}\nroute(\"/new\").respond(200);"),
    )
    .unwrap();
    assert_eq!(proxy.reload().0, 200);
    until("the new program", SOON, || {
        proxy.get("/new").text().is_empty()
    });
    unchanged(&proxy);

    // And one that changes it: connections are made anew, the address is known.
    let settings = format!(
        "{}\n[pools.web.timeouts]\nread = \"33s\"\n",
        proxy.settings()
    );
    std::fs::write(proxy.file("edgewright.toml"), settings).unwrap();
    let (status, body) = proxy.reload();
    assert_eq!(status, 200, "{body}");
    unchanged(&proxy);
    assert_eq!(ejections(&proxy, "failures"), 1.0);
}

#[test]
fn a_run_of_5xx_ejects_and_clients_that_leave_do_not() {
    let gate = Gate::new();
    let door = gate.clone();
    let bad = Upstream::start(|_| answer(500, &[], "broken"));
    let web = Upstream::start(move |seen: &Seen| {
        if seen.target() == "/slow" {
            door.pass(SOON);
        }
        ok("ok")
    });
    let ejection = "[pools.web.ejection]\nconsecutive_failures = 1\nconsecutive_5xx = 3\nbase_time = \"1h\"\n\
                    max_time = \"1h\"\nmax_share = 1\n";
    let proxy = serving(ROUTES)
        .settings(&pool(&[bad.address(), web.address()], ejection))
        .start();
    // A client that doesn't wait for its answer, from the target that is well.
    let slow = || {
        web.requests()
            .iter()
            .filter(|seen| seen.target() == "/slow")
            .count()
    };
    until("a request that waits", SOON, || {
        let mut client = TcpStream::connect(proxy.address()).unwrap();
        std::io::Write::write_all(&mut client, b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        until("the request upstream", SOON, || {
            slow() > 0 || bad.hits() > 0
        });
        slow() > 0
    });
    until("the client's end", SOON, || {
        proxy.metric("upstream_requests_in_flight", &[("pool", "web")]) == 0.0
    });
    let seen = bad.hits();
    until("an ejection", SOON, || {
        let status = proxy.get("/x").status;
        assert!(status == 200 || status == 500, "{status}");
        !is_used(&proxy, bad.address())
    });
    assert!(bad.hits() >= 3 && bad.hits() >= seen);
    let hits = bad.hits();
    for _ in 0..20 {
        assert_eq!(proxy.text("/x"), "ok");
    }
    assert_eq!(bad.hits(), hits);
    assert_eq!(
        (ejections(&proxy, "5xx"), ejections(&proxy, "failures")),
        (1.0, 0.0)
    );
    let told = told(&proxy, bad.address());
    assert_eq!(told["ejected"], "5xx", "{told}");
    assert_eq!(told["last_failure"], "status 500", "{told}");
    gate.open();
}

#[test]
fn broken_answers_and_cut_connections_count() {
    let garbage = Upstream::start(|_| Action::BytesThenClose(b"nonsense\r\n\r\n".to_vec()));
    let hangs_up = Upstream::start(|_| Action::Hangup);
    let web = [Upstream::fixed("ok"), Upstream::fixed("ok")];
    let ejection =
        "[pools.web.ejection]\nconsecutive_failures = 2\nbase_time = \"1h\"\nmax_time = \"1h\"\n";
    let targets = [
        garbage.address(),
        hangs_up.address(),
        web[0].address(),
        web[1].address(),
    ];
    let proxy = serving(ROUTES).settings(&pool(&targets, ejection)).start();
    until("two ejections", SOON, || {
        proxy.get("/x");
        !is_used(&proxy, targets[0]) && !is_used(&proxy, targets[1])
    });
    for _ in 0..20 {
        assert_eq!(proxy.text("/x"), "ok");
    }
    assert_eq!(told(&proxy, targets[0])["last_failure"], "malformed answer");
    let cut = told(&proxy, targets[1])["last_failure"].clone();
    assert_eq!(cut, "connection closed before an answer");
}

#[test]
fn an_answer_that_is_late_counts() {
    let gate = Gate::new();
    let door = gate.clone();
    let slow = Upstream::start(move |_| {
        door.pass(SOON);
        ok("late")
    });
    let web = Upstream::fixed("ok");
    let tables = "[pools.web.ejection]\nconsecutive_failures = 1\nbase_time = \"1h\"\nmax_time = \"1h\"\n\
                  [pools.web.timeouts]\nread = \"200ms\"\n";
    let proxy = serving(ROUTES)
        .settings(&pool(&[slow.address(), web.address()], tables))
        .start();
    until("an ejection", SOON, || {
        proxy.get("/x");
        !is_used(&proxy, slow.address())
    });
    assert_eq!(
        told(&proxy, slow.address())["last_failure"],
        "no answer in time"
    );
    gate.open();
}

#[test]
fn calls_of_hooks_count_too() {
    let (gone, web) = (closed(), Upstream::fixed("ok"));
    let ejection =
        "[pools.web.ejection]\nconsecutive_failures = 2\nbase_time = \"1h\"\nmax_time = \"1h\"\n";
    let proxy = serving(
        r#"
        route("/").respond(500).on_request(|req| {
            return respond(200, fetch("web", #{ path: "/" }).body().text());
        });
        "#,
    )
    .settings(&pool(&[gone, web.address()], ejection))
    .start();
    until("an ejection", SOON, || {
        assert_eq!(proxy.text("/"), "ok");
        !is_used(&proxy, gone)
    });
    assert_eq!(ejections(&proxy, "failures"), 1.0);
}

#[test]
fn no_more_than_the_share_is_ejected() {
    let (one, two) = (closed(), closed());
    let ejection =
        "[pools.web.ejection]\nconsecutive_failures = 1\nbase_time = \"1h\"\nmax_time = \"1h\"\n";
    let proxy = serving(ROUTES)
        .settings(&pool(&[one, two], ejection))
        .start();
    until("an ejection that is spared", SOON, || {
        assert_eq!(proxy.get("/x").status, 502);
        proxy.metric("upstream_ejections_spared_total", &[("pool", "web")]) >= 1.0
    });
    assert!(is_used(&proxy, one) != is_used(&proxy, two));
    assert_eq!(ejections(&proxy, "failures"), 1.0);
    assert_eq!(proxy.metric("upstream_panic", &[("pool", "web")]), 0.0);
}

#[test]
fn when_all_fail_all_are_used_unless_that_is_switched_off() {
    let says = Arc::new(AtomicU16::new(500));
    let (one, two) = (checked("one", &says), checked("two", &says));
    let check = "[pools.web.health]\npath = \"/healthz\"\ninterval = \"100ms\"\ntimeout = \"20s\"\nhealthy = 1\n";
    let targets = [one.address(), two.address()];
    let proxy = serving(ROUTES).settings(&pool(&targets, check)).start();
    until("panic", SOON, || {
        proxy.metric("upstream_panic", &[("pool", "web")]) == 1.0
    });
    assert_eq!(proxy.status()["pools"][0]["panic"], true);
    proxy.log.wait("upstream panic pool=web", SOON);
    let mut connection = Connection::open(proxy.address()).unwrap();
    for _ in 0..4 {
        assert_eq!(connection.send(&get("/x")).unwrap().status, 200);
    }
    assert_eq!((served(&one), served(&two)), (2, 2));
    assert_eq!(proxy.ask_health("/readyz").status, 200);

    let strict = format!("{check}[pools.web.ejection]\nmax_share = 1\n");
    let proxy = serving(ROUTES).settings(&pool(&targets, &strict)).start();
    until("nobody to be left", SOON, || proxy.get("/x").status == 503);
    let refused = proxy.get("/x");
    assert!(
        refused
            .text()
            .contains("all targets are ejected or unhealthy"),
        "{}",
        refused.text()
    );
    // What is wrong with upstreams is no reason to take the proxy out.
    assert_eq!(proxy.ask_health("/readyz").status, 200);
    assert_eq!(proxy.metric("upstream_panic", &[("pool", "web")]), 0.0);
    says.store(200, Ordering::SeqCst);
    until("them to be well", SOON, || proxy.get("/x").status == 200);
}

#[test]
fn checks_of_a_pool_that_is_gone_end() {
    let says = Arc::new(AtomicU16::new(200));
    let (old, new) = (checked("old", &says), checked("new", &says));
    let check =
        "[pools.web.health]\npath = \"/healthz\"\ninterval = \"100ms\"\ntimeout = \"20s\"\n";
    let proxy = serving(ROUTES)
        .settings(&pool(&[old.address()], check))
        .start();
    old.wait_hits(2, SOON);
    let settings = proxy
        .settings()
        .replace(&old.address().to_string(), &new.address().to_string());
    std::fs::write(proxy.file("edgewright.toml"), settings).unwrap();
    assert_eq!(proxy.reload().0, 200);
    new.wait_hits(1, SOON);
    // What was under way may still arrive; the checks of the new target are the clock.
    let hits = old.hits();
    let more = new.hits() + 5;
    new.wait_hits(more, SOON);
    assert!(old.hits() <= hits + 1, "{} and {hits}", old.hits());
    let text = proxy.ask_admin("/metrics").text();
    assert!(
        !text.contains(&format!("endpoint=\"{}\"", old.address())),
        "{text}"
    );
}

#[test]
fn a_check_that_hangs_times_out() {
    // Accepts by its backlog, and never says anything.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = listener.local_addr().unwrap();
    let web = Upstream::fixed("ok");
    let check = "[pools.web.health]\npath = \"/\"\ninterval = \"100ms\"\ntimeout = \"200ms\"\nunhealthy = 1\n\
                 [pools.web.ejection]\nconsecutive_failures = 0\n";
    let proxy = serving(ROUTES)
        .settings(&pool(&[silent, web.address()], check))
        .start();
    until("a timeout", SOON, || {
        let labels = [("pool", "web"), ("result", "timeout")];
        proxy.metric("health_checks_total", &labels) >= 1.0
    });
    until("the verdict", SOON, || {
        told(&proxy, silent)["healthy"] == false
    });
    assert_eq!(
        told(&proxy, silent)["last_failure"],
        "check: no answer within 200ms"
    );
    // The connection of the check is closed, not kept.
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let mut request = Vec::new();
    stream.read_to_end(&mut request).unwrap();
    assert!(request.starts_with(b"GET / HTTP/1.1\r\n"));
}
