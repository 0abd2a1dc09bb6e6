//! `rate`, `counter` and `cache`: their names, their life over reloads, and what hooks do with them.

#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use edgewright_script::{
    load::{Inputs, load},
    state::{Clock, ManualClock, StateSample, StateStore},
};

use support::{End, Runner, errors, inputs, program, program_of};

fn with_store(source: &str, store: &StateStore) -> Inputs {
    Inputs {
        state: store.clone(),
        ..inputs(source)
    }
}

fn load_with(source: &str, store: &StateStore) -> Runner {
    program_of(&with_store(source, store))
}

/// A store whose clock stands still.
fn store() -> (StateStore, ManualClock) {
    let clock = ManualClock::default();
    (StateStore::with_clock(Clock::from(&clock)), clock)
}

/// What the store holds, as `kind name keys`.
fn held(store: &StateStore) -> Vec<String> {
    let samples = store.samples().into_iter();
    let line = |StateSample {
                    kind, name, keys, ..
                }| format!("{kind} {name} {keys}");
    samples.map(line).collect()
}

/// A program whose answer is what `body` makes of `req`.
fn answering(constants: &str, body: &str) -> String {
    format!("{constants}\nroute(\"/{{*rest}}\").respond(|req| respond(200, \"\" + {{ {body} }}));")
}

fn text(runner: &mut Runner, target: &str) -> String {
    match runner.get(target) {
        End::Answer(200, text) => text,
        other => panic!("{other:?}"),
    }
}

/// Why the hook failed.
fn failure(source: &str) -> String {
    let mut runner = program(source);
    let mut request = edgewright_script::memory::MemoryRequest::new("GET", "any.example", "/");
    runner.run(&mut request).unwrap_err().to_string()
}

fn limited(rate: &str) -> String {
    format!(
        "const LIMIT = {rate};
         route(\"/{{*rest}}\").on_request(|req| {{
             let key = req.query(\"key\");
             if !LIMIT.allow(key) {{ return respond(429, LIMIT.retry_after(key).to_string()); }}
         }}).to(\"web\");"
    )
}

fn passes(runner: &mut Runner, key: &str) -> bool {
    match runner.get(&format!("/?key={key}")) {
        End::Pool(_) => true,
        End::Answer(429, _) => false,
        other => panic!("{other:?}"),
    }
}

/// How many of `hits` pass.
fn passed(runner: &mut Runner, key: &str, hits: usize) -> usize {
    (0..hits).filter(|_| passes(runner, key)).count()
}

#[test]
fn a_rate_limits_each_key_and_says_when_to_come_back() {
    let (store, clock) = store();
    let mut runner = load_with(&limited("rate(2, \"1m\")"), &store);
    assert_eq!(passed(&mut runner, "a", 5), 2);
    assert_eq!(passed(&mut runner, "b", 1), 1);
    clock.advance(Duration::from_millis(59_001));
    assert_eq!(
        runner.get("/?key=a"),
        End::Answer(429, "1".to_owned()),
        "less than a second is one second"
    );
    clock.advance(Duration::from_millis(999));
    assert_eq!(passed(&mut runner, "a", 5), 2);
    assert_eq!(held(&store), ["rate LIMIT 2"]);
}

#[test]
fn numbers_are_keys_too_and_remaining_counts_down() {
    let (store, _) = store();
    let source = answering(
        "const LIMIT = rate(3, \"1m\", #{ algorithm: \"token_bucket\", burst: 5 });",
        "let before = LIMIT.remaining(7); let a = LIMIT.allow(7); let b = LIMIT.allow(\"7\");
         `${before} ${a} ${b} ${LIMIT.remaining(\"7\")} ${LIMIT.remaining(\"8\")} ${LIMIT.retry_after(7)}`",
    );
    assert_eq!(
        text(&mut load_with(&source, &store), "/"),
        "5 true true 3 5 0"
    );
}

#[test]
fn what_a_rate_counted_survives_a_reload() {
    let (store, clock) = store();
    let mut first = load_with(&limited("rate(5, \"1m\")"), &store);
    assert_eq!(passed(&mut first, "a", 3), 3);

    // Both serve for a while, and share what was used; each by its own limit.
    let mut second = load_with(&limited("rate(7, \"1m\", #{ max_keys: 5000 })"), &store);
    assert_eq!(passed(&mut second, "a", 1), 1);
    assert_eq!(passed(&mut first, "a", 5), 1);
    assert_eq!(passed(&mut second, "a", 5), 2);
    drop(first);
    assert_eq!(passed(&mut second, "a", 1), 0);

    // Another window begins anew, and so does another algorithm.
    let mut third = load_with(&limited("rate(7, \"2m\")"), &store);
    assert_eq!(passed(&mut third, "a", 9), 7);
    let sliding = "rate(7, \"2m\", #{ algorithm: \"sliding\" })";
    let mut fourth = load_with(&limited(sliding), &store);
    assert_eq!(passed(&mut fourth, "a", 9), 7);
    drop((second, third));
    let mut fifth = load_with(&limited(sliding), &store);
    drop(fourth);
    assert_eq!(passed(&mut fifth, "a", 1), 0);
    clock.advance(Duration::from_secs(240));
    assert_eq!(passed(&mut fifth, "a", 9), 7);
}

#[test]
fn state_lives_as_long_as_a_program_uses_it() {
    let (store, _) = store();
    let source = limited("rate(2, \"1m\")");
    let mut first = load_with(&source, &store);
    assert_eq!(passed(&mut first, "a", 5), 2);
    let without = load_with("route(\"/\").to(\"web\");", &store);
    assert_eq!(held(&store), ["rate LIMIT 1"], "the first one still serves");
    drop(first);
    assert!(held(&store).is_empty());
    drop(without);
    let mut again = load_with(&source, &store);
    assert_eq!(passed(&mut again, "a", 5), 2);
}

#[test]
fn a_program_that_is_refused_changes_nothing() {
    let (store, _) = store();
    let mut serving = load_with(&limited("rate(2, \"1m\")"), &store);
    assert_eq!(passed(&mut serving, "a", 5), 2);
    for wrong in [
        // At the end of the load, and at the lint's end.
        "const LIMIT = rate(9, \"9m\"); const MORE = counter(); route(\"/\");",
        "const LIMIT = rate(9, \"9m\"); const MORE = counter(); route(\"/\").to(\"nowhere\");",
    ] {
        assert!(load(&with_store(wrong, &store)).is_err());
        assert_eq!(held(&store), ["rate LIMIT 1"]);
    }
    assert!(!passes(&mut serving, "a"));
}

#[test]
fn another_kind_under_the_same_name_begins_anew() {
    let (store, _) = store();
    let _rate = load_with(&limited("rate(2, \"1m\")"), &store);
    let source = answering("const LIMIT = counter();", "LIMIT.add(\"a\", 1)");
    let mut counter = load_with(&source, &store);
    assert_eq!(text(&mut counter, "/"), "1");
    assert_eq!(held(&store), ["rate LIMIT 0", "counter LIMIT 1"]);
}

#[test]
fn entries_of_maps_have_the_path_as_name() {
    let (store, _) = store();
    let source = answering(
        "const LIMITS = #{ gold: rate(3, \"1m\"), other: #{ free: rate(1, \"1m\") } };
         const SAME = LIMITS.gold;
         fn used(rate) { let n = 0; for i in 0..5 { if rate.allow(\"k\") { n += 1; } } n }",
        "`${used(LIMITS.gold)} ${used(LIMITS.other.free)} ${used(SAME)}`",
    );
    let mut runner = load_with(&source, &store);
    assert_eq!(text(&mut runner, "/"), "3 1 0");
    assert_eq!(
        held(&store),
        ["rate LIMITS.gold 1", "rate LIMITS.other.free 1"]
    );
    // The order of a map doesn't matter, nor does what stands around.
    let source = answering(
        "const X = rate(9, \"9m\"); const LIMITS = #{ more: 1, gold: rate(3, \"1m\") };",
        "LIMITS.gold.remaining(\"k\")",
    );
    assert_eq!(text(&mut load_with(&source, &store), "/"), "0");
}

#[test]
fn a_closure_and_a_function_use_the_state_of_the_constant() {
    let (store, _) = store();
    let source = "const HITS = counter();
        let mine = HITS;
        for name in [\"a\", \"b\"] {
            route(\"/\" + name).respond(|req| respond(200, \"\" + mine.add(name, 1)));
        }
        route(\"/sum\").respond(sum);
        fn sum(req) { respond(200, \"\" + (HITS.get(\"a\") + HITS.get(\"b\"))) }";
    let mut runner = load_with(source, &store);
    assert_eq!(text(&mut runner, "/a"), "1");
    assert_eq!(text(&mut runner, "/a"), "2");
    assert_eq!(text(&mut runner, "/b"), "1");
    assert_eq!(text(&mut runner, "/sum"), "3");
}

#[test]
fn what_has_no_name_is_refused_with_its_place() {
    for (source, place) in [
        (
            "let l = rate(5, \"1s\"); route(\"/\").when(|req| l.allow(req.path)).to(\"web\");",
            "1:9",
        ),
        (
            "for n in [1, 2] {\n  let l = rate(n, \"1s\"); route(`/${n}`).when(|req| l.allow(req.path)).to(\"web\");\n}",
            "2:11",
        ),
        ("const L = [1,\n rate(5, \"1s\")];", "2:2"),
        ("const T = table(#{ gold: rate(5, \"1s\") });", "1:26"),
        (
            "const F = make(); fn make() { let r = rate(5, \"1s\"); |req| r.allow(req.path) }",
            "1:39",
        ),
        ("rate(5, \"1s\");", "1:1"),
        (
            "const A = rate(5, \"1s\");\nconst A = rate(6, \"1s\");",
            "2:11",
        ),
    ] {
        let found = errors(source);
        assert!(
            found.contains(&format!(
                "routes.rhai:{place}: error: this rate has no name"
            )),
            "{source}: {found}"
        );
    }
    let found = errors("let c = counter(); let d = cache(\"1s\", 5);");
    assert!(
        found.contains("1:9: error: this counter has no name"),
        "{found}"
    );
    assert!(
        found.contains("1:28: error: this cache has no name"),
        "{found}"
    );
    assert!(found.contains("counter(\"name\")"), "{found}");
}

#[test]
fn a_counter_can_have_a_name_of_its_own() {
    let (store, _) = store();
    let source = "for tenant in [\"a\", \"b\"] {
            let hits = counter(tenant);
            route(\"/\" + tenant).respond(|req| respond(200, \"\" + hits.add(\"n\", 1)));
        }";
    let mut first = load_with(source, &store);
    assert_eq!(text(&mut first, "/a"), "1");
    assert_eq!(text(&mut first, "/b"), "1");
    // It is found again under it, whatever holds it.
    let source = answering(
        "const HITS = counter(\"a\"); const TOO = counter(\"a\", #{ max_keys: 1 });",
        "`${HITS.add(\"n\", 1)} ${TOO.get(\"n\")}`",
    );
    assert_eq!(text(&mut load_with(&source, &store), "/"), "2 2");
}

#[test]
fn a_full_counter_says_so_and_forgets_nothing() {
    let (store, _) = store();
    let source = answering(
        "const C = counter(#{ max_keys: 2 });",
        "let all = `${C.add(\"a\", 2)} ${C.add(\"b\", -5)} ${C.add(\"a\", 1)}`;
         try { C.add(\"c\", 1); all += \" added\"; } catch (error) { all += ` ${error}`; }
         C.remove(\"b\");
         all + ` ${C.add(\"c\", 4)} ${C.get(\"b\")} ${C.get(\"a\")}`",
    );
    let said = text(&mut load_with(&source, &store), "/");
    assert_eq!(
        said,
        "2 -5 3 the counter is full: remove keys, or let it hold more with `max_keys` 4 0 3"
    );
    let source = answering(
        "const C = counter();",
        "C.add(\"a\", 9223372036854775807); C.add(\"a\", 1)",
    );
    assert_eq!(text(&mut program(&source), "/"), "9223372036854775807");
}

#[test]
fn a_key_that_is_absent_is_an_error_and_never_shared() {
    for call in [
        "LIMIT.allow(req.header(\"x\"))",
        "LIMIT.remaining(())",
        "LIMIT.retry_after(())",
        "HITS.add((), 1)",
        "HITS.get(())",
        "HITS.remove(())",
        "KEPT.set((), 1)",
        "KEPT.remove(())",
        "KEPT.get_or((), || 1)",
    ] {
        let source = answering(
            "const LIMIT = rate(5, \"1s\"); const HITS = counter(); const KEPT = cache(\"1m\", 10);",
            &format!("{call}; 1").replace(
                "LIMIT.allow(req.header(\"x\"));",
                "let x = LIMIT.allow(req.header(\"x\"));",
            ),
        );
        let failed = failure(&source);
        assert!(failed.contains("the key is `()`"), "{call}: {failed}");
    }
    let source = answering(
        "const KEPT = cache(\"1m\", 10);",
        "KEPT.get(req.header(\"x\")) == ()",
    );
    assert_eq!(text(&mut program(&source), "/"), "true");
}

#[test]
fn long_keys_are_keys() {
    let source = answering(
        "const HITS = counter();",
        "let long = \"a\"; long.pad(5000, \"a\"); let other = long + \"b\";
         `${HITS.add(long, 1)} ${HITS.add(other, 1)} ${HITS.add(long, 1)}`",
    );
    assert_eq!(text(&mut program(&source), "/"), "1 1 2");
}

#[test]
fn wrong_arguments_are_errors_with_their_place() {
    for (source, message) in [
        (
            "const L = rate(0, \"1s\");",
            "the limit of `rate` must be between 1 and 1000000000, not 0",
        ),
        (
            "const L = rate(5, \"1x\");",
            "`1x` is no time; write \"1500ms\" or \"1m\"",
        ),
        (
            "const L = rate(5, \"0s\");",
            "the window of `rate` must be between 1ms and 366 days, not 0s",
        ),
        (
            "const L = rate(5, \"1s\", #{ algoritm: \"sliding\" });",
            "`rate` has no option `algoritm` (did you mean `algorithm`?); it has algorithm, burst, max_keys",
        ),
        (
            "const L = rate(5, \"1s\", #{ algorithm: \"slidin\" });",
            "there is no algorithm `slidin` (did you mean \"sliding\"?)",
        ),
        (
            "const L = rate(5, \"1s\", #{ burst: 3 });",
            "`burst` is the size of a bucket",
        ),
        (
            "const L = rate(5, \"1s\", #{ max_keys: \"9\" });",
            "`max_keys` of `rate` is a whole number, not a value of type `string`",
        ),
        (
            "const L = rate(5, \"1s\", #{ max_keys: 0 });",
            "`max_keys` of `rate` must be between 1 and 10000000, not 0",
        ),
        (
            "const L = counter(\"\");",
            "the name of a counter can't be empty",
        ),
        (
            "const L = counter(#{ burst: 1 });",
            "`counter` has no option `burst`",
        ),
        (
            "const L = cache(\"1 day\", 0);",
            "the entries of `cache` must be between 1 and 10000000, not 0",
        ),
        (
            "const L = cache(\"1h\", 9, #{ max_bytes: 9 });",
            "`max_bytes` of `cache` must be between 1024 and",
        ),
    ] {
        let found = errors(source);
        assert!(found.contains("routes.rhai:1:11"), "{source}: {found}");
        assert!(found.contains(message), "{source}: {found}");
    }
}

#[test]
fn there_is_no_state_while_the_program_loads() {
    let found =
        errors("const LIMIT = rate(5, \"1s\");\nif LIMIT.allow(\"x\") { pool(\"y\", [\"a:1\"]); }");
    assert!(found.contains("routes.rhai:2:10"), "{found}");
    assert!(found.contains("can only be used in hooks"), "{found}");
}

#[test]
fn state_is_made_at_the_top_level_only() {
    for call in [
        "rate(5, \"1s\")",
        "rate(5, \"1s\", #{})",
        "counter()",
        "counter(\"x\")",
        "counter(\"x\", #{})",
        "cache(\"1s\", 5)",
        "cache(\"1s\", 5, #{})",
    ] {
        // In so many words it is refused at load.
        let make = format!("const MAKE = || {call};");
        let failed = failure(&answering(&make, "let x = MAKE.call(); 1"));
        assert!(
            failed.contains("stands at the top level"),
            "{call}: {failed}"
        );
    }
}

#[test]
fn a_cache_keeps_plain_data_for_its_time() {
    let (store, clock) = store();
    let source = "const KEPT = cache(\"10s\", 100);
        route(\"/set\").respond(|req| {
            KEPT.set(\"k\", #{ text: \"t\", list: [1, 2.5, true, ()], inner: #{ c: 'c' } });
            KEPT.set(\"gone\", 1);
            KEPT.set(\"gone\", ());
            KEPT.set(\"removed\", 1);
            KEPT.remove(\"removed\");
            respond(200)
        });
        route(\"/get\").respond(|req| {
            let v = KEPT.get(\"k\");
            if v == () { return respond(404); }
            // A copy: changing it changes nothing.
            v.list.push(3);
            respond(200, `${v} ${KEPT.get(\"gone\")}${KEPT.get(\"removed\")}`)
        });";
    let mut runner = load_with(source, &store);
    assert_eq!(runner.get("/get"), End::Answer(404, String::new()));
    runner.get("/set");
    let whole = "#{\"inner\": #{\"c\": c}, \"list\": [1, 2.5, true, (), 3], \"text\": \"t\"} ";
    for _ in 0..2 {
        assert_eq!(text(&mut runner, "/get"), whole);
    }
    // Over a reload too, as long as what it says of itself is the same.
    let mut reloaded = load_with(source, &store);
    assert_eq!(text(&mut reloaded, "/get"), whole);
    let mut shorter = load_with(&source.replace("10s", "9s"), &store);
    assert_eq!(shorter.get("/get"), End::Answer(404, String::new()));
    clock.advance(Duration::from_secs(10));
    assert_eq!(runner.get("/get"), End::Answer(404, String::new()));
}

#[test]
fn a_cache_holds_nothing_else() {
    for value in [
        "req",
        "|x| x",
        "respond(200)",
        "[#{ deep: req }]",
        "#{ f: Fn(\"helper\") }",
        "OTHER",
        "TABLE",
    ] {
        let set = format!("KEPT.set(\"k\", {value}); 1");
        let made = format!("KEPT.get_or(\"k\", || {value})");
        for body in [set, made] {
            let source = answering(
                "const KEPT = cache(\"1m\", 10); const OTHER = KEPT; const TABLE = table(#{}); fn helper() { 1 }",
                &body,
            );
            let failed = failure(&source);
            assert!(failed.contains("a cache can't hold"), "{body}: {failed}");
        }
    }
    let failed = failure(&answering(
        "const KEPT = cache(\"1m\", 10, #{ max_bytes: 2048 });",
        "let long = \"a\"; long.pad(4000, \"a\"); KEPT.set(\"k\", long); 1",
    ));
    assert!(
        failed.contains("too large for the cache, which takes up to 2048"),
        "{failed}"
    );
}

#[test]
fn get_or_makes_a_value_once() {
    let (store, clock) = store();
    let source = answering(
        "const KEPT = cache(\"10s\", 10); const MADE = counter();
         fn make(key) { `${key}${MADE.add(key, 1)}` }",
        "let key = req.query(\"key\"); let n = KEPT.get_or(key, make);
         let same = KEPT.get_or(key, || make(\"other\"));
         let nothing = KEPT.get_or(\"none\", || ());
         `${n} ${same} ${KEPT.get(key)} ${nothing == ()} ${KEPT.get(\"none\") == ()}`",
    );
    let mut runner = load_with(&source, &store);
    assert_eq!(text(&mut runner, "/?key=a"), "a1 a1 a1 true true");
    assert_eq!(text(&mut runner, "/?key=a"), "a1 a1 a1 true true");
    assert_eq!(text(&mut runner, "/?key=b"), "b1 b1 b1 true true");
    clock.advance(Duration::from_secs(10));
    assert_eq!(text(&mut runner, "/?key=a"), "a2 a2 a2 true true");
}

#[test]
fn the_function_of_get_or_may_use_the_same_cache() {
    let body = |cache: &str| {
        format!(
            "let same = KEPT;
             let n = KEPT.get_or(\"k\", || {{ {cache}.set(\"other\", 2); {cache}.get_or(\"third\", || 3) }});
             `${{n}} ${{KEPT.get(\"other\")}} ${{KEPT.get(\"third\")}}`"
        )
    };
    let constants = "const KEPT = cache(\"10s\", 10);";
    let source = answering(constants, &body("same"));
    assert_eq!(text(&mut program(&source), "/"), "3 2 3");
    // In a function of the program it is not captured at all.
    let constants = format!("{constants} fn own() {{ {} }}", body("KEPT"));
    let source = answering(&constants, "own()");
    assert_eq!(text(&mut program(&source), "/"), "3 2 3");
}

#[test]
fn a_failed_making_keeps_nothing() {
    let source = answering(
        "const KEPT = cache(\"10s\", 10);",
        "try { KEPT.get_or(\"k\", || throw \"no\"); } catch (error) { }
         KEPT.get_or(\"k\", || 7)",
    );
    assert_eq!(text(&mut program(&source), "/"), "7");
}
