//! Every example is complete and right: `check` has nothing against it, and it serves.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::client::{get, post, request};
use support::command::edgewright;
use support::launch::serving;
use support::upstream::{Upstream, answer, ok};
use support::wait::SOON;

/// The folders under `examples/`.
fn examples() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut folders: Vec<PathBuf> = fs::read_dir(&root)
        .unwrap_or_else(|e| panic!("{}: {e}", root.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    assert!(!folders.is_empty(), "no examples in {}", root.display());
    folders
}

fn text(example: &str, file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../examples")
        .join(example)
        .join(file);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn check_passes_without_a_warning() {
    for folder in examples() {
        let ended = edgewright(["check".as_ref(), folder.as_path()]);
        assert_eq!(ended.code, Some(0), "{}: {ended:?}", folder.display());
        assert!(
            !ended.text().contains("warning"),
            "{}: {ended:?}",
            folder.display()
        );
    }
}

#[test]
fn each_has_a_program_and_a_readme() {
    for folder in examples() {
        for name in ["routes.rhai", "README.md"] {
            let file = folder.join(name);
            assert!(file.is_file(), "{} is missing", file.display());
        }
    }
}

/// The program and its data are the example's own; pools and addresses are the test's.
#[test]
fn the_quickstart_serves() {
    let web = Upstream::start(|seen| ok(format!("web {} {}", seen.method(), seen.target())));
    let canary = Upstream::start(|seen| ok(format!("canary {} {}", seen.method(), seen.target())));
    let proxy = serving(&text("quickstart", "routes.rhai"))
        .file("keys.json", &text("quickstart", "keys.json"))
        .pool("web", web.address())
        .pool("canary", canary.address())
        .start();
    assert_eq!(proxy.text("/healthz"), "ok\n");

    for _ in 0..200 {
        assert_eq!(proxy.get("/page?x=1").status, 200);
    }
    // One in ten: 20 are expected; a fair draw is outside of 4..=44 less than once in 50,000 runs.
    assert!((4..=44).contains(&canary.hits()), "{}", canary.hits());
    assert_eq!(web.last_request().target(), "/page?x=1");

    let before = (web.hits(), canary.hits());
    let refused = proxy.get("/api/v1/orders");
    assert_eq!(
        (refused.status, refused.text().as_str()),
        (401, "unknown API key\n")
    );
    assert_eq!((web.hits(), canary.hits()), before);
    let let_in = get("/api/v1/orders").header("x-api-key", "secret-1");
    assert_eq!(proxy.send(&let_in).text(), "web GET /orders?version=v1");
    assert_eq!(web.last_request().headers("x-client"), ["alice"]);
}

#[test]
fn the_modules_serve() {
    let web = Upstream::start(|seen| ok(format!("web {} {}", seen.method(), seen.target())));
    let mut proxy = serving(&text("modules", "routes.rhai"));
    for file in ["auth.rhai", "billing.rhai", "keys.json"] {
        proxy = proxy.file(file, &text("modules", file));
    }
    let proxy = proxy.pool("web", web.address()).start();
    assert_eq!(proxy.text("/healthz"), "example is up\n");

    let refused = proxy.get("/api/orders");
    assert_eq!(refused.status, 401);
    assert_eq!(
        refused.header("www-authenticate"),
        Some("Key realm=\"keys\"")
    );
    let with_key = |target: &str, key: &str| proxy.send(&get(target).header("x-api-key", key));
    assert_eq!(with_key("/admin/", "secret-2").text(), "only for admin\n");
    assert_eq!(web.hits(), 0);

    assert_eq!(
        with_key("/api/orders", "secret-2").text(),
        "web GET /api/orders"
    );
    assert_eq!(web.last_request().headers("x-client"), ["bob"]);
    assert_eq!(with_key("/admin/", "secret-1").text(), "web GET /admin/");
    assert_eq!(
        with_key("/invoices/7", "secret-1").text(),
        "web GET /billing/7"
    );
    assert_eq!(web.last_request().headers("x-client"), ["alice"]);
}

#[test]
fn the_cidr_gate_serves() {
    let web = Upstream::fixed("web");
    let proxy = serving(&text("cidr-gate", "routes.rhai"))
        .settings("[trusted_proxies]\ncidrs = [\"127.0.0.0/8\"]")
        .pool("web", web.address())
        .start();
    let from = |target: &str, client: &str| {
        let response = proxy.send(&get(target).header("x-forwarded-for", client));
        (response.status, response.text())
    };
    assert_eq!(proxy.text("/where"), "127.0.0.1 is outside\n");
    assert_eq!(from("/where", "10.1.2.3").1, "10.1.2.3 is the office\n");
    for (target, client, status) in [
        ("/admin/x", "10.1.2.3", 200),
        ("/admin/x", "10.9.0.1", 403),
        ("/admin/x", "203.0.113.5", 403),
        ("/admin/x", "10.1.2.3, 203.0.113.5", 403),
        ("/x", "203.0.113.5", 200),
        ("/x", "192.0.2.1", 403),
    ] {
        assert_eq!(from(target, client).0, status, "{target} from {client}");
    }
    assert_eq!(web.hits(), 2);
}

#[test]
fn the_rate_limit_serves() {
    let web = Upstream::fixed("web");
    let proxy = serving(&text("rate-limit", "routes.rhai"))
        .pool("web", web.address())
        .start();
    let statuses: Vec<u16> = (0..6)
        .map(|_| proxy.send(&post("/login", "")).status)
        .collect();
    // All within one minute, or the last one begins the next.
    assert_eq!(statuses[..5], [200; 5]);
    let with_key = |target: &str, key: &str| proxy.send(&get(target).header("x-api-key", key));
    assert_eq!(with_key("/quota", "a").text(), "1000 left\n");
    assert_eq!(with_key("/api/x", "a").status, 200);
    assert_eq!(with_key("/quota", "a").text(), "999 left\n");
    assert_eq!(with_key("/api/reports/x", "a").status, 200);
    assert_eq!(with_key("/quota", "a").text(), "989 left\n");
    assert_eq!(proxy.get("/api/reports/x").status, 401);
    for _ in 0..98 {
        assert_eq!(with_key("/api/reports/x", "a").status, 200);
    }
    let refused = with_key("/api/reports/x", "a");
    assert_eq!(
        (refused.status, refused.text().as_str()),
        (429, "slow down\n")
    );
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=7200).contains(&wait), "{wait}");
    assert_eq!(with_key("/api/x", "a").status, 429);
}

#[test]
fn cors_serves() {
    let web = Upstream::fixed("web");
    let proxy = serving(&text("cors", "routes.rhai"))
        .pool("web", web.address())
        .start();
    let ask = |target: &str, origin: &str| {
        let asked = request("OPTIONS", target)
            .header("origin", origin)
            .header("access-control-request-method", "PUT");
        proxy.send(&asked)
    };
    let allowed = ask("/api/x", "https://x.preview.example");
    assert_eq!(allowed.status, 204);
    let methods = allowed.header("access-control-allow-methods");
    assert_eq!(methods, Some("GET, PUT, DELETE"));
    assert_eq!(ask("/api/x", "https://evil.example").status, 403);
    assert_eq!(ask("/static/x", "https://evil.example").status, 204);
    let refused = proxy.send(&get("/api/x").header("origin", "https://app.example"));
    assert_eq!(refused.status, 401);
    let origin = refused.header("access-control-allow-origin");
    assert_eq!(origin, Some("https://app.example"));
    assert_eq!(web.hits(), 0);
}

#[test]
fn a_tenant_decides_the_pool() {
    let blue = Upstream::fixed("blue");
    let green = Upstream::fixed("green");
    let proxy = serving(&text("tenant-to-pool", "routes.rhai"))
        .file("tenants.csv", &text("tenant-to-pool", "tenants.csv"))
        .pool("blue", blue.address())
        .pool("green", green.address())
        .start();
    let by_host = |host: &str| proxy.send(&get("/a").host(host));
    let by_header = |tenant: &str| proxy.send(&get("/a").header("x-tenant", tenant));
    assert_eq!(by_host("acme.example.com").text(), "blue");
    assert_eq!(blue.last_request().headers("x-tenant"), ["acme"]);
    assert_eq!(by_header("globe").text(), "green");
    // What the client says of itself counts for nothing where the host decides.
    let both = get("/a")
        .host("globe.example.com")
        .header("x-tenant", "acme");
    assert_eq!(proxy.send(&both).text(), "green");
    let hits = (blue.hits(), green.hits());
    assert_eq!(by_header("old").status, 403);
    assert_eq!(by_header("none").status, 404);
    assert_eq!(by_host("none.example.com").status, 404);
    assert_eq!(proxy.get("/a").status, 404);
    assert_eq!((blue.hits(), green.hits()), hits);
}

#[test]
fn an_experiment_keeps_its_users_apart() {
    let old = Upstream::fixed("old");
    let new = Upstream::fixed("new");
    let proxy = serving(&text("ab-test", "routes.rhai"))
        .pool("old", old.address())
        .pool("new", new.address())
        .start();
    let as_user = |user: usize| {
        let request = get("/checkout/").header("x-user", &format!("user-{user}"));
        proxy.send(&request).text()
    };
    let first: Vec<String> = (0..200).map(as_user).collect();
    let newer = first.iter().filter(|got| *got == "new").count();
    assert!((25..=55).contains(&newer), "{newer} of 200");
    for (user, got) in first.iter().enumerate().take(20) {
        assert_eq!(as_user(user), *got);
    }
    let metrics = proxy.ask_admin("/metrics").text();
    let counted = format!(
        "script_assigned_total{{experiment=\"checkout-2\",variant=\"new\"}} {}",
        new.hits()
    );
    assert!(metrics.lines().any(|line| line == counted), "{metrics}");

    // A visitor without a name gets one, and with it the same again.
    let visit = proxy.get("/checkout/");
    let cookie = visit.header("set-cookie").unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    for _ in 0..5 {
        let again = proxy.send(&get("/checkout/").header("cookie", &cookie));
        assert_eq!(again.text(), visit.text());
        assert_eq!(again.header("set-cookie"), None);
    }
    assert_eq!(proxy.text("/other"), "old");
}

#[test]
fn answers_are_logged_and_counted() {
    let web = Upstream::fixed("ok");
    let proxy = serving(&text("structured-log-and-metrics", "routes.rhai"))
        .settings("[log]\nformat = \"json\"")
        .pool("web", web.address())
        .start();
    let request = get("/a?q=1&api_key=hunter2").header("x-user", "alice");
    assert_eq!(proxy.send(&request.header("x-plan", "gold")).status, 200);
    let line = proxy.log.wait("answered", SOON);
    for part in ["alice", "/a", "q=1", "api_key=***"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(!line.contains("hunter2"), "{line}");
    // The upstream gets what was sent.
    assert_eq!(web.last_request().target(), "/a?q=1&api_key=hunter2");
    assert_eq!(
        proxy
            .send(&get("/healthz").header("x-plan", "made up"))
            .status,
        200
    );
    let text = proxy.ask_admin("/metrics").text();
    for line in [
        "script_answers_total{class=\"2xx\",plan=\"gold\"} 1",
        "script_answers_total{class=\"2xx\",plan=\"other\"} 1",
        "script_answer_seconds_count{plan=\"gold\"} 1",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
}

#[test]
fn the_basic_auth_serves() {
    let web = Upstream::start(|seen| ok(seen.header("x-user").unwrap_or_default()));
    let proxy = serving(&text("basic-auth", "routes.rhai"))
        .file("users.htpasswd", &text("basic-auth", "users.htpasswd"))
        .pool("web", web.address())
        .start();
    assert_eq!(proxy.get("/").status, 401);
    // alice:opensesame, bob:opensesame
    let [alice, bob] =
        ["YWxpY2U6b3BlbnNlc2FtZQ==", "Ym9iOm9wZW5zZXNhbWU="].map(|coded| format!("Basic {coded}"));
    let with = |target: &str, shown: &str| {
        proxy.send(
            &get(target)
                .header("authorization", shown)
                .header("x-user", "root"),
        )
    };
    assert_eq!(with("/", &alice).text(), "alice");
    assert_eq!(with("/", &bob).text(), "bob");
    assert_eq!(with("/admin/", &alice).text(), "alice");
    assert_eq!(with("/admin/", &bob).text(), "only for alice\n");
}

#[test]
fn the_jwt_serves() {
    let web = Upstream::start(|seen| ok(seen.header("x-user").unwrap_or_default()));
    let proxy = serving(&text("jwt", "routes.rhai"))
        .file("secret.key", &text("jwt", "secret.key"))
        .pool("web", web.address())
        .start();
    let [alice, bob] = ["alice", "bob"].map(|user| proxy.text(&format!("/token/{user}")));
    let with = |target: &str, token: &str| {
        proxy.send(&get(target).header("authorization", &format!("Bearer {token}")))
    };
    assert_eq!(with("/api/orders", &alice).text(), "alice");
    assert_eq!(web.last_request().headers("x-roles"), ["admin,staff"]);
    assert_eq!(with("/admin/", &alice).status, 200);
    assert_eq!(with("/admin/", &bob).text(), "only for admins\n");
    assert_eq!(proxy.get("/api/orders").status, 401);
    assert_eq!(with("/api/orders", &format!("{alice}x")).status, 401);
}

#[test]
fn the_external_auth_serves() {
    let web = Upstream::start(|seen| ok(seen.header("x-user").unwrap_or_default()));
    let authz = Upstream::start(|seen| match seen.header("cookie").as_deref() {
        Some("session=s-1") => answer(200, &[("x-user", "alice")], ""),
        _ => answer(302, &[("location", "https://login.example/")], ""),
    });
    let proxy = serving(&text("external-auth", "routes.rhai"))
        .pool("web", web.address())
        .pool("authz", authz.address())
        .start();
    let to_login = proxy.get("/page");
    assert_eq!(to_login.status, 302);
    assert_eq!(to_login.header("location"), Some("https://login.example/"));
    let alice = get("/page").header("cookie", "session=s-1");
    assert_eq!(proxy.send(&alice).text(), "alice");
    assert_eq!(authz.last_request().target(), "/check");
    assert_eq!(web.hits(), 1);
}

/// The files of an example fit together: its settings name the pools that its program uses.
#[test]
fn settings_name_the_upstreams() {
    for example in [
        "quickstart",
        "modules",
        "tenant-to-pool",
        "ab-test",
        "structured-log-and-metrics",
        "basic-auth",
        "jwt",
        "external-auth",
    ] {
        let settings: toml::Table = text(example, "edgewright.toml").parse().unwrap();
        let pools = settings["pools"].as_table().unwrap();
        let upstreams = text(example, "upstreams.py");
        for (name, pool) in pools {
            let target = pool["targets"][0].as_str().unwrap();
            let port = target.rsplit(':').next().unwrap();
            assert!(
                upstreams.contains(port),
                "{name}: nothing of {example} is on {target}"
            );
        }
    }
}
