//! How long a configuration stays in memory: as long as something uses it, and no longer.

use std::io::Read as _;

use crate::support::client::{Connection, get};
use crate::support::launch::serving;
use crate::support::upstream::{Action, Upstream, ok};
use crate::support::versions::{generations, put_in_force, replace, version, wait_generations};
use crate::support::wait::SOON;

#[test]
fn a_worker_without_requests_holds_no_old_one() {
    let web = Upstream::fixed("ok");
    let proxy = serving(&version("v0"))
        .pool("web", web.address())
        .settings("[server]\nthreads = 4")
        .start();
    // With hooks, on all workers, over connections that stay open.
    let mut idle: Vec<_> = (0..32)
        .map(|_| Connection::open(proxy.address()).unwrap())
        .collect();
    for connection in &mut idle {
        assert_eq!(connection.send(&get("/")).unwrap().status, 200);
    }
    for number in 1..=5 {
        put_in_force(&proxy, &format!("v{number}"));
    }
    wait_generations(&proxy, 1);
    assert_eq!(proxy.status()["generations"], 1);
    for connection in &mut idle {
        let response = connection.send(&get("/")).unwrap();
        assert_eq!(response.header("x-version"), Some("v5"));
    }
}

#[test]
fn a_connection_that_says_nothing_holds_one_only_as_long_as_it_may() {
    let web = Upstream::fixed("ok");
    let proxy = serving(&version("v0"))
        .pool("web", web.address())
        .listener("http2 = true")
        .start();
    // Half of the preface: the proxy waits for the rest, by the limits of the generation.
    let mut half = Connection::open(proxy.address()).unwrap();
    half.write(b"PRI * HT").unwrap();
    assert_eq!(proxy.get("/").status, 200);
    put_in_force(&proxy, "v1");
    wait_generations(&proxy, 2);
    drop(half);
    wait_generations(&proxy, 1);
}

#[test]
fn background_hooks_end_with_theirs() {
    let web = Upstream::start(|seen| {
        if seen.target() == "/never" {
            // Nothing is answered: the hook waits until it is cancelled.
            return Action::Write(Box::new(|stream| {
                let _ = stream.read(&mut [0; 16]);
                Ok(())
            }));
        }
        ok("ok")
    });
    let waiting = r#"
        every("30s", || fetch("web", #{ path: "/never", timeout: "60s" }));
        route("/{*rest}").to("web");
    "#;
    let proxy = serving(waiting)
        .pool("web", web.address())
        .settings("[script]\nfetch_timeout = \"60s\"")
        .start();
    web.wait_hits(1, SOON);
    put_in_force(&proxy, "v1");
    wait_generations(&proxy, 1);
}

#[test]
fn a_refused_one_is_freed_at_once() {
    let web = Upstream::fixed("ok");
    let proxy = serving(&version("v0")).pool("web", web.address()).start();
    for number in 0..5 {
        let bad = format!("route(\"/{number}\").to(\"nowhere\");");
        replace(&proxy, &bad);
        assert_eq!(proxy.reload().0, 422);
        assert_eq!(generations(&proxy), 1);
    }
}

/// Expressions as deep as they may be, in a program that is freed on another thread than it was made on.
#[test]
fn a_deep_program_is_freed_like_any_other() {
    let web = Upstream::fixed("ok");
    let proxy = serving(&version("v0")).pool("web", web.address()).start();
    for number in 0..3 {
        let (open, close) = ("(1 + ".repeat(60), ")".repeat(60));
        let closures = "|| ".repeat(20);
        let deep = format!(
            "route(\"/{{*rest}}\").on_request(|req| {{ let n = {open}{number}{close}; \
             let f = {closures}n; }}).to(\"web\");"
        );
        replace(&proxy, &deep);
        let (status, body) = proxy.reload();
        assert_eq!(status, 200, "{body}");
        assert_eq!(proxy.get("/").status, 200);
    }
    put_in_force(&proxy, "v1");
    wait_generations(&proxy, 1);
}
