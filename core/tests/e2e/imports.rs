//! Programs of several files, in a real folder.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::client::get;
use crate::support::command::{Folder, edgewright};
use crate::support::launch::serving;
use crate::support::upstream::Upstream;
use crate::support::wait::{SOON, until};

const ROUTES: &str =
    "import \"auth\" as auth;\nroute(\"/{*rest}\").on_request(auth::gate).to(\"web\");\n";

/// A file whose gate lets in who knows `key`.
fn auth(key: &str) -> String {
    format!(
        "const KEY = \"{key}\";\nfn gate(req) {{ if req.header(\"x-key\") != KEY {{ return respond(401, KEY + \" please\"); }} }}\n"
    )
}

#[test]
fn a_change_of_an_imported_file_is_a_reload() {
    let web = Upstream::fixed("ok");
    let proxy = serving(ROUTES)
        .file("auth.rhai", &auth("one"))
        .pool("web", web.address())
        .start();
    assert_eq!(proxy.text("/a"), "one please");
    assert_eq!(proxy.send(&get("/a").header("x-key", "one")).text(), "ok");

    fs::write(proxy.file("auth.rhai"), auth("two")).unwrap();
    until("the new key", SOON, || proxy.text("/a") == "two please");

    fs::write(proxy.file("auth.rhai"), "\nfn gate(req) { gaet(req) }\n").unwrap();
    let line = proxy.log.wait("reload refused", SOON);
    assert!(line.contains("auth.rhai:2:16"), "{line}");
    assert_eq!(proxy.text("/a"), "two please");

    fs::remove_file(proxy.file("auth.rhai")).unwrap();
    let line = proxy.log.wait("there is no file `auth.rhai`", SOON);
    assert!(line.contains("routes.rhai:1:8"), "{line}");
    assert_eq!(proxy.text("/a"), "two please");

    fs::write(proxy.file("auth.rhai"), auth("three")).unwrap();
    until("the file that came back", SOON, || {
        proxy.text("/a") == "three please"
    });
}

#[test]
fn a_failure_is_logged_with_its_file() {
    let web = Upstream::fixed("ok");
    let proxy = serving(ROUTES)
        .file(
            "auth.rhai",
            "// a gate\nfn gate(req) {\n    req.header(\"x\").nothing\n}\n",
        )
        .pool("web", web.address())
        .start();
    assert_eq!(proxy.get("/a").status, 500);
    let line = proxy.log.wait("auth.rhai:3:", SOON);
    assert!(!line.contains("auth__"), "{line}");
    assert_eq!(web.hits(), 0);
}

#[test]
fn routes_says_where_a_function_comes_from() {
    let folder = Folder::with(&[
        (
            "routes.rhai",
            "import \"auth\" as auth;\nimport \"more\";\nroute(\"/a\").on_request(auth::gate).respond(200);\n",
        ),
        ("auth.rhai", &auth("one")),
        (
            "more.rhai",
            "\nroute(\"/b\").respond(|req| respond(204));\n",
        ),
    ]);
    let ended = edgewright(["routes".as_ref(), folder.path()]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let text = ended.text();
    let line = |pattern: &str| text.lines().find(|line| line.contains(pattern)).unwrap();
    assert!(line(" /a ").contains("on_request:auth::gate"), "{text}");
    assert!(line(" /a ").ends_with("routes.rhai:3"), "{text}");
    assert!(line(" /b ").contains("|..|@more.rhai:2"), "{text}");
    assert!(line(" /b ").ends_with("more.rhai:2"), "{text}");
}

#[test]
fn files_from_elsewhere_are_refused() {
    let elsewhere = Folder::with(&[("auth.rhai", &auth("one"))]);
    let folder = Folder::with(&[]);
    symlink(elsewhere.file("auth.rhai"), folder.file("link.rhai")).unwrap();
    symlink(elsewhere.path(), folder.file("lib")).unwrap();
    let absolute = elsewhere.file("auth.rhai");
    // A folder that may be read from is no folder of programs.
    let settings = format!("[files]\nallow = [{:?}]\n", elsewhere.path());
    for settings in ["", &settings] {
        folder.write("edgewright.toml", settings);
        for name in [
            "link",
            "lib/auth",
            "../auth",
            "lib/../../auth",
            absolute.to_str().unwrap(),
        ] {
            folder.write("routes.rhai", &format!("import \"{name}\" as auth;\n"));
            let ended = edgewright(["check".as_ref(), folder.path()]);
            assert_eq!(ended.code, Some(1), "{name}: {ended:?}");
            let text = ended.text();
            assert!(
                text.contains("lies outside the configuration's folder"),
                "{text}"
            );
            assert!(text.contains("routes.rhai:1:8"), "{text}");
        }
    }
    // A link inside of the folder is only another name.
    folder.write("own.rhai", &auth("one"));
    symlink("own.rhai", folder.file("alias.rhai")).unwrap();
    folder.write(
        "routes.rhai",
        "import \"own\" as own;\nimport \"alias\" as alias;\nroute(\"/\").on_request(own::gate).on_request(alias::gate).respond(200);\n",
    );
    let ended = edgewright(["check".as_ref(), folder.path()]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn check_shows_the_line_of_the_imported_file() {
    let folder = Folder::with(&[
        ("routes.rhai", ROUTES),
        (
            "auth.rhai",
            "const KEYS = 1;\nfn gate(req) {\n    KEYZ\n}\n",
        ),
        (
            "edgewright.toml",
            "[pools.web]\ntargets = [\"127.0.0.1:9\"]\n",
        ),
    ]);
    let ended = edgewright(["check".as_ref(), folder.path()]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let shown =
        "auth.rhai:3:5\n  |\n3 |     KEYZ\n  |     ^^^^\n  |\n  = help: did you mean `KEYS`?";
    assert!(ended.text().contains(shown), "{}", ended.text());
}
