//! Every example is complete and right: `check` has nothing against it, and it serves.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::client::get;
use support::command::edgewright;
use support::launch::serving;
use support::upstream::{Upstream, answer, ok};

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
