//! Mistakes are found at load, with their place and what to do.

mod support;

use support::{errors, try_load};

#[track_caller]
fn finds(source: &str, expected: &str) {
    let found = errors(source);
    assert!(
        found.contains(expected),
        "expected `{expected}` in:\n{found}"
    );
}

#[test]
fn of_mirrors() {
    for (call, expected) in [
        (
            "mirror(\"wbe\", 10)",
            "there is no pool `wbe` (did you mean `web`?)",
        ),
        ("mirror(\"web\", 101)", "must be between 0 and 100, not 101"),
        (
            "mirror(\"web\", -0.5)",
            "must be between 0 and 100, not -0.5",
        ),
        (
            "mirror(\"web\", #{ percent: \"10\" })",
            "`percent` of `.mirror` is a number",
        ),
        (
            "mirror(\"web\", #{ share: 10 })",
            "`.mirror` has no option `share`; it has percent, body, timeout",
        ),
        ("mirror(\"web\", #{ body: \"17MiB\" })", "16MiB at the most"),
        ("mirror(\"web\", #{ body: \"64\" })", "a size needs a unit"),
        (
            "mirror(\"web\", #{ timeout: \"2m\" })",
            "between 1ms and 60s, not 2m",
        ),
        (
            "mirror(\"web\", 1).mirror(\"web\", 2)",
            "the route has a `.mirror` already",
        ),
    ] {
        finds(&format!("route(\"/a\").{call}.to(\"web\");"), expected);
    }
    for destination in [
        "respond(200)",
        "redirect(302, \"/b\")",
        "respond(|req| respond(200))",
    ] {
        finds(
            &format!("route(\"/a\").mirror(\"web\", 10).{destination};"),
            "the route answers itself: there is no request to copy",
        );
    }
}

#[test]
fn mirrors_are_taken() {
    let program = try_load(
        "route(\"/a\").mirror(\"web\", 12.5).to(\"web\");
         route(\"/b\").mirror(\"web\", #{ percent: 50, body: \"1MiB\", timeout: \"250ms\" }).to(\"web\");
         route(\"/c\").mirror(\"web\", #{}).to(|req| \"web\");
         route(\"/d\").to(\"web\");",
    );
    let program = match program {
        Ok(program) => program,
        Err(errors) => panic!("{errors}"),
    };
    let mut mirrors: Vec<_> = program
        .program
        .routes
        .iter()
        .map(|route| route.mirror.clone())
        .collect();
    let rules = |index: usize| mirrors[index].as_ref().map(|mirror| mirror.rules);
    let half = u64::MAX / 2;
    assert!(
        rules(0).is_some_and(|rules| rules.picks(half / 4 - 1_000_000_000_000)
            && !rules.picks(half / 4 + 1_000_000_000_000))
    );
    assert!(rules(1).is_some_and(|rules| {
        let rest = (rules.body, rules.timeout.as_millis());
        rest == (1024 * 1024, 250) && rules.picks(half / 2) && !rules.picks(half + half / 2)
    }));
    assert!(rules(2).is_some_and(|rules| rules.picks(u64::MAX) && rules.body == 64 * 1024));
    assert_eq!(mirrors.pop().flatten(), None);
}

#[test]
fn of_routes() {
    finds(
        "route(\"/a\").to(\"wbe\");",
        "routes.rhai:1:17: error: there is no pool `wbe` (did you mean `web`?)",
    );
    finds(
        "\n  route(\"/a\");",
        "routes.rhai:2:3: error: the route goes nowhere",
    );
    finds("route(\"/a{b\").to(\"web\");", "routes.rhai:1:");
    finds("route(\"a\").to(\"web\");", "routes.rhai:1:8: error:");
    finds(
        "route(\"/a/{x}\").rewrite(\"/{y}\").to(\"web\");",
        "routes.rhai:1:",
    );
    finds(
        "route(\"/a\").to(\"web\").respond(200);",
        "already goes elsewhere",
    );
    finds(
        "route(\"/a\").methods([\"get\"]).to(\"web\");",
        "write `GET`",
    );
    finds(
        "route(\"/a\").timeout(\"3\").to(\"web\");",
        "`3` is no time",
    );
    finds("route(\"/a\").timeout(\"0s\").to(\"web\");", "zero");
    finds(
        "route(\"/a\").header(\"x\", \"1\").to(\"web\");",
        ".if_header",
    );
    finds(
        "route(\"/a\").retries(11).to(\"web\");",
        "`.retries` must be between 0 and 10, not 11",
    );
    finds(
        "route(\"/a\").retries(1).retries(2).to(\"web\");",
        "the route has a `.retries` already",
    );
    finds(
        "route(\"/a\").retries(1, #{ after: \"503\" }).to(\"web\");",
        "`retries` has no option `after`",
    );
    finds(
        "route(\"/a\").retries(1, #{ on: [\"resett\"] }).to(\"web\");",
        "\"resett\" is nothing to try again after (did you mean \"reset\"?)",
    );
    finds(
        "route(\"/a\").set_header(\"x y\", \"1\").to(\"web\");",
        "no header name",
    );
    finds(
        "route(\"/a\").set_header(\"content-length\", \"1\").to(\"web\");",
        "belongs to the connection",
    );
    finds("route(\"/a\").respond(99);", "99 is no status");
    finds("route(\"/a\").redirect(200, \"/b\");", "no redirect");
    finds(
        "route(\"/a/{x}\").redirect(302, \"{x}\");",
        "a target begins with",
    );
    finds("route(\"/a\").to(#{ web: 0 });", "above 0");
    finds("route(\"/a\").to(#{ web: -1 });", "whole number");
    finds(
        "route(\"/a\").from(\"10.0.0/8\").to(\"web\");",
        "no network",
    );
}

#[test]
fn several_at_once() {
    let found = errors(
        "route(\"/a\").methods([\"get\"]).to(\"web\");\nroute(\"/b\").timeout(\"x\").to(\"web\");",
    );
    assert_eq!(found.lines().count(), 2, "{found}");
}

#[test]
fn of_sites_and_pools() {
    finds("site(\"a:80\").route(\"/\").to(\"web\");", "routes.rhai:1:");
    finds(
        "site([\"a\", \"b\"]); site(\"b\").route(\"/\").to(\"web\");",
        "already has a site",
    );
    finds("pool(\"web\", [\"127.0.0.1:1\"]);", "edgewright.toml too");
    finds("pool(\"p\", []);", "no targets");
}

#[test]
fn of_functions() {
    finds(
        "route(\"/a\").on_request(gate).to(\"web\"); fn gate(req, x) { }",
        "a function for `on_request` takes 1 (req), this one takes 2",
    );
    finds(
        "route(\"/a\").on_request(gaet).to(\"web\"); fn gate(req) { }",
        "gate",
    );
    finds(
        "route(\"/a\").on_response(|req| {}).to(\"web\");",
        "takes 2 (req, res), this one takes 1",
    );
    finds(
        "let s = site(\"a\"); route(\"/a\").on_request(|req| { s.route(\"/\"); }).to(\"web\");",
        "captures a value of type",
    );
    finds("const S = site(\"a\");", "use `let` for a route or a site");
}

#[test]
fn of_inputs() {
    finds("const K = table(\"nokeys.json\");", "no file `nokeys.json`");
    finds(
        "const E = env(\"NOPE\");",
        "the environment variable `NOPE` is not set",
    );
    finds("const R = regex(\"(\");", "bad pattern");
    finds("let x = ;", "routes.rhai:1:9");
    finds("\n\nthrow \"stop\";", "routes.rhai:3:");
    finds("loop {}", "routes.rhai:1:");
}

#[test]
fn routes_that_never_match_are_warned_of() {
    let warnings = |source| {
        let loaded = try_load(source).unwrap_or_else(|found| panic!("{found}"));
        loaded
            .warnings
            .iter()
            .map(|w| w.summary())
            .collect::<Vec<_>>()
    };
    let found = warnings("route(\"/a/{x}\").to(\"web\");\nroute(\"/a/{y}\").to(\"api\");");
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("routes.rhai:2:1: warning: this route can never match"),
        "{found:?}"
    );
    let none = warnings(
        "route(\"/a\").methods([\"GET\"]).to(\"web\");\nroute(\"/a\").to(\"api\");\nroute(\"/b\").to(\"api\");",
    );
    assert!(none.is_empty(), "{none:?}");
}
