//! `check` finds what would otherwise be found by the first request: each with its place, the line,
//! and what was meant.

use crate::support::command::{Folder, edgewright};

const SETTINGS: &str = "[pools.web]\ntargets = [\"127.0.0.1:9\"]\n";

/// Programs with one mistake, and what `check` says of it.
const MISTAKES: [(&str, &[&str]); 9] = [
    (
        "route(\"/\").on_request(|req| respnd(403)).to(\"web\");\n",
        &[
            "routes.rhai:1:29",
            "unknown function `respnd`",
            "did you mean `respond`?",
        ],
    ),
    (
        "route(\"/\").on_request(|req| req.set_heder(\"a\", \"b\")).to(\"web\");\n",
        &[
            "routes.rhai:1:33",
            "unknown method `set_heder`",
            "did you mean `set_header`?",
        ],
    ),
    (
        "route(\"/\").on_request(|req| respond(403, \"no\", 1)).to(\"web\");\n",
        &[
            "routes.rhai:1:29",
            "`respond` takes 1 or 2 arguments, not 3",
        ],
    ),
    (
        "const LIMIT = rate(1, \"1m\");\nroute(\"/\").on_request(gate).to(\"web\");\n\
         fn gate(req) {\n    if !LIMTI.allow(req.client_ip) { return respond(429); }\n}\n",
        &["routes.rhai:4:9", "`LIMTI`", "did you mean `LIMIT`?"],
    ),
    (
        "let hits = 0;\nroute(\"/\").on_request(|req| {\n    hits += 1;\n}).to(\"web\");\n",
        &["routes.rhai:3:5", "`hits`"],
    ),
    (
        "route(\"/\").to(\"wbe\");\n",
        &["routes.rhai:1:16", "`wbe`", "did you mean `web`?"],
    ),
    (
        "const P = regex(\"(a\");\nroute(\"/\").to(\"web\");\n",
        &["routes.rhai:1:11", "bad pattern `(a`"],
    ),
    ("route(\"/a/{x\").to(\"web\");\n", &["routes.rhai:1:", "{x"]),
    (
        "const OFFICE = cidr([\"10.0.0.0/33\"]);\nroute(\"/\").to(\"web\");\n",
        &["routes.rhai:1:16", "`10.0.0.0/33` is no network"],
    ),
];

#[test]
fn each_mistake_is_found_at_its_place() {
    let mut wrong = Vec::new();
    for (program, parts) in MISTAKES {
        let folder = Folder::with(&[("routes.rhai", program), ("edgewright.toml", SETTINGS)]);
        let ended = edgewright(["check".as_ref(), folder.path()]);
        let text = ended.text();
        let line = program.lines().find(|line| text.contains(*line));
        if ended.code != Some(1) || line.is_none() || parts.iter().any(|part| !text.contains(part))
        {
            wrong.push(format!("{program}{parts:?}: {:?}\n{text}", ended.code));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n---\n"));
}
