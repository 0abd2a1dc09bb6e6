//! `edgewright run` of something that is wrong: it ends with 1 and says where and why.

use crate::support::command::{Folder, edgewright};
use crate::support::ports;

/// Ports that this test would listen on, had it been let; nothing is left to the defaults.
fn settings() -> String {
    let free = ports::free([127, 0, 0, 1].into(), 3);
    format!(
        "[[listeners]]\naddress = \"{}\"\n[admin]\naddress = \"{}\"\n[health]\naddress = \"{}\"\n",
        free[0], free[1], free[2]
    )
}

#[test]
fn run_of_a_broken_program_ends_with_1_the_place_and_a_caret() {
    let routes = "fn require_key(req) {\n    return respond(401);\n}\n\
                  route(\"/api/{*rest}\").on_request(require_kye).to(\"api\");\n";
    let folder = Folder::with(&[
        ("routes.rhai", routes),
        (
            "edgewright.toml",
            &format!("{}[pools.api]\ntargets = [\"127.0.0.1:9\"]\n", settings()),
        ),
    ]);
    let ended = edgewright(["run".as_ref(), folder.path()]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let said = &ended.stderr;
    assert!(said.contains("routes.rhai:4:34"), "{said}");
    assert!(said.contains("require_kye"), "{said}");
    assert!(
        said.contains("route(\"/api/{*rest}\").on_request(require_kye)"),
        "{said}"
    );
    assert!(said.contains('^'), "{said}");
    assert!(said.contains("require_key"), "no suggestion: {said}");
}

#[test]
fn each_kind_of_mistake_is_found_at_load() {
    let mut wrong = Vec::new();
    for (what, routes, parts) in [
        (
            "a syntax error",
            "route(\"/x\").respond(200, \"x\";\n",
            vec![":1:"],
        ),
        (
            "an undefined variable",
            "fn f(req) {\n    let x = missing + 1;\n}\nroute(\"/\").on_request(f).respond(200, \"\");\n",
            vec![":2:13", "missing"],
        ),
        (
            "a function that does not exist",
            "fn f(req) {\n    chekc(req);\n}\nfn check(req) {}\nroute(\"/\").on_request(f).respond(200, \"\");\n",
            vec![":2:5", "chekc", "check"],
        ),
        (
            "a function with another number of arguments",
            "fn helper(a, b) { a }\nroute(\"/\").on_request(|req| { helper(1); }).respond(200, \"\");\n",
            vec![":2:", "helper"],
        ),
        (
            "an unknown pool",
            "route(\"/\").to(\"wbe\");\n",
            vec![":1:", "wbe", "web"],
        ),
        (
            "an unknown pool in a split",
            "route(\"/\").to(#{ web: 1, wbe: 1 });\n",
            vec![":1:", "wbe"],
        ),
        (
            "a bad pattern",
            "route(\"/a/{x/b\").to(\"web\");\n",
            vec![":1:"],
        ),
        (
            "a relative pattern",
            "route(\"a\").to(\"web\");\n",
            vec![":1:"],
        ),
        (
            "a bad regex",
            "const R = regex(\"(a\");\nroute(\"/\").to(\"web\");\n",
            vec![":1:"],
        ),
        (
            "a bad CIDR",
            "const C = cidr([\"10.0.0.0/99\"]);\n",
            vec![":1:", "10.0.0.0/99"],
        ),
        (
            "a missing table",
            "const T = table(\"missing.json\");\nroute(\"/\").to(\"web\");\n",
            vec![":1:", "missing.json"],
        ),
        (
            "a table outside of the folder",
            "const T = table(\"../../../etc/passwd\");\nroute(\"/\").to(\"web\");\n",
            vec![":1:", "passwd"],
        ),
        (
            "a missing environment variable",
            "const E = env(\"EDGE_NOT_SET_ANYWHERE\");\nroute(\"/\").to(\"web\");\n",
            vec![":1:", "EDGE_NOT_SET_ANYWHERE"],
        ),
        (
            "header on a route",
            "route(\"/\").header(\"a\", \"b\").to(\"web\");\n",
            vec![":1:", "set_header", "if_header"],
        ),
        (
            "a closure that assigns to a captured variable",
            "let n = 0;\nroute(\"/\").on_request(|req| { n += 1; }).to(\"web\");\n",
            vec![":2:", "n"],
        ),
        (
            "a response that is made and dropped",
            "fn f(req) {\n    respond(403);\n    req.set_header(\"a\", \"b\");\n}\nroute(\"/\").on_request(f).to(\"web\");\n",
            vec![":2:5", "return"],
        ),
        (
            "a gate that answers with a bool",
            "fn allowed(req) { req.header(\"x-ok\") != () }\nroute(\"/\").on_request(allowed).to(\"web\");\n",
            vec![":1:", "bool"],
        ),
        ("a route that leads nowhere", "route(\"/\");\n", vec![":1:"]),
    ] {
        let folder = Folder::with(&[
            ("routes.rhai", routes),
            (
                "edgewright.toml",
                "[pools.web]\ntargets = [\"127.0.0.1:9\"]\n",
            ),
        ]);
        let ended = edgewright(["check".as_ref(), folder.path()]);
        if ended.code != Some(1) {
            wrong.push(format!(
                "{what}: exit code {:?}: {}",
                ended.code,
                ended.text()
            ));
        }
        for part in parts {
            if !ended.text().contains(part) {
                wrong.push(format!("{what}: no {part:?} in {}", ended.text()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_unknown_key_is_an_error_with_a_suggestion() {
    for (settings, key, suggestion) in [
        ("[server]\nthread = 2\n", "thread", "threads"),
        (
            "[pools.web]\ntargest = [\"127.0.0.1:9\"]\n",
            "targest",
            "targets",
        ),
        ("[limts]\nuri = \"1KiB\"\n", "limts", "limits"),
        (
            "[pools.web]\ntargets = [\"127.0.0.1:9\"]\nbalance = \"round_robbin\"\n",
            "round_robbin",
            "round_robin",
        ),
    ] {
        let folder = Folder::with(&[
            ("routes.rhai", "route(\"/\").respond(200, \"ok\");\n"),
            ("edgewright.toml", settings),
        ]);
        for command in ["check", "run"] {
            let ended = edgewright([command.as_ref(), folder.path()]);
            let said = ended.text();
            assert_eq!(ended.code, Some(1), "{command}: {said}");
            assert!(said.contains("edgewright.toml"), "{said}");
            assert!(said.contains(key) && said.contains(suggestion), "{said}");
        }
    }
}

#[test]
fn what_does_not_exist_yet_is_an_error_and_not_a_key_that_does_nothing() {
    let settings =
        "[[listeners]]\naddress = \"127.0.0.1:9\"\n[listeners.tls]\nclient_ca = \"ca.pem\"\n";
    let folder = Folder::with(&[
        ("routes.rhai", "route(\"/\").respond(200, \"ok\");\n"),
        ("edgewright.toml", settings),
    ]);
    let ended = edgewright(["check".as_ref(), folder.path()]);
    assert_eq!(ended.code, Some(1), "{settings}: {}", ended.text());
}

#[test]
fn an_address_in_use_ends_the_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let rest = ports::free([127, 0, 0, 1].into(), 2);
    let folder = Folder::with(&[
        ("routes.rhai", "route(\"/\").respond(200, \"ok\");\n"),
        (
            "edgewright.toml",
            &format!(
                "[[listeners]]\naddress = \"{address}\"\n[admin]\naddress = \"{}\"\n[health]\naddress = \"{}\"\n",
                rest[0], rest[1]
            ),
        ),
    ]);
    let ended = edgewright(["run".as_ref(), folder.path()]);
    assert_ne!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stderr.contains(&address.to_string()),
        "{}",
        ended.stderr
    );
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}
