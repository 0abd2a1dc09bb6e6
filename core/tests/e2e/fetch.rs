//! Hooks that wait for other services: nobody else does.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::client::{Connection, get, post, request};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::skip::measured;
use crate::support::upstream::{Action, Seen, Upstream, answer, ok, response};
use crate::support::wait::{Gate, SOON, until};

/// Asks `authz` about each path below `/asks`; `/plain` asks nobody.
const ROUTES: &str = r#"
route("/asks/{*rest}").on_request(gate).to("web");
route("/{*rest}").to("web");
fn gate(req) {
    let mine = req.path;
    let r = fetch("authz", #{ path: "/check" + req.path, headers: #{ "x-key": req.header("x-key") }, timeout: "60s" });
    if req.path != mine { return respond(500, "another's request"); }
    if r.status != 200 { return respond(403, `refused: ${r.status}`); }
    req.set_header("x-user", r.header("x-user"));
}
"#;

/// An upstream that answers everything at once, with the user that the proxy set.
fn web() -> Upstream {
    Upstream::start(|seen: &Seen| ok(seen.header("x-user").unwrap_or_default()))
}

/// What `authz` says of a request: the user is called after the path.
fn user(seen: &Seen) -> Vec<u8> {
    let target = seen.target();
    response(200, &[("x-user", &target)], "fine")
}

/// An `authz` that answers when the gate opens.
fn slow(gate: &Gate) -> Upstream {
    let gate = gate.clone();
    Upstream::start(move |seen| {
        let (gate, answer) = (gate.clone(), user(seen));
        Action::Write(Box::new(move |stream| {
            gate.pass(SOON);
            stream.write_all(&answer)
        }))
    })
}

fn waiting(proxy: &Proxy) -> f64 {
    proxy.metric("script_waiting_hooks", &[])
}

/// Resident memory in bytes.
fn resident(proxy: &Proxy) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{}/statm", proxy.pid())).unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn a_hook_goes_on_where_it_stopped() {
    let web = web();
    let authz = Upstream::start(|seen| match seen.header("x-key").as_deref() {
        Some("good") => Action::Bytes(user(seen)),
        _ => answer(401, &[], "who?"),
    });
    let proxy = serving(ROUTES)
        .settings("[server]\nthreads = 1")
        .pool("web", web.address())
        .pool("authz", authz.address())
        .start();
    let good = proxy.send(&get("/asks/me").header("x-key", "good"));
    assert_eq!((good.status, good.text()), (200, "/check/asks/me".into()));
    let bad = proxy.send(&get("/asks/me").header("x-key", "bad"));
    assert_eq!((bad.status, bad.text()), (403, "refused: 401".into()));
    assert_eq!(proxy.get("/asks/me").status, 403, "without a key");
    // Everything that could be observed happened once.
    assert_eq!((authz.hits(), web.hits()), (3, 1));
    let asked = &authz.requests()[0];
    assert_eq!((asked.method(), asked.body.len()), ("GET".into(), 0));
    assert_eq!(authz.requests()[2].header("x-key"), None);
    // The connection to authz is kept.
    assert_eq!(authz.requests()[2].connection, 0);
}

#[test]
fn a_service_that_is_away_keeps_the_gate_closed() {
    let web = web();
    let gone = Upstream::fixed("").address();
    let mut proxy = serving(ROUTES)
        .pool("web", web.address())
        .pool("authz", gone)
        .start();
    let refused = proxy.get("/asks/me");
    assert_eq!(
        (refused.status, refused.text()),
        (403, "refused: 502".into())
    );
    assert_eq!(web.hits(), 0);
    assert!(proxy.running());
}

/// Two hundred requests wait at once; others are served, the program is replaced, and each gets the
/// answer to its own question from the program that it began with.
#[test]
fn two_hundred_wait_and_nobody_else_does() {
    const WAITING: usize = 200;
    let web = web();
    let gate = Gate::new();
    let authz = slow(&gate);
    let proxy = serving(ROUTES)
        .pool("web", web.address())
        .pool("authz", authz.address())
        .start();
    // Both ways have been gone once.
    assert_eq!(proxy.get("/plain").status, 200);
    let before = resident(&proxy);
    let mut clients: Vec<_> = (0..WAITING)
        .map(|number| {
            let mut client = Connection::open(proxy.address()).unwrap();
            client
                .write(&get(&format!("/asks/{number}")).bytes())
                .unwrap();
            client
        })
        .collect();
    until("all hooks wait", SOON, || waiting(&proxy) == WAITING as f64);
    until("all calls are made", SOON, || authz.hits() == WAITING);

    let grown = resident(&proxy).saturating_sub(before) / WAITING as u64;
    measured(
        "memory per suspended hook",
        &format!("{} KiB, its two connections included", grown / 1024),
    );
    // A client and an upstream connection hold 64 KiB buffers each.
    assert!(grown < 400 * 1024, "{grown} bytes for each waiting request");

    for _ in 0..50 {
        assert_eq!(proxy.get("/plain").status, 200);
    }
    let changed = ROUTES.replace("respond(403,", "respond(418,");
    std::fs::write(proxy.file("routes.rhai"), changed).unwrap();
    assert_eq!(proxy.reload().0, 200);
    assert_eq!(proxy.get("/plain").status, 200);
    assert_eq!(waiting(&proxy), WAITING as f64, "a reload ends nobody");

    gate.open();
    for (number, client) in clients.iter_mut().enumerate() {
        let answer = client.read_response("GET").unwrap();
        let expected = format!("/check/asks/{number}");
        assert_eq!((answer.status, answer.text()), (200, expected));
    }
    assert_eq!(waiting(&proxy), 0.0);
    // The same connections, through the new program.
    for client in &mut clients[..3] {
        assert_eq!(client.send(&get("/asks/again")).unwrap().status, 200);
    }
    assert_eq!(proxy.log.count("panicked"), 0);
}

#[test]
fn a_client_that_leaves_takes_its_hook_along() {
    let web = web();
    let closed = Gate::new();
    let seen_closed = closed.clone();
    let authz = Upstream::start(move |_| {
        let closed = seen_closed.clone();
        Action::Write(Box::new(move |stream: &mut TcpStream| {
            stream.set_read_timeout(Some(SOON))?;
            // Never answers, and sees the call being given up.
            if stream.read(&mut [0])? == 0 {
                closed.open();
            }
            Ok(())
        }))
    });
    let proxy = serving(ROUTES)
        .pool("web", web.address())
        .pool("authz", authz.address())
        .start();
    let mut client = Connection::open(proxy.address()).unwrap();
    client.write(&get("/asks/me").bytes()).unwrap();
    until("the hook waits", SOON, || waiting(&proxy) == 1.0);
    drop(client);
    assert!(closed.pass(SOON), "the call was not given up");
    until("the hook is gone", SOON, || waiting(&proxy) == 0.0);
    until("it is counted", SOON, || {
        let labels = [("route", "/asks/{*rest}"), ("status", "499")];
        proxy.metric("requests_total", &labels) == 1.0
    });
    assert_eq!(web.hits(), 0);
    assert_eq!(proxy.get("/plain").status, 200);
    assert_eq!(proxy.log.count("script failure"), 0);
}

#[test]
fn what_a_client_sends_meanwhile_is_not_lost() {
    let web = Upstream::start(|seen| ok(&seen.body));
    let gate = Gate::new();
    let authz = slow(&gate);
    let proxy = serving(ROUTES)
        .pool("web", web.address())
        .pool("authz", authz.address())
        .start();
    let mut client = Connection::open(proxy.address()).unwrap();
    let whole = post("/asks/me", "first second").bytes();
    let (begin, rest) = whole.split_at(whole.len() - 6);
    client.write(begin).unwrap();
    until("the hook waits", SOON, || waiting(&proxy) == 1.0);
    client.write(rest).unwrap();
    until("the hook still waits", SOON, || waiting(&proxy) == 1.0);
    gate.open();
    let first = client.read_response("POST").unwrap();
    assert_eq!((first.status, first.text()), (200, "first second".into()));
}

#[test]
fn the_end_of_the_process_waits_for_hooks_that_wait() {
    let web = web();
    let gate = Gate::new();
    let authz = slow(&gate);
    let mut proxy = serving(ROUTES)
        .pool("web", web.address())
        .pool("authz", authz.address())
        .start();
    let mut client = Connection::open(proxy.address()).unwrap();
    client.write(&get("/asks/me").bytes()).unwrap();
    until("the hook waits", SOON, || waiting(&proxy) == 1.0);
    proxy.signal("TERM");
    proxy.log.wait("shutting down", SOON);
    gate.open();
    assert_eq!(client.read_response("GET").unwrap().status, 200);
    assert_eq!(proxy.wait_exit(SOON).0.code(), Some(0));
}

#[test]
fn other_hooks_wait_too() {
    let web = web();
    let authz = Upstream::start(|seen| answer(200, &[], seen.target()));
    let other = Upstream::fixed("other");
    let routes = format!(
        r#"
route("/to").to(|req| if fetch("authz", #{{ path: "/to" }}).body().text() == "/to" {{ "other" }} else {{ "web" }});
route("/response").on_response(|req, res| {{
    let r = fetch_all([#{{ to: "authz", path: "/a" }}, "http://{}/b?c"]);
    res.set_header("x-a", r[0].body().text());
    res.set_header("x-b", r[1].body().text());
}}).to("web");
route("/local").on_response(|req, res| {{ res.set_header("x-a", fetch("authz").body().text()); }}).respond(200, "local");
route("/refused").on_response(|req, res| {{
    if fetch("authz").status == 200 {{ return respond(451, "no"); }}
}}).to("web");
"#,
        authz.address()
    );
    let proxy = serving(&routes)
        .pool("web", web.address())
        .pool("other", other.address())
        .pool("authz", authz.address())
        .start();
    assert_eq!(proxy.text("/to"), "other");
    let response = proxy.get("/response");
    assert_eq!(response.status, 200);
    assert_eq!(
        (response.header("x-a"), response.header("x-b")),
        (Some("/a"), Some("/b?c"))
    );
    let local = proxy.get("/local");
    assert_eq!(
        (local.header("x-a"), local.text()),
        (Some("/"), "local".into())
    );
    let refused = proxy.get("/refused");
    assert_eq!((refused.status, refused.text()), (451, "no".into()));
    let head = proxy.send(&request("HEAD", "/local"));
    assert_eq!((head.header("x-a"), head.body.len()), (Some("/"), 0));
}

#[test]
fn calls_and_waiting_hooks_are_bounded() {
    let web = web();
    let gate = Gate::new();
    let authz = slow(&gate);
    let routes = format!(
        "{ROUTES}\nroute(\"/many\").on_request(|req| {{ for n in 0..3 {{ let r = fetch(\"quick\"); }} }}).to(\"web\");"
    );
    let quick = Upstream::fixed("quick");
    let proxy = serving(&routes)
        .settings("[script]\nwaiting = 2\nfetches = 2")
        .pool("web", web.address())
        .pool("authz", authz.address())
        .pool("quick", quick.address())
        .start();
    assert_eq!(proxy.get("/many").status, 500);
    let line = proxy.log.wait("script failure route=/many", SOON);
    assert!(
        line.contains("kind=waiting") && line.contains("[script] fetches"),
        "{line}"
    );
    assert!(line.contains("at=routes.rhai:12:59 "), "{line}");
    assert_eq!(quick.hits(), 2);
    assert_eq!(
        proxy.metric("limit_hits_total", &[("limit", "fetches")]),
        1.0
    );

    let mut waits: Vec<_> = (0..2)
        .map(|_| {
            let mut client = Connection::open(proxy.address()).unwrap();
            client.write(&get("/asks/me").bytes()).unwrap();
            client
        })
        .collect();
    until("two hooks wait", SOON, || waiting(&proxy) == 2.0);
    assert_eq!(proxy.get("/asks/me").status, 500);
    let line = proxy.log.wait("script failure route=/asks", SOON);
    assert!(
        line.contains("kind=waiting") && line.contains("[script] waiting"),
        "{line}"
    );
    assert_eq!(
        proxy.metric("limit_hits_total", &[("limit", "waiting")]),
        1.0
    );
    gate.open();
    for client in &mut waits {
        assert_eq!(client.read_response("GET").unwrap().status, 200);
    }
    assert_eq!(proxy.get("/asks/me").status, 200, "there is room again");
}

#[test]
fn an_answer_that_is_too_large_or_too_late_is_none() {
    let web = web();
    let gate = Gate::new();
    let late = slow(&gate);
    let large = Upstream::start(|_| ok("x".repeat(5000)));
    let routes = r#"
route("/large").on_request(|req| { let r = fetch("large"); respond(r.status, r.error) }).to("web");
route("/late").on_request(|req| { let r = fetch("late"); respond(r.status, r.error) }).to("web");
"#;
    let proxy = serving(routes)
        .settings("[script]\nfetch_body = \"4KiB\"\nfetch_timeout = \"100ms\"")
        .pool("web", web.address())
        .pool("large", large.address())
        .pool("late", late.address())
        .start();
    let large = proxy.get("/large");
    assert_eq!(large.status, 502, "{}", large.text());
    assert!(large.text().contains("large"), "{}", large.text());
    let late = proxy.get("/late");
    assert_eq!(late.status, 504, "{}", late.text());
    assert!(late.text().contains("late"), "{}", late.text());
    gate.open();
}

/// One cancelled request must not leave calls behind that call each other for ever.
#[test]
fn a_hook_that_calls_its_own_route_ends() {
    let routes = r#"
route("/one").on_request(|req| {
    let r = fetch(`http://${req.header("host")}/one`);
    if r.error != () { return respond(r.status, r.error); }
    respond(r.status, r.body())
}).respond(200, "never");
"#;
    let proxy = serving(routes).start();
    let itself = get("/one").host(&proxy.address().to_string());
    let answer = proxy.send(&itself);
    assert_eq!(answer.status, 503);
    assert!(answer.text().contains("in circles"), "{}", answer.text());
    let all = || {
        let labels = [("route", "/one")];
        ["503", "499"]
            .map(|status| proxy.metric("requests_total", &[labels[0], ("status", status)]))
            .iter()
            .sum::<f64>()
    };
    until("all are counted", SOON, || all() == 4.0);
    for _ in 0..20 {
        let mut client = Connection::open(proxy.address()).unwrap();
        client.write(&itself.bytes()).unwrap();
    }
    until("nothing runs any more", SOON, || {
        proxy.metric("requests_in_flight", &[]) == 0.0 && waiting(&proxy) == 0.0
    });
    assert!(all() <= 4.0 + 20.0 * 4.0, "{} requests", all());
}

#[test]
fn answers_count_with_what_waiting_hooks_hold() {
    let gate = Gate::new();
    let slow = slow(&gate);
    let big = Upstream::start(|_| ok("x".repeat(900 * 1024)));
    let routes = r#"
route("/hold").on_request(|req| {
    let big = fetch("big");
    if big.error != () { return respond(big.status, big.error); }
    let other = fetch("slow", #{ timeout: "60s" });
    respond(200, `${big.body().len()}`)
}).respond(200, "never");
"#;
    let proxy = serving(routes)
        .settings("[script]\nwaiting_memory = \"1MiB\"")
        .pool("big", big.address())
        .pool("slow", slow.address())
        .start();
    let mut first = Connection::open(proxy.address()).unwrap();
    first.write(&get("/hold").bytes()).unwrap();
    until("the first waits", SOON, || slow.hits() == 1);
    assert!(proxy.metric("script_waiting_bytes", &[]) > 900.0 * 1024.0);
    let second = proxy.get("/hold");
    assert_eq!(second.status, 502, "{}", second.text());
    assert!(
        second.text().contains("waiting_memory"),
        "{}",
        second.text()
    );
    gate.open();
    assert_eq!(first.read_response("GET").unwrap().text(), "921600");
    assert_eq!(proxy.metric("script_waiting_bytes", &[]), 0.0);
    assert_eq!(proxy.get("/hold").status, 200, "there is room again");
}

/// The other requests' latency while hooks wait, and while none does.
#[test]
fn slow_calls_are_not_felt() {
    if std::env::var_os("EDGEWRIGHT_SOAK").is_none() {
        return;
    }
    let web = web();
    let authz = Upstream::start(|seen| {
        let answer = user(seen);
        Action::Write(Box::new(move |stream| {
            // The case: a service that takes two seconds.
            std::thread::sleep(Duration::from_secs(2));
            stream.write_all(&answer)
        }))
    });
    let proxy = serving(ROUTES)
        .settings("[server]\nthreads = 1")
        .pool("web", web.address())
        .pool("authz", authz.address())
        .start();
    let mut medians = [Vec::new(), Vec::new()];
    for round in 0..10 {
        let with = round % 2;
        let mut clients: Vec<_> = (0..with * 200)
            .map(|number| {
                let mut client = Connection::open(proxy.address()).unwrap();
                client
                    .write(&get(&format!("/asks/{number}")).bytes())
                    .unwrap();
                client
            })
            .collect();
        until("the hooks wait", SOON, || {
            waiting(&proxy) == clients.len() as f64
        });
        let mut plain = Connection::open(proxy.address()).unwrap();
        let mut times: Vec<_> = (0..1000)
            .map(|_| {
                let begun = std::time::Instant::now();
                assert_eq!(plain.send(&get("/plain")).unwrap().status, 200);
                begun.elapsed()
            })
            .collect();
        times.sort();
        medians[with].push(times[500]);
        for client in &mut clients {
            assert_eq!(client.read_response("GET").unwrap().status, 200);
        }
    }
    let [without, with] = medians.map(|mut all| {
        all.sort();
        all[all.len() / 2]
    });
    measured(
        "p50 of other requests",
        &format!("{without:?} while nobody waits, {with:?} while 200 hooks wait"),
    );
    assert!(with < without * 3 / 2, "{with:?} against {without:?}");
}

#[test]
fn a_call_is_made_again_as_often_as_it_asks_for() {
    let service = Upstream::start(|_| answer(503, &[], "busy"));
    let proxy = serving(
        r#"
        fn ask(path, options) { options.path = path; fetch("service", options).status }
        route("/get").on_request(|req| respond(200, `${ask("/busy", #{ retries: 2 })}`)).respond(204);
        route("/post").on_request(|req| respond(200, `${ask("/busy", #{ retries: 2, method: "POST" })}`)).respond(204);
        route("/once").on_request(|req| respond(200, `${ask("/busy", #{})}`)).respond(204);
        "#,
    )
    .pool("service", service.address())
    .start();
    for (target, hits) in [("/get", 3), ("/post", 1), ("/once", 1)] {
        assert_eq!(proxy.text(target), "503", "{target}");
        assert_eq!(service.take_requests().len(), hits, "{target}");
    }
}
