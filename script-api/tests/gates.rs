//! The gates of routes in memory: what the program says of them, and how they count.

#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use edgewright_script::{
    answer::Answer,
    load::Inputs,
    memory::MemoryRequest,
    program::{Gates, Match, Program},
    state::{Clock, ManualClock, StateStore},
};

use support::{errors, inputs, program, program_of};

fn gates(program: &Program) -> &Gates {
    program.routes[0].gates.as_deref().unwrap()
}

/// Asks the limits of the first route.
fn limited(program: &Program, request: &MemoryRequest) -> Result<(), Answer> {
    let route = &program.routes[0];
    let limits = &route.gates.as_deref().unwrap().limits;
    limits
        .iter()
        .try_for_each(|limit| limit.check(request, &route.label))
}

fn header(answer: &Answer, name: &'static str) -> String {
    let name = http::HeaderName::from_static(name);
    answer.header(&name).unwrap().to_str().unwrap().to_owned()
}

fn from(address: &str) -> MemoryRequest {
    MemoryRequest {
        client_ip: address.parse().unwrap(),
        ..MemoryRequest::new("GET", "any.example", "/")
    }
}

fn passed(program: &Program, request: &MemoryRequest, hits: usize) -> usize {
    (0..hits)
        .filter(|_| limited(program, request).is_ok())
        .count()
}

fn with_clock(source: &str) -> (Inputs, ManualClock) {
    let clock = ManualClock::default();
    let state = StateStore::with_clock(Clock::from(&clock));
    let inputs = Inputs {
        state,
        ..inputs(source)
    };
    (inputs, clock)
}

/// Case `first-hits`, with a clock that stands still.
#[test]
fn over_the_edge_of_a_window_as_many_pass_again() {
    let (inputs, clock) = with_clock("route(\"/\").limit(10, \"1m\").to(\"web\");");
    let runner = program_of(&inputs);
    let (one, other) = (from("192.0.2.1"), from("192.0.2.2"));
    assert_eq!(passed(&runner.program, &one, 100), 10);
    clock.advance(Duration::from_millis(59_500));
    assert_eq!(passed(&runner.program, &one, 100), 0);
    let refused = limited(&runner.program, &one).unwrap_err();
    assert_eq!(refused.status, 429);
    assert_eq!(header(&refused, "retry-after"), "1");
    assert_eq!(header(&refused, "ratelimit"), "\"ip\";r=0;t=1");
    assert_eq!(header(&refused, "ratelimit-policy"), "\"ip\";q=10;w=60");
    assert_eq!(passed(&runner.program, &other, 100), 10);
    // Who waits as long as he is told is let in.
    clock.advance(Duration::from_secs(1));
    assert_eq!(passed(&runner.program, &one, 100), 10);
    assert_eq!(passed(&runner.program, &other, 100), 0);
}

#[test]
fn a_limit_takes_the_options_of_a_rate() {
    let (inputs, clock) = with_clock(
        "route(\"/\").limit(60, \"1m\", #{ algorithm: \"token_bucket\", burst: 2, max_keys: 10 }).to(\"web\");",
    );
    let runner = program_of(&inputs);
    let request = from("192.0.2.1");
    assert_eq!(passed(&runner.program, &request, 5), 2);
    clock.advance(Duration::from_secs(1));
    assert_eq!(passed(&runner.program, &request, 5), 1);
}

#[test]
fn who_leaves_his_key_out_is_counted_by_his_address() {
    let runner = program("route(\"/\").limit(1, \"1h\", #{ key: \"header:x-key\" }).to(\"web\");");
    let with = |key| from("192.0.2.1").with_header("x-key", key);
    assert_eq!(passed(&runner.program, &with("a"), 5), 1);
    assert_eq!(passed(&runner.program, &with("b"), 5), 1);
    assert_eq!(passed(&runner.program, &from("192.0.2.1"), 5), 1);
    assert_eq!(passed(&runner.program, &from("192.0.2.2"), 5), 1);
    // Nobody can use up what is left for an address by sending it as a key.
    assert_eq!(passed(&runner.program, &with("192.0.2.3"), 5), 1);
    assert_eq!(passed(&runner.program, &from("192.0.2.3"), 5), 1);
}

/// What each state is called.
fn names(source: &str) -> Vec<String> {
    let inputs = inputs(source);
    let _runner = program_of(&inputs);
    let samples = inputs.state.samples().into_iter();
    samples
        .map(|sample| format!("{} {}", sample.kind, sample.name))
        .collect()
}

#[test]
fn state_of_routes_has_names_that_stay() {
    let source = "
        const LIMIT = rate(1, \"1m\");
        route(\"/a\").limit(1, \"1m\").limit(9, \"1h\").concurrency(3).to(\"web\");
        route(\"/a\").methods([\"PUT\", \"POST\"]).limit(1, \"1m\").to(\"web\");
        route(\"/b\").if_query(\"x\").limit(1, \"1m\").to(\"web\");
        route(\"/b\").limit(LIMIT).to(\"web\");
        route(\"/b\").if_query(\"y\").limit(1, \"1m\").to(\"web\");
        site(\"h.test\").route(\"/a\").limit(1, \"1m\").to(\"web\");
    ";
    assert_eq!(
        names(source),
        [
            "rate /a .limit",
            "rate /a .limit (2)",
            "rate /b (2) .limit",
            "rate /b .limit",
            "rate LIMIT",
            "rate PUT,POST /a .limit",
            "rate h.test/a .limit",
            "concurrency /a .concurrency",
        ]
    );
    // A line more above, and a route without a limit beside it, change no name.
    let moved = format!("\nroute(\"/b\").if_query(\"z\").to(\"web\");\n{source}");
    assert_eq!(names(&moved), names(source));
}

#[test]
fn what_was_used_outlives_the_program() {
    let source = |limit| format!("route(\"/\").limit({limit}, \"1h\").to(\"web\");");
    let state = StateStore::default();
    let load = |source: &str| {
        program_of(&Inputs {
            state: state.clone(),
            ..inputs(source)
        })
    };
    let request = from("192.0.2.1");
    let before = load(&source(2));
    assert_eq!(passed(&before.program, &request, 5), 2);
    let after = load(&source(3));
    assert_eq!(passed(&after.program, &request, 5), 1);
    assert_eq!(passed(&before.program, &request, 5), 0);
}

#[test]
fn slots_are_held_by_the_request_that_took_them() {
    let runner = program("route(\"/\").concurrency(1, #{ key: \"ip\" }).to(\"web\");");
    let bound = &gates(&runner.program).concurrency[0];
    let request = from("192.0.2.1");
    let slot = bound.enter(&request, "/").unwrap();
    let refused = bound.enter(&request, "/").unwrap_err();
    assert_eq!(refused.status, 503);
    assert_eq!(header(&refused, "retry-after"), "1");
    assert!(bound.enter(&from("192.0.2.2"), "/").is_ok());
    drop(slot);
    assert!(bound.enter(&request, "/").is_ok());
}

#[test]
fn a_preflight_is_not_found_where_nobody_speaks_for_the_route() {
    let runner = program(
        "route(\"/a\").methods([\"GET\"]).cors(#{ origins: \"*\" }).to(\"web\");
         route(\"/b\").methods([\"GET\"]).from(\"10.0.0.0/8\").cors(#{ origins: \"*\" }).to(\"web\");
         route(\"/{*rest}\").to(\"web\");",
    );
    let program = &runner.program;
    assert!(program.answers_preflights());
    let found = |path: &str, method: &str, client: &str| {
        let request = MemoryRequest {
            client_ip: client.parse().unwrap(),
            ..MemoryRequest::new("OPTIONS", "any.example", path)
        };
        let found = program.find_preflight(&request, method);
        found.map(|found| program.route(found.route).label.clone())
    };
    assert_eq!(found("/a", "GET", "10.0.0.1").as_deref(), Some("/a"));
    assert_eq!(found("/a", "HEAD", "10.0.0.1").as_deref(), Some("/a"));
    assert_eq!(found("/a", "PUT", "10.0.0.1"), None);
    assert_eq!(found("/b", "GET", "10.0.0.1").as_deref(), Some("/b"));
    assert_eq!(found("/b", "GET", "192.0.2.1"), None);
    assert_eq!(found("/c", "GET", "10.0.0.1"), None);
    let none = support::program("route(\"/\").to(\"web\");");
    assert!(!none.program.answers_preflights());
    let request = MemoryRequest::new("GET", "any.example", "/");
    assert!(matches!(none.program.find(&request, &[]), Match::Found(_)));
}

/// What is refused at load: a route's methods, and a part of the message.
const MISTAKES: &[(&str, &str)] = &[
    (".deny(\"10.0.0.0/99\")", "`10.0.0.0/99` is no network"),
    (".allow([])", "nobody could come in"),
    (".max_body(\"10\")", "write \"10B\" or \"10KiB\""),
    (".max_body(\"ten\")", "`ten` is no size"),
    (
        ".max_body(\"1KiB\").max_body(\"2KiB\")",
        "has a `.max_body` already",
    ),
    (
        ".limit(0, \"1m\")",
        "the limit of `limit` must be between 1",
    ),
    (".limit(1, \"1 hour and a bit\")", "is no time"),
    (".limit(1, \"0s\")", "the window of `limit` must be between"),
    (
        ".limit(1, \"1m\", #{ kye: \"ip\" })",
        "no option `kye` (did you mean `key`?)",
    ),
    (
        ".limit(1, \"1m\", #{ key: \"hoast\" })",
        "did you mean `host`?",
    ),
    (".limit(1, \"1m\", #{ key: 1 })", "`key` of `limit` is text"),
    (
        ".limit(1, \"1m\", #{ status: 200 })",
        "must be between 400 and 599",
    ),
    (
        ".limit(1, \"1m\", #{ burst: 3 })",
        "`burst` is the size of a bucket",
    ),
    (".limit(LIMIT, #{ burst: 3 })", "no option `burst`"),
    (".limit(rate(1, \"1m\"))", "this rate has no name"),
    (".concurrency(0)", "`concurrency` must be between 1"),
    (".concurrency(1, #{ keys: \"ip\" })", "did you mean `key`?"),
    (
        ".concurrency(concurrency(1))",
        "this concurrency has no name",
    ),
    (".cors(#{})", "whose pages may"),
    (".cors(#{ origins: [] })", "no origin is allowed"),
    (
        ".cors(#{ origins: [\"*\", \"https://a.test\"] })",
        "`*` stands alone",
    ),
    (
        ".cors(#{ origins: \"*\", credentials: true })",
        "name the `origins`",
    ),
    (
        ".cors(#{ origins: \"https://a.test\", credentials: true, headers: \"*\" })",
        "means nothing to browsers",
    ),
    (
        ".cors(#{ origins: \"https://a.test/\" })",
        "write \"https://a.test\"",
    ),
    (
        ".cors(#{ origins: \"*\", methods: [\"get\"] })",
        "write `GET`",
    ),
    (
        ".cors(#{ origins: \"*\", headers: [\"a b\"] })",
        "`a b` is no header name",
    ),
    (
        ".cors(#{ origins: \"*\", max_age: \"25h\" })",
        "\"24h\" at most",
    ),
    (".cors(#{ origin: \"*\" })", "did you mean `origins`?"),
    (
        ".cors(#{ origins: \"*\" }).cors(#{ origins: \"*\" })",
        "has a `.cors` already",
    ),
    (
        ".rewrite_regex(\"(\", \"/\")",
        "bad pattern `(`: unclosed group",
    ),
    (
        ".rewrite_regex(\"(a)\", \"/$2\")",
        "the pattern has no group `2`",
    ),
    (
        ".rewrite_regex(\"a\", \"/\").rewrite_regex(\"b\", \"/\")",
        "has a `.rewrite_regex` already",
    ),
    (
        ".rewrite_regex(\"a\", \"/\").rewrite(\"/x\")",
        "has a `.rewrite` too",
    ),
    (
        ".rewrite(\"/x\").rewrite_regex(\"a\", \"/\")",
        "has a `.rewrite` too",
    ),
];

#[test]
fn mistakes_are_found_at_load_with_their_place() {
    for (methods, expected) in MISTAKES {
        let source = format!("const LIMIT = rate(1, \"1m\");\nroute(\"/\"){methods}.to(\"web\");");
        let found = errors(&source);
        assert!(found.contains(expected), "{methods}: {found}");
        assert!(found.contains("routes.rhai:2:"), "{methods}: {found}");
    }
}

#[test]
fn a_replacement_is_shown_where_it_is_wrong() {
    let found = errors("route(\"/\").rewrite_regex(\"^/(a)\", \"/x/$2/y\").to(\"web\");");
    assert!(found.contains("routes.rhai:1:39"), "{found}");
}

#[test]
fn a_slot_that_is_not_asked_about_is_a_mistake() {
    let found = errors(
        "const SLOTS = concurrency(1);
         route(\"/\").on_request(|req| { SLOTS.acquire(\"k\"); req.set_header(\"x-a\", \"1\"); }).to(\"web\");",
    );
    assert!(
        found.contains("whether there was a slot is thrown away"),
        "{found}"
    );
    assert!(found.contains("if !SLOTS.acquire(key)"), "{found}");
}

#[test]
fn slots_are_taken_before_a_request_goes_on() {
    let mut runner = program(
        "const SLOTS = concurrency(1);
         route(\"/when\").when(|req| SLOTS.acquire(\"k\")).to(\"web\");
         route(\"/gate\").on_request(|req| if !SLOTS.acquire() { respond(503) }).to(\"web\");",
    );
    let mut request = MemoryRequest::new("GET", "any.example", "/when");
    let failure = runner.run(&mut request).unwrap_err().to_string();
    assert!(failure.contains("before the request goes on"), "{failure}");
    let mut first = MemoryRequest::new("GET", "any.example", "/gate");
    let mut second = first.clone();
    assert!(matches!(runner.run(&mut first), Ok(support::End::Pool(_))));
    assert!(matches!(
        runner.run(&mut second),
        Ok(support::End::Answer(503, _))
    ));
    drop(first);
    assert!(matches!(runner.run(&mut second), Ok(support::End::Pool(_))));
}
