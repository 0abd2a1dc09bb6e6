//! Hooks and programs that take more than they may: each ends, and nobody else notices.

use std::time::Duration;

use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::Upstream;
use crate::support::wait::{SOON, until};

/// Bytes that the process may have held at most.
const MOST_RESIDENT: u64 = 400 * 1024 * 1024;

/// The peak of the process's resident memory, in bytes (`VmHWM`, proc_pid_status(5)).
fn peak(proxy: &Proxy) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", proxy.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 = line
        .and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok())
        .unwrap();
    kib * 1024
}

/// A program with one route for each of these bodies of a hook: `/h0`, `/h1`, ..
fn hooks(bodies: &[&str]) -> String {
    let mut routes = String::from(
        "const RE = regex(\"x\");\nfn down(n) { down(n + 1) }\nroute(\"/fine\").to(\"web\");\n",
    );
    for (number, body) in bodies.iter().enumerate() {
        routes += &format!("route(\"/h{number}\").on_request(|req| {{ {body} }}).to(\"web\");\n");
    }
    routes
}

fn failures(proxy: &Proxy, labels: &[(&str, &str)]) -> f64 {
    proxy.metric("script_failures_total", labels)
}

/// Asks for each route once: it is a 500 that names one of `kinds` in the log and counts so, and the
/// next request is served.
fn each_fails(bodies: &[&str], kinds: &[&str]) {
    let web = Upstream::fixed("ok");
    let mut proxy = serving(&hooks(bodies)).pool("web", web.address()).start();
    for (number, body) in bodies.iter().enumerate() {
        let target = format!("/h{number}");
        assert_eq!(proxy.get(&target).status, 500, "{body}");
        let line = proxy
            .log
            .wait(&format!("script failure route={target} "), SOON);
        let kind = kinds
            .iter()
            .find(|kind| line.contains(&format!(" kind={kind} ")))
            .unwrap_or_else(|| panic!("none of {kinds:?}: {body}: {line}"));
        let labels = [
            ("route", target.as_str()),
            ("hook", "on_request"),
            ("kind", kind),
        ];
        assert_eq!(failures(&proxy, &labels), 1.0, "{body}");
        assert_eq!(failures(&proxy, &labels[..1]), 1.0, "{body}");
        assert_eq!(proxy.text("/fine"), "ok", "after {body}");
        assert_eq!(web.hits(), number + 1, "{body} reached the upstream");
        assert!(
            peak(&proxy) < MOST_RESIDENT,
            "{} bytes: {body}",
            peak(&proxy)
        );
    }
    assert!(proxy.running());
    assert_eq!(proxy.log.count("panicked"), 0, "{}", proxy.log.text());
}

#[test]
fn values_that_nest_are_bounded() {
    each_fails(
        &[
            // Each array is within `items`, but what is in it counts too.
            "let a = []; a.pad(4000, 0); let b = []; loop { let c = []; c.pad(4000, a); b.push(c); }",
            "let a = []; a.pad(4000, 0); let b = []; b.pad(4000, a); let c = []; c.pad(4000, b);",
            "let a = []; a.pad(4000, 0); let b = []; loop { b.push(a + []); }",
            "let a = [1]; loop { a = [a, a]; }",
            // Texts in arrays.
            r#"let s = "x"; s.pad(60000, 'y'); let a = []; loop { let t = s + a.len(); a.push(t); }"#,
            // Maps in maps.
            "let m = #{}; let a = []; a.pad(4000, 0); loop { m[`k${m.len()}`] = a + []; }",
            "let m = #{ a: 1 }; loop { m = #{ l: m, r: m }; }",
        ],
        &["memory"],
    );
}

/// What the bounds of single values don't see: values in closures, in answers, in the request, in
/// one variable each.
#[test]
fn the_sum_of_all_values_is_bounded() {
    let mut variables = String::from("let a = []; a.pad(4000, 0);");
    for number in 0..1000 {
        variables += &format!("let v{number} = a + [];");
    }
    let web = Upstream::fixed("ok");
    let bodies = [
        variables.as_str(),
        "let a = []; a.pad(4000, 0); let f = []; loop { let b = a + []; f.push(|| b.len()); }",
        r#"let s = "x"; s.pad(60000, 'x'); let a = []; loop { a.push(respond(200, s)); }"#,
        r#"let s = "x"; s.pad(60000, 'x'); let r = respond(200); loop { r.header("x-a", s); }"#,
        r#"let s = "x"; s.pad(60000, 'x'); loop { req.add_header("x-a", s); }"#,
    ];
    // Time enough for memory to be what ends it.
    let proxy = serving(&hooks(&bodies))
        .settings("[script]\ntime = \"5s\"")
        .pool("web", web.address())
        .start();
    for (number, body) in bodies.iter().enumerate() {
        let target = format!("/h{number}");
        for _ in 0..3 {
            assert_eq!(proxy.get(&target).status, 500, "{target}");
        }
        let line = proxy
            .log
            .wait_nth(&format!("script failure route={target} "), 3, SOON);
        assert!(
            line.contains(" kind=memory ") && line.contains("`[script] memory`"),
            "{body}: {line}"
        );
        let labels = [("route", target.as_str()), ("kind", "memory")];
        assert_eq!(failures(&proxy, &labels), 3.0, "{target}");
    }
    assert_eq!((web.hits(), proxy.text("/fine").as_str()), (0, "ok"));
    assert!(peak(&proxy) < MOST_RESIDENT, "{}", peak(&proxy));
}

#[test]
fn one_operation_cannot_take_all_memory() {
    each_fails(
        &[
            // Each would be 400 MB and more.
            r#"let s = "x"; s.pad(20000, 'x'); let t = s.sub_string(0); s.replace("x", t);"#,
            r#"let s = "x"; s.pad(20000, 'x'); let t = RE.replace_all(s, s);"#,
            r#"let s = "x"; s.pad(60000, 'x'); let a = s.split(""); loop { a += s.split(""); }"#,
            "let a = []; a.pad(1000000000, 0);",
            r#"let s = "x"; s.pad(1000000000, 'x');"#,
        ],
        &["memory", "error"],
    );
}

#[test]
fn what_was_freed_does_not_count() {
    let web = Upstream::fixed("ok");
    // 500 times 64 KiB, one after the other.
    let body = "for i in 0..500 { let a = []; a.pad(4000, i); }";
    let proxy = serving(&hooks(&[body]))
        .settings("[script]\ntime = \"5s\"")
        .pool("web", web.address())
        .start();
    for _ in 0..20 {
        assert_eq!(proxy.get("/h0").status, 200);
    }
    assert_eq!(failures(&proxy, &[]), 0.0);
    assert!(peak(&proxy) < MOST_RESIDENT, "{}", peak(&proxy));
}

#[test]
fn runaway_hooks_end_by_operations_or_time() {
    each_fails(
        &[
            "loop {}",
            "while true { let x = 1; }",
            "let a = [3, 1, 2]; a.sort(|x, y| { loop {} });",
            "try { [1].map(|x| { loop {} }) } catch {}",
            "try { loop {} } catch {}",
            "try { [1].filter(|x| { loop {} }) } catch { return respond(200); }",
        ],
        &["operations", "time"],
    );
}

#[test]
fn deep_recursion_ends_by_its_depth() {
    each_fails(
        &["down(0)", "try { down(0) } catch { loop {} }"],
        &["memory", "operations", "time"],
    );
}

#[test]
fn kinds_are_counted_apart() {
    let web = Upstream::fixed("ok");
    let bodies = [
        "throw \"no\"",
        "loop {}",
        "let a = []; a.pad(4000, 0); let b = []; loop { b.push(a + []); }",
    ];
    // Time enough for the other bounds to be what ends it.
    let proxy = serving(&hooks(&bodies))
        .settings("[script]\ntime = \"5s\"")
        .pool("web", web.address())
        .start();
    for (number, kind) in ["error", "operations", "memory"].iter().enumerate() {
        for _ in 0..=number {
            assert_eq!(proxy.get(&format!("/h{number}")).status, 500);
        }
        assert_eq!(
            failures(&proxy, &[("kind", kind)]),
            number as f64 + 1.0,
            "{kind}"
        );
    }
    assert_eq!(failures(&proxy, &[]), 6.0);
    assert_eq!(web.hits(), 0);
}

/// Puts `routes` under a running proxy and gives what the reload said: 200 or 422. The proxy serves on,
/// with the old program when it was refused.
fn reload_with(routes: &str) -> (u16, String) {
    let mut proxy = serving(r#"route("/fine").respond(200, "old");"#).start();
    std::fs::write(proxy.file("routes.rhai"), routes).unwrap();
    let (status, body) = proxy.reload();
    assert!(proxy.running(), "{}", proxy.log.text());
    let expected = if status == 200 { "new" } else { "old" };
    until("the right program", Duration::from_secs(5), || {
        proxy.text("/fine") == expected
    });
    // The way back to an ordinary program is open.
    std::fs::write(
        proxy.file("routes.rhai"),
        r#"route("/fine").respond(200, "next");"#,
    )
    .unwrap();
    assert_eq!(proxy.reload().0, 200);
    assert_eq!(proxy.text("/fine"), "next");
    assert_eq!(proxy.log.count("panicked"), 0, "{}", proxy.log.text());
    assert!(
        peak(&proxy) < 3 * MOST_RESIDENT,
        "{} bytes: {body}",
        peak(&proxy)
    );
    (status, body.to_string())
}

#[test]
fn a_program_that_takes_all_memory_at_load_is_refused() {
    for routes in [
        r#"route("/fine").respond(200, "new");
        let big = "x"; while big.len() < 500000 { big += big; }
        let i = 0; loop { route(`/r${i}`).respond(200, big); i += 1; }"#,
        r#"route("/fine").respond(200, "new"); let a = []; a.pad(50000, 0);
        let b = []; loop { b.push(a + []); }"#,
    ] {
        let (status, body) = reload_with(routes);
        assert_eq!(status, 422, "{body}");
        assert!(body.contains("routes.rhai:"), "{body}");
    }
}

#[test]
fn a_chain_of_closures_at_load_kills_nothing() {
    for kept in [
        "",
        r#"route("/chain").respond(|req| { f.call(); respond(200) });"#,
    ] {
        let (status, body) = reload_with(&format!(
            r#"route("/fine").respond(200, "new");
            let f = || 0; for i in 0..30000 {{ let g = f; f = || g; }}
            {kept}"#
        ));
        assert!(matches!(status, 200 | 422), "{status}: {body}");
    }
}

#[test]
fn a_chain_of_closures_in_a_hook_kills_nothing() {
    let web = Upstream::fixed("ok");
    let body = "let f = || 0; for i in 0..4000 { let g = f; f = || g; }";
    let endless = "let f = || 0; loop { let g = f; f = || g; }";
    let mut proxy = serving(&hooks(&[body, endless]))
        .settings("[script]\noperations = 1000000\ntime = \"5s\"")
        .pool("web", web.address())
        .start();
    for target in ["/h0", "/h1"] {
        let status = proxy.get(target).status;
        assert!(matches!(status, 200 | 500), "{target}: {status}");
        assert_eq!(proxy.text("/fine"), "ok", "after {target}");
    }
    assert!(proxy.running());
}
