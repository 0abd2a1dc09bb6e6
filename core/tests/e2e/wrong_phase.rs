//! A call that can't stand where it stands is refused by `check`, with its place and where it may
//! stand, and never on the first request (apisix 4869, lua-resty-redis 119).

use crate::support::command::{Folder, edgewright};

/// What is wrong, the program, and what `check` says of it.
type Mistake = (&'static str, &'static str, &'static [&'static str]);

const MISTAKES: &[Mistake] = &[
    (
        "a call to another service while a route is looked for",
        "route(\"/\").when(|req| fetch(\"web\").status == 200).to(\"web\");\n",
        &[
            "routes.rhai:1:23",
            "`fetch` can't stand in the function of `.when`",
            "it may stand in `on_request`",
        ],
    ),
    (
        "several calls, in a function that makes an answer",
        "route(\"/\").respond(|req| {\n    let r = fetch_all([\"web\"]);\n    respond(200)\n});\n",
        &["routes.rhai:2:13", "`fetch_all` can't stand in"],
    ),
    (
        "a call in a function that such a function calls",
        "fn known(req) { ask(req) }\nfn ask(req) {\n    fetch(\"web\").status == 200\n}\n\
         route(\"/\").when(known).to(\"web\");\n",
        &["routes.rhai:3:5", "`fetch` can't stand in"],
    ),
    (
        "the request is changed when it was sent already",
        "route(\"/\").on_response(|req, res| {\n    req.set_header(\"x\", \"1\");\n}).to(\"web\");\n",
        &[
            "routes.rhai:2:9",
            "the request was sent already",
            "change it in `on_request`, or change `res`",
        ],
    ),
    (
        "the same with its path",
        "fn late(req, res) {\n    req.path = \"/other\";\n}\nroute(\"/\").on_response(late).to(\"web\");\n",
        &["routes.rhai:2:", "the request was sent already"],
    ),
    (
        "the request is changed while a route is looked for",
        "route(\"/\").when(|req| { req.remove_header(\"x\"); true }).to(\"web\");\n",
        &["routes.rhai:1:", "a `.when` only looks at the request"],
    ),
    (
        "the response, before there is one",
        "route(\"/\").on_request(|req| {\n    res.set_header(\"x\", \"1\");\n}).to(\"web\");\n",
        &["routes.rhai:2:5", "res"],
    ),
    (
        "a hook that takes the response where there is none",
        "fn both(req, res) {}\nroute(\"/\").on_request(both).to(\"web\");\n",
        &["routes.rhai:2:", "both"],
    ),
    (
        "a value of the load time, for each request",
        "route(\"/\").on_request(|req| {\n    let hits = rate(1, \"1m\");\n}).to(\"web\");\n",
        &[
            "routes.rhai:2:16",
            "`rate` can't stand in an `on_request` hook: it belongs to the top level",
        ],
    ),
    (
        "a file, for each request",
        "route(\"/\").on_request(|req| {\n    let keys = table(\"keys.json\");\n}).to(\"web\");\n",
        &["routes.rhai:2:16", "`table` can't stand in"],
    ),
    (
        "a route, for each request",
        "route(\"/\").on_request(|req| {\n    route(\"/more\").to(\"web\");\n}).to(\"web\");\n",
        &["routes.rhai:2:5", "`route` can't stand in"],
    ),
    (
        "a call to another service while loading",
        "const READY = fetch(\"web\").status;\nroute(\"/\").to(\"web\");\n",
        &["routes.rhai:1:15", "fetch"],
    ),
];

const SETTINGS: &str = "[pools.web]\ntargets = [\"127.0.0.1:9\"]\n";

#[test]
fn check_refuses_what_its_phase_can_not_have() {
    let mut wrong = Vec::new();
    for (what, program, parts) in MISTAKES {
        let folder = Folder::with(&[("routes.rhai", program), ("edgewright.toml", SETTINGS)]);
        let ended = edgewright(["check".as_ref(), folder.path()]);
        let text = ended.text();
        if ended.code != Some(1) || parts.iter().any(|part| !text.contains(part)) {
            wrong.push(format!("{what} ({parts:?}): {:?}\n{text}", ended.code));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n---\n"));
}

#[test]
fn what_is_refused_in_one_phase_is_taken_in_its_own() {
    let program = r#"
const HITS = rate(1, "1m");
fn ask(req) { fetch("web").status == 200 }
route("/{*rest}")
    .on_request(|req| {
        if !ask(req) { return respond(403); }
        if !HITS.allow(req.client_ip) { return respond(429); }
        req.set_header("x", "1");
        req.path = "/other";
    })
    .on_response(|req, res| {
        let replies = fetch_all(["web"]);
        res.set_header("x", "" + replies[0].status);
    })
    .to(|req| if ask(req) { "web" } else { respond(404) });
"#;
    let folder = Folder::with(&[("routes.rhai", program), ("edgewright.toml", SETTINGS)]);
    let ended = edgewright(["check".as_ref(), folder.path()]);
    assert_eq!(ended.code, Some(0), "{}", ended.text());
}
