//! Which target of a pool gets a request: weights, backups, zones, hashes, and what a script picks.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use crate::support::client::{Connection, Request, get};
use crate::support::launch::{Builder, serving};
use crate::support::proxy::Proxy;
use crate::support::upstream::{Upstream, ok};
use crate::support::wait::{Gate, SOON};

const TO_WEB: &str = r#"route("/{*rest}").to("web");"#;

/// An address where nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// A proxy with a pool `web` of these targets.
fn web(routes: &str, targets: &[String], more: &str) -> Builder {
    let targets = targets.join(", ");
    serving(routes).settings(&format!("[pools.web]\ntargets = [{targets}]\n{more}"))
}

fn plain(upstream: &Upstream) -> String {
    format!("\"{}\"", upstream.address())
}

fn with(upstream: &Upstream, traits: &str) -> String {
    format!("{{ target = \"{}\", {traits} }}", upstream.address())
}

/// How often each answered, of `times` requests on one connection.
fn answers(proxy: &Proxy, request: &Request, times: usize) -> BTreeMap<String, usize> {
    let mut connection = Connection::open(proxy.address()).unwrap();
    let mut answers = BTreeMap::new();
    for _ in 0..times {
        let answer = connection.send(request).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        *answers.entry(answer.text()).or_default() += 1;
    }
    answers
}

fn counts<const N: usize>(pairs: [(&str, usize); N]) -> BTreeMap<String, usize> {
    pairs.map(|(name, count)| (name.to_owned(), count)).into()
}

#[test]
fn weights_are_kept_exactly_by_a_round_robin() {
    let one = Upstream::fixed("one");
    let two = Upstream::fixed("two");
    let targets = [with(&one, "weight = 3"), plain(&two)];
    let proxy = web(TO_WEB, &targets, "balance = \"round_robin\"").start();
    assert_eq!(
        answers(&proxy, &get("/"), 40),
        counts([("one", 30), ("two", 10)])
    );
    let status = proxy.status();
    let endpoints = status["pools"].as_array().unwrap()[0]["endpoints"]
        .as_array()
        .unwrap();
    let weights: Vec<u64> = endpoints
        .iter()
        .map(|e| e["weight"].as_u64().unwrap())
        .collect();
    assert_eq!(weights.iter().sum::<u64>(), 4, "{status}");
}

#[test]
fn weights_are_about_kept_by_chance_and_load() {
    let one = Upstream::fixed("one");
    let two = Upstream::fixed("two");
    for balance in ["random", "least_requests"] {
        let targets = [with(&one, "weight = 3"), plain(&two)];
        let proxy = web(TO_WEB, &targets, &format!("balance = \"{balance}\"")).start();
        let two = answers(&proxy, &get("/"), 400)["two"];
        // 100 are expected, with a deviation of 9.
        assert!((46..=154).contains(&two), "{balance}: {two}");
    }
}

#[test]
fn a_weight_of_zero_gets_nothing_in_either_file() {
    let one = Upstream::fixed("one");
    let two = Upstream::fixed("two");
    let routes = format!(
        r#"
        pool("own", ["{}", #{{ target: "{}", weight: 0 }}]);
        pool("empty", [#{{ target: "{}", weight: 0 }}]);
        route("/web").to("web");
        route("/own").to("own");
        route("/empty").to("empty");
        "#,
        one.address(),
        two.address(),
        two.address(),
    );
    let proxy = web(&routes, &[plain(&one), with(&two, "weight = 0")], "").start();
    for target in ["/web", "/own"] {
        assert_eq!(answers(&proxy, &get(target), 30), counts([("one", 30)]));
    }
    let refused = proxy.get("/empty");
    assert_eq!(refused.status, 503);
    assert!(
        refused.text().contains("all targets have the weight 0"),
        "{}",
        refused.text()
    );
    assert_eq!(two.hits(), 0);
}

#[test]
fn a_backup_stands_in_only_when_no_other_is_left() {
    let spare = Upstream::fixed("spare");
    let main = Upstream::fixed("main");
    let backup = with(&spare, "backup = true");
    let proxy = web(TO_WEB, &[backup.clone(), plain(&main)], "").start();
    assert_eq!(answers(&proxy, &get("/"), 30), counts([("main", 30)]));

    let proxy = web(TO_WEB, &[backup.clone(), format!("\"{}\"", nobody())], "").start();
    assert_eq!(answers(&proxy, &get("/"), 10), counts([("spare", 10)]));
    assert!(proxy.metric("upstream_connect_failures_total", &[]) >= 10.0);

    // Alone, it is all there is.
    let proxy = web(TO_WEB, &[backup], "").start();
    assert_eq!(answers(&proxy, &get("/"), 3), counts([("spare", 3)]));
}

#[test]
fn the_own_zone_comes_first() {
    let near = Upstream::fixed("near");
    let far = Upstream::fixed("far");
    let targets = [
        with(&near, "zone = \"eu-1a\""),
        with(&far, "zone = \"eu-1b\""),
    ];
    let proxy = || web(TO_WEB, &targets, "balance = \"round_robin\"");
    let zone = |zone: &str| format!("[server]\nzone = \"{zone}\"");
    let all = |name: &str| counts([(name, 20)]);
    let even = counts([("far", 10), ("near", 10)]);

    let named = proxy().settings(&zone("eu-1a")).start();
    assert_eq!(answers(&named, &get("/"), 20), all("near"));
    // What a pod knows of itself; the file knows better.
    let known = proxy().environment("EDGEWRIGHT_ZONE", "eu-1b").start();
    assert_eq!(answers(&known, &get("/"), 20), all("far"));
    let both = proxy()
        .settings(&zone("eu-1a"))
        .environment("EDGEWRIGHT_ZONE", "eu-1b");
    assert_eq!(answers(&both.start(), &get("/"), 20), all("near"));
    // Where nobody is near, all are far; and without a zone nobody is.
    let elsewhere = proxy().settings(&zone("us-1")).start();
    assert_eq!(answers(&elsewhere, &get("/"), 20), even);
    let nowhere = proxy().environment("EDGEWRIGHT_ZONE", "").start();
    assert_eq!(answers(&nowhere, &get("/"), 20), even);

    // Who is near and can't be reached is no reason to give up.
    let gone = format!("{{ target = \"{}\", zone = \"eu-1a\" }}", nobody());
    let failing = web(TO_WEB, &[gone, plain(&far)], "")
        .settings(&zone("eu-1a"))
        .start();
    assert_eq!(answers(&failing, &get("/"), 5), counts([("far", 5)]));
}

#[test]
fn equal_requests_get_the_same_target_on_all_replicas() {
    let upstreams = ["one", "two", "three"].map(Upstream::fixed);
    let targets: Vec<String> = upstreams.iter().map(plain).collect();
    for balance in ["hash", "ring_hash"] {
        let more = format!("balance = \"{balance}\"\nhash_on = \"header x-tenant\"");
        let first = web(TO_WEB, &targets, &more).start();
        let second = web(TO_WEB, &targets, &more).start();
        let mut seen = BTreeMap::new();
        for tenant in 0..60 {
            let request = get("/").header("x-tenant", &format!("tenant-{tenant}"));
            let name = first.send(&request).text();
            for proxy in [&first, &second] {
                assert_eq!(proxy.send(&request).text(), name, "{balance}");
            }
            *seen.entry(name).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 3, "{balance}: {seen:?}");
        // Who has no tenant is not sent to one target with all others.
        assert_eq!(answers(&first, &get("/"), 60).len(), 3);
    }
}

#[test]
fn a_popular_key_does_not_drown_its_target() {
    let gate = Gate::new();
    let slow = |name: &'static str| {
        let gate = gate.clone();
        Upstream::start(move |seen| {
            if seen.target() == "/slow" {
                gate.pass(SOON);
            }
            ok(name)
        })
    };
    let upstreams = [slow("one"), slow("two")];
    let targets: Vec<String> = upstreams.iter().map(plain).collect();
    let more = "balance = \"hash\"\nhash_on = \"header x-tenant\"\nload_bound = 1.0";
    let proxy = web(TO_WEB, &targets, more).start();
    let address = proxy.address();
    let own = proxy.send(&get("/").header("x-tenant", "acme")).text();
    // A slot is given back a moment after the answer.
    let idle = || {
        crate::support::wait::until("idle", SOON, || {
            proxy.metric("upstream_requests_in_flight", &[("pool", "web")]) == 0.0
        });
    };
    idle();
    let ask = |target: &str| {
        let request = get(target).header("x-tenant", "acme");
        thread::spawn(move || request.send(address).text())
    };
    let hits = || upstreams.iter().map(Upstream::hits).sum::<usize>();
    let mut held = Vec::new();
    for _ in 0..4 {
        let before = hits();
        held.push(ask("/slow"));
        crate::support::wait::until("a request", SOON, || hits() > before);
    }
    gate.open();
    let names: Vec<String> = held
        .into_iter()
        .map(|asked| asked.join().unwrap())
        .collect();
    // Two each: no more than the mean.
    assert_eq!(
        names.iter().filter(|name| **name == own).count(),
        2,
        "{names:?}"
    );
    // Idle again, everybody goes where he belongs.
    idle();
    assert_eq!(proxy.send(&get("/").header("x-tenant", "acme")).text(), own);
}

#[test]
fn a_script_picks_by_a_value_and_by_address() {
    let upstreams = ["one", "two", "three"].map(Upstream::fixed);
    let mut targets: Vec<String> = upstreams.iter().map(plain).collect();
    targets.push(format!("{{ target = \"{}\", weight = 0 }}", nobody()));
    let proxy = web(
        r#"
        route("/key/{key}").to(|req| pick("web", #{ key: req.param("key") }));
        route("/none").to(|req| pick("web", #{ key: req.header("x-none"), target: () }));
        route("/at").to(|req| pick("web", #{ target: req.header("x-target") }));
        route("/only").to(|req| pick("web", #{ target: req.header("x-target"), only: true }));
        route("/last").to(|req, attempt| {
            let known = attempt.targets.filter(|t| t.pool == "web").map(|t| t.address);
            req.set_header("x-known", `${known.len}`);
            pick("web", #{ target: req.header("x-target") })
        });
        route("/misuse").to(|req| pick("web", #{ target: 1 }));
        "#,
        &targets,
        "",
    )
    .start();
    let mut seen = BTreeMap::new();
    for key in 0..40 {
        let target = format!("/key/{key}");
        let name = proxy.text(&target);
        assert_eq!(answers(&proxy, &get(&target), 5), counts([(&name, 5)]));
        *seen.entry(name).or_insert(0) += 1;
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert!(answers(&proxy, &get("/none"), 60).len() == 3);

    for (upstream, name) in upstreams.iter().zip(["one", "two", "three"]) {
        let address = upstream.address().to_string();
        for path in ["/at", "/only", "/last"] {
            let request = get(path).header("x-target", &address);
            assert_eq!(answers(&proxy, &request, 5), counts([(name, 5)]));
        }
        assert_eq!(upstream.last_request().headers("x-known"), ["4"]);
    }
    // Unknown, or down: another one; or nobody else.
    let down = targets[3].split('"').nth(1).unwrap();
    for address in ["10.255.255.1:80", down] {
        let request = get("/at").header("x-target", address);
        assert_eq!(proxy.send(&request).status, 200, "{address}");
    }
    let refused = proxy.send(&get("/only").header("x-target", "10.255.255.1:80"));
    assert_eq!(refused.status, 503);
    assert!(refused.text().contains("the chosen target is not usable"));
    assert_eq!(
        proxy.send(&get("/only").header("x-target", down)).status,
        502
    );
    assert_eq!(proxy.get("/misuse").status, 500);
}

#[test]
fn what_a_script_picks_is_checked_at_load() {
    for (picked, expected) in [
        ("pick(\"wbe\", #{ key: 1 })", "did you mean `web`?"),
        ("pick(\"web\", #{ kye: 1 })", "did you mean `key`?"),
        (
            "pick(\"web\", #{ only: true })",
            "`only` of `pick` needs a `target`",
        ),
        (
            "if true { return 5; } else { pick(\"web\", #{}) }",
            "`.to` wants the name of a pool",
        ),
    ] {
        let text = format!("pool(\"web\", [\"a:1\"]);\nroute(\"/\").to(|req| {picked});\n");
        refused(&text, expected);
    }
    refused(
        "pool(\"web\", [\"a:1\"]);\nroute(\"/\").on_request(|req| { let p = pick(\"web\", #{}); }).to(\"web\");\n",
        "it says where a request goes",
    );
    refused(
        "pool(\"web\", [#{ target: \"a:1\", weight: 1001 }]);\nroute(\"/\").to(\"web\");\n",
        "between 0 and 1000",
    );
    refused(
        "pool(\"web\", [#{ weight: 1 }]);\nroute(\"/\").to(\"web\");\n",
        "says where it is",
    );
    refused(
        "pool(\"web\", [#{ target: \"a:1\", zone: \"a b\" }]);\nroute(\"/\").to(\"web\");\n",
        "no name of a zone",
    );
    refused(
        "pool(\"web\", [\"a:1\"]);\nroute(\"/\").to(#{ web: 1 }, #{ by: \"hedaer x\" });\n",
        "did you mean `header`?",
    );
}

fn refused(program: &str, expected: &str) {
    let folder = tempfile::TempDir::new().unwrap();
    std::fs::write(folder.path().join("routes.rhai"), program).unwrap();
    let ended = crate::support::command::edgewright(["check".as_ref(), folder.path()]);
    assert_eq!(ended.code, Some(1), "{program}: {ended:?}");
    assert!(ended.text().contains(expected), "{program}: {ended:?}");
}

#[test]
fn a_split_by_what_a_request_has_needs_no_cookie() {
    let old = Upstream::fixed("old");
    let new = Upstream::fixed("new");
    let start = |weights: &str| {
        let routes = format!("route(\"/{{*rest}}\").to({weights}, #{{ by: \"header x-user\" }});");
        serving(&routes)
            .pool("old", old.address())
            .pool("new", new.address())
            .start()
    };
    let half = start("#{ \"old\": 50, \"new\": 50 }");
    let more = start("#{ \"old\": 40, \"new\": 60 }");
    let mut newer = 0;
    let mut back = 0;
    for user in 0..300 {
        let request = get("/").header("x-user", &format!("user-{user}"));
        let side = half.send(&request).text();
        assert_eq!(half.send(&request).text(), side);
        newer += usize::from(side == "new");
        // Who was on the growing side stays there.
        back += usize::from(side == "new" && more.send(&request).text() != "new");
    }
    // 150 are expected, with a deviation of 9.
    assert!((96..=204).contains(&newer), "{newer}");
    assert_eq!(back, 0);
    assert_eq!(answers(&half, &get("/"), 100).len(), 2);
}

/// One slow answer is enough to know, and to send the others elsewhere.
#[test]
fn a_slow_target_is_left_at_its_first_slow_answer() {
    let slow = Upstream::start(|_| {
        // That is what is slow about it.
        thread::sleep(Duration::from_secs(1));
        ok("slow")
    });
    let one = Upstream::fixed("one");
    let two = Upstream::fixed("two");
    let targets = [plain(&slow), plain(&one), plain(&two)];
    let proxy = web(TO_WEB, &targets, "balance = \"peak_ewma\"").start();
    let answers = answers(&proxy, &get("/"), 300);
    // A second one only where another target needed as long as this.
    let slow_ones = answers.get("slow").copied().unwrap_or_default();
    assert!((1..=2).contains(&slow_ones), "{answers:?}");
    let status = proxy.status();
    let endpoints = status["pools"][0]["endpoints"].as_array().unwrap();
    let slowest = endpoints.iter().max_by_key(|e| e["latency_ms"].as_u64());
    assert_eq!(slowest.unwrap()["address"], slow.address().to_string());
}

/// A target that joins others begins with a small share.
#[test]
fn a_target_that_joins_begins_slowly() {
    let one = Upstream::fixed("one");
    let two = Upstream::fixed("two");
    // As long as the test can take, so that it always looks at the beginning.
    let more = "balance = \"round_robin\"\nslow_start = \"1day\"";
    let proxy = web(TO_WEB, &[plain(&one)], more).start();
    assert_eq!(answers(&proxy, &get("/"), 10), counts([("one", 10)]));
    let alone = format!("[{}]", plain(&one));
    let settings = proxy
        .settings()
        .replace(&alone, &format!("[{}, {}]", plain(&one), plain(&two)));
    std::fs::write(proxy.file("edgewright.toml"), settings).unwrap();
    assert_eq!(proxy.reload().0, 200);
    let answers = answers(&proxy, &get("/"), 1000);
    // A tenth of the half: 50 are expected, with a deviation of 7.
    let two = answers.get("two").copied().unwrap_or_default();
    assert!((15..=85).contains(&two), "{answers:?}");
}
