//! `[pools.NAME.retries]` and `.retries`: what is tried again, on which target, and what never is.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::client::{Connection, Request, get, post, request};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::{Action, Upstream, answer, ok};
use crate::support::wait::{Gate, SOON, until};

const ROUTES: &str = r#"
    route("/never").retries(0).to("web");
    route("/once").retries(1, #{ on: ["503", "connect"] }).to("web");
    route("/{*rest}").to("web");
"#;

/// A pool of these targets in turn, with these lines in `[pools.web.retries]`.
fn proxy(targets: &[&Upstream], retries: &str) -> Proxy {
    let targets: Vec<_> = targets
        .iter()
        .map(|web| web.address().to_string())
        .collect();
    serving(ROUTES)
        .settings(&format!(
            "[pools.web]\ntargets = {targets:?}\nbalance = \"round_robin\"\n\
             [pools.web.retries]\nbackoff = \"1ms\"\n{retries}"
        ))
        .start()
}

fn saying(status: u16) -> Upstream {
    Upstream::start(move |_| answer(status, &[("x-from", "bad")], "bad"))
}

fn retried(proxy: &Proxy, cause: &str) -> f64 {
    proxy.metric(
        "upstream_retries_total",
        &[("pool", "web"), ("cause", cause)],
    )
}

fn failed(proxy: &Proxy, reason: &str) -> f64 {
    let labels = [("pool", "web"), ("reason", reason)];
    proxy.metric("upstream_errors_total", &labels)
}

#[test]
fn a_status_is_tried_again_on_another_target() {
    for status in [502, 503, 504] {
        let bad = saying(status);
        let good = Upstream::fixed("good");
        let proxy = proxy(&[&bad, &good], &format!("on = [\"{status}\"]"));
        for _ in 0..10 {
            assert_eq!(proxy.text("/x"), "good", "{status}");
        }
        assert_eq!(good.hits(), 10);
        let cause = status.to_string();
        assert_eq!(retried(&proxy, &cause), bad.hits() as f64);
        assert!(bad.hits() >= 3, "{} hits", bad.hits());
        // What the upstream said is no failure of the request.
        assert!(
            !proxy
                .ask_admin("/metrics")
                .text()
                .contains("upstream_errors_total{")
        );
    }
}

#[test]
fn statuses_that_were_not_named_pass() {
    let bad = saying(503);
    let good = Upstream::fixed("good");
    let proxy = proxy(&[&bad, &good], "on = [\"connect\", \"reset\", \"502\"]");
    let answers: Vec<_> = (0..6).map(|_| proxy.get("/x").status).collect();
    assert_eq!(answers.iter().filter(|status| **status == 503).count(), 3);
    assert_eq!((bad.hits(), good.hits()), (3, 3));
}

#[test]
fn a_body_goes_along_and_a_post_is_sent_once() {
    let bad = saying(503);
    let good = Upstream::start(|seen| ok(&seen.body));
    let proxy = proxy(&[&bad, &good], "on = [\"503\"]");
    let body = "x".repeat(20_000);
    for number in 0..6 {
        let put = request("PUT", &format!("/put/{number}")).body(body.clone());
        assert_eq!(proxy.send(&put).text(), body);
    }
    let put = good
        .requests()
        .into_iter()
        .filter(|seen| seen.method() == "PUT");
    assert!(
        put.map(|seen| seen.body)
            .all(|seen| seen == body.as_bytes())
    );
    bad.take_requests();
    good.take_requests();
    for number in 0..6 {
        let status = proxy
            .send(&post(&format!("/post/{number}"), body.clone()))
            .status;
        assert!(matches!(status, 200 | 503), "{status}");
    }
    assert_eq!(bad.hits() + good.hits(), 6, "a POST was sent twice");
    assert!(bad.hits() > 0);
}

/// Pingora keeps 64 KiB of a body to send them again.
#[test]
fn a_body_that_was_not_kept_is_not_sent_again() {
    let bad = saying(503);
    let proxy = proxy(&[&bad], "on = [\"503\"]\nattempts = 3");
    let put = request("PUT", "/large").body("x".repeat(100_000));
    assert_eq!(proxy.send(&put).status, 503);
    assert_eq!(bad.hits(), 1);
}

/// Nothing stands in the buffer then, and Pingora would not send the end of it again.
#[test]
fn an_empty_body_in_chunks_holds_nothing_up() {
    let bad = saying(503);
    let good = Upstream::fixed("good");
    let proxy = proxy(&[&bad, &good], "on = [\"503\"]");
    for _ in 0..4 {
        let mut connection = Connection::open(proxy.address()).unwrap();
        connection
            .write(
                b"PUT /x HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            )
            .unwrap();
        let status = connection.read_response("PUT").unwrap().status;
        assert!(matches!(status, 200 | 503), "{status}");
    }
}

#[test]
fn attempts_are_bounded_and_the_last_answer_is_the_clients() {
    let bad = saying(503);
    let proxy = proxy(&[&bad], "on = [\"503\"]\nattempts = 10\nmin_retries = 10");
    let last = proxy.get("/x");
    assert_eq!((last.status, last.text().as_str()), (503, "bad"));
    assert_eq!(last.header("x-from"), Some("bad"));
    assert_eq!(bad.hits(), 11);
    assert_eq!(retried(&proxy, "503"), 10.0);
}

#[test]
fn a_route_says_otherwise() {
    let bad = saying(503);
    let proxy = proxy(&[&bad], "on = [\"502\"]\nattempts = 3");
    for (target, hits) in [("/never", 1), ("/once", 2), ("/x", 1)] {
        assert_eq!(proxy.get(target).status, 503);
        assert_eq!(bad.take_requests().len(), hits, "{target}");
    }
    let closed = crate::support::ports::free([127, 0, 0, 1].into(), 1)[0];
    let proxy = serving(ROUTES).pool("web", closed).start();
    for (target, attempts) in [("/never", 1.0), ("/once", 2.0), ("/x", 3.0)] {
        let before = proxy.metric("upstream_connect_failures_total", &[]);
        assert_eq!(proxy.get(target).status, 502);
        let after = proxy.metric("upstream_connect_failures_total", &[]);
        assert_eq!(after - before, attempts, "{target}");
    }
    assert_eq!(failed(&proxy, "connect"), 3.0);
}

#[test]
fn a_connection_that_breaks_is_tried_again_where_that_is_asked_for() {
    let broken = Upstream::start(|_| Action::Hangup);
    let good = Upstream::fixed("good");
    let never = proxy(&[&broken], "");
    assert_eq!(never.get("/x").status, 502);
    assert_eq!(broken.take_requests().len(), 1);
    assert_eq!(failed(&never, "reset"), 1.0);
    let proxy = proxy(&[&broken, &good], "on = [\"reset\"]");
    for _ in 0..6 {
        assert_eq!(proxy.text("/x"), "good");
    }
    assert_eq!(retried(&proxy, "reset"), broken.hits() as f64);
    for number in 0..6 {
        proxy.send(&post(&format!("/post/{number}"), "once"));
    }
    let mut copies: HashMap<String, usize> = HashMap::new();
    for seen in broken.requests().iter().chain(&good.requests()) {
        *copies
            .entry(format!("{} {}", seen.method(), seen.target()))
            .or_default() += 1;
    }
    let posts = copies.iter().filter(|(line, _)| line.starts_with("POST"));
    assert!(
        posts.clone().count() == 6 && posts.into_iter().all(|(_, n)| *n == 1),
        "{copies:?}"
    );
}

#[test]
fn a_slow_first_byte_is_tried_again() {
    let gate = Gate::new();
    let held = gate.clone();
    let hits = AtomicUsize::new(0);
    let web = Upstream::start(move |_| {
        if hits.fetch_add(1, Ordering::SeqCst) == 0 {
            held.pass(3 * SOON);
        }
        ok("second")
    });
    let targets = format!("targets = [\"{}\"]", web.address());
    let proxy = serving(ROUTES)
        .settings(&format!(
            "[pools.web]\n{targets}\n[pools.web.timeouts]\nfirst_byte = \"2s\"\n\
             [pools.web.retries]\non = [\"timeout\"]"
        ))
        .start();
    assert_eq!(proxy.text("/x"), "second");
    assert_eq!(retried(&proxy, "timeout"), 1.0);
    gate.open();
}

/// Says 503 to the first request of each target, then waits for the gate.
fn second_time_held(gate: &Gate) -> Upstream {
    let gate = gate.clone();
    let seen: Mutex<HashMap<String, usize>> = Mutex::default();
    Upstream::start(move |request| {
        let nth = {
            let mut seen = seen.lock().unwrap();
            let nth = seen.entry(request.target()).or_default();
            *nth += 1;
            *nth
        };
        if nth == 1 {
            return match request.target().starts_with("/reset") {
                true => Action::Hangup,
                // A kept connection that breaks would be another case.
                false => answer(503, &[("Connection", "close")], "busy"),
            };
        }
        gate.pass(3 * SOON);
        ok("in the end")
    })
}

fn send(proxy: &Proxy, request: Request) -> std::thread::JoinHandle<(u16, String)> {
    let address = proxy.address();
    std::thread::spawn(move || {
        let response = request.send(address);
        (response.status, response.text())
    })
}

#[test]
fn the_budget_bounds_what_is_under_way() {
    let gate = Gate::new();
    let web = second_time_held(&gate);
    let proxy = proxy(
        &[&web],
        "on = [\"503\", \"reset\"]\nbudget = 0.0\nmin_retries = 2",
    );
    let held = [send(&proxy, get("/one")), send(&proxy, get("/two"))];
    web.wait_hits(4, SOON);
    assert_eq!(
        proxy.metric("upstream_retries_in_flight", &[("pool", "web")]),
        2.0
    );
    assert_eq!(proxy.status()["pools"][0]["retries_in_flight"], 2);
    // An answer is given to the client instead, a failure is told with what it was.
    let third = proxy.get("/three");
    assert_eq!((third.status, third.text().as_str()), (503, "busy"));
    let fourth = proxy.get("/reset/four");
    assert_eq!(fourth.status, 502);
    assert_eq!(
        fourth.text(),
        "502 the upstream broke the connection off; no retry, since the retry budget is spent\n"
    );
    assert_eq!(failed(&proxy, "retry_budget"), 1.0);
    assert_eq!(
        proxy.metric("upstream_retries_refused_total", &[("pool", "web")]),
        2.0
    );
    proxy.log.wait("reason=retry_budget", SOON);
    gate.open();
    for held in held {
        assert_eq!(held.join().unwrap(), (200, "in the end".to_owned()));
    }
    // Over as soon as the response header has come.
    until("no retry to be under way", SOON, || {
        proxy.metric("upstream_retries_in_flight", &[]) == 0.0
    });
    assert_eq!(proxy.text("/five"), "in the end");
}

#[test]
fn the_budget_outlives_a_reload() {
    let gate = Gate::new();
    let web = second_time_held(&gate);
    let proxy = proxy(&[&web], "on = [\"503\"]\nbudget = 0.0\nmin_retries = 1");
    let held = send(&proxy, get("/one"));
    web.wait_hits(2, SOON);
    let settings = proxy.settings().replace("\"1ms\"", "\"2ms\"");
    std::fs::write(proxy.file("edgewright.toml"), settings).unwrap();
    assert_eq!(proxy.reload().0, 200);
    until("the new settings to serve", SOON, || {
        proxy.status()["pools"][0]["retries_in_flight"] == 1
    });
    assert_eq!(proxy.get("/two").status, 503);
    gate.open();
    assert_eq!(held.join().unwrap().0, 200);
}

/// The first sign of life that a client got was the first target's.
#[test]
fn nothing_is_tried_again_after_an_interim_response() {
    let web = Upstream::start(|_| {
        Action::Write(Box::new(|stream| {
            stream.write_all(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")?;
            stream.write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy")
        }))
    });
    let proxy = proxy(&[&web], "on = [\"503\"]");
    assert_eq!(proxy.get("/x").status, 503);
    assert_eq!(web.hits(), 1);
}

#[test]
fn a_function_is_asked_where_the_next_attempt_goes() {
    let bad = saying(503);
    let good = Upstream::fixed("good");
    let proxy = serving(
        r#"
        route("/").retries(2, #{ on: ["503"] }).to(|req, attempt| {
            if attempt.number == 1 { return "main"; }
            req.set_header("x-attempt", `${attempt.number} ${attempt.last_error}`);
            "backup"
        });
        "#,
    )
    .pool("main", bad.address())
    .pool("backup", good.address())
    .start();
    assert_eq!(proxy.text("/"), "good");
    assert_eq!(good.only_request().headers("x-attempt"), ["2 503"]);
}

#[test]
fn the_time_of_a_route_bounds_all_attempts() {
    let bad = saying(503);
    let proxy = serving(r#"route("/{*rest}").timeout("500ms").to("web");"#)
        .settings(&format!(
            "[pools.web]\ntargets = [\"{}\"]\n[pools.web.retries]\non = [\"503\"]\nattempts = 10\nmin_retries = 10\n\
             backoff = \"300s\"\nmax_backoff = \"300s\"",
            bad.address()
        ))
        .start();
    // A pause is drawn from 0 to 300 s: one of less than half a second is rare, ten of them do not happen.
    assert_eq!(proxy.get("/x").status, 504);
    assert_eq!(failed(&proxy, "route_timeout"), 1.0);
}

#[test]
fn a_client_that_leaves_ends_a_pause() {
    let bad = saying(503);
    let proxy = proxy(
        &[&bad],
        "on = [\"503\"]\nattempts = 10\nmin_retries = 10\nmax_backoff = \"300s\"",
    );
    // The pauses double; the last ones would take minutes.
    std::fs::write(
        proxy.file("edgewright.toml"),
        proxy
            .settings()
            .replace("backoff = \"1ms\"", "backoff = \"300s\""),
    )
    .unwrap();
    assert_eq!(proxy.reload().0, 200);
    until("a request to wait", SOON, || {
        let mut connection = Connection::open(proxy.address()).unwrap();
        let before = bad.hits();
        connection.write(&get("/x").bytes()).unwrap();
        bad.wait_hits(before + 1, SOON);
        drop(connection);
        true
    });
    until("nothing to be in flight", SOON, || {
        proxy.metric("requests_in_flight", &[]) == 0.0
            && proxy.metric("upstream_retries_in_flight", &[]) == 0.0
    });
}
