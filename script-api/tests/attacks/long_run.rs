//! Many calls with one interpreter, failures of each kind among them: nothing is left behind.

use std::{collections::BTreeMap, time::Duration};

use edgewright_script::{
    engine::{Interpreter, Limits},
    memory::MemoryRequest,
};

use crate::{
    harness::{on_a_worker, runner, unhurried},
    support::{Runner, counting},
};

/// 100,000 with `EDGEWRIGHT_SOAK=1`, else a short form.
fn calls() -> u64 {
    let soak = std::env::var_os("EDGEWRIGHT_SOAK").is_some_and(|value| value == "1");
    if soak { 100_000 } else { 10_000 }
}

/// Bytes that may be held more at the end than after the first calls: less than one for two calls.
const MOST_KEPT: u64 = 4000;

const PROGRAM: &str = r#"
const KEYS = table("keys.json");
const RE = regex("(a+)+$");
const LIST = [3, 1, 2];
fn down(n) { down(n + 1) }
fn helper(req, x) { let parts = req.path.split("/"); parts.len() + x }

route("/ok").on_request(|req| {
    let n = helper(req, 1);
    let list = LIST.map(|x| x + n);
    list.sort(|x, y| x - y);
    let f = || list.len();
    req.set_header("x-n", `${f.call()} ${list}`);
    if KEYS.get(req.header("x-key")) != () || RE.is_match(req.path) { return respond(403); }
}).to("web");
route("/says").respond(|req| respond(200, "fine").header("x-a", req.host));
route("/throws").on_request(|req| { let list = [1, 2]; list.map(|x| { throw #{ message: `no ${x}` } }) }).to("web");
route("/unknown").on_request(|req| { let x = req.path.nothing; }).to("web");
route("/lost").on_request(|req| { let r = respond(403); let n = 1; }).to("web");
route("/operations").on_request(|req| { let n = 0; loop { n += 1; } }).to("web");
route("/caught").on_request(|req| { try { [1].map(|x| { loop {} }) } catch {} }).to("web");
route("/depth").on_request(|req| { down(0) }).to("web");
route("/string").on_request(|req| { let s = "x"; loop { s += s; } }).to("web");
route("/items").on_request(|req| { let a = []; loop { a.push(a.len()); } }).to("web");
route("/memory").on_request(|req| {
    let a = []; a.pad(4000, 0); let m = #{}; let i = 0;
    loop { m[`k${i}`] = a + []; i += 1; }
}).to("web");
route("/time").on_request(|req| {
    let s = ""; s.pad(65536, 'a');
    loop { s.crop(0, 65536); }
}).to("web");
route("/panic").on_request(|req| { for i in 0..40000 { req.set_header(`x-${i}`, 1); } }).to("web");
"#;

/// The route of the call with this number, and how it ends. What is dear comes seldom.
fn route(call: u64) -> (&'static str, &'static str) {
    match call % 1000 {
        111 => ("/time", "time"),
        222 if call % 5000 == 222 => ("/panic", "panic"),
        _ => match call % 100 {
            3 => ("/operations", "operations"),
            13 => ("/caught", "operations"),
            23 => ("/memory", "memory"),
            n => match n % 10 {
                4 => ("/throws", "error"),
                5 => ("/unknown", "error"),
                6 => ("/lost", "error"),
                7 => ("/depth", "memory"),
                8 if n < 50 => ("/string", "memory"),
                8 => ("/items", "memory"),
                9 => ("/says", "well"),
                _ => ("/ok", "well"),
            },
        },
    }
}

fn call(edge: &mut Runner, number: u64, ends: &mut BTreeMap<&'static str, u64>) {
    let (path, expected) = route(number);
    let mut request = MemoryRequest::new("GET", "h", path);
    let ended = match edge.run(&mut request) {
        Ok(_) => "well",
        Err(failure) => failure.kind.name(),
    };
    assert_eq!(ended, expected, "call {number} of {path}");
    *ends.entry(ended).or_default() += 1;
}

#[test]
fn many_calls_leave_nothing_behind() {
    let limits = Limits {
        // Enough for the hook that makes its host panic.
        operations: 300_000,
        // Little enough for the one that works on a long text again and again.
        time: Duration::from_millis(500),
        ..unhurried()
    };
    on_a_worker(move || {
        let quiet = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let mut edge = runner(PROGRAM, limits);
        let mut ends = BTreeMap::new();
        let warm = calls() / 10;
        let mut held = Vec::with_capacity(16);
        for number in 0..calls() {
            if number >= warm && number % warm == 0 {
                held.push(counting::held());
            }
            call(&mut edge, number, &mut ends);
        }
        std::panic::set_hook(quiet);
        held.push(counting::held());
        let grown: Vec<i64> = held
            .iter()
            .map(|now| now.wrapping_sub(held[0]).cast_signed())
            .collect();
        println!("{ends:?}, held beyond what was held after {warm} calls: {grown:?}");
        assert_eq!(
            ends.keys().copied().collect::<Vec<_>>(),
            ["error", "memory", "operations", "panic", "time", "well"]
        );
        let last = grown[grown.len() - 1];
        assert!(last < 0 || last.unsigned_abs() < MOST_KEPT, "{grown:?}");
    });
}

/// Each reload makes an interpreter anew on each worker, and so does a panic.
#[test]
fn interpreters_leave_nothing_behind() {
    on_a_worker(|| {
        let program = r#"
fn down(n) { if n > 0 { down(n - 1) } }
fn even(n) { if n == 0 { true } else { odd(n - 1) } }
fn odd(n) { if n == 0 { false } else { even(n - 1) } }
route("/down").on_request(|req| { down(5); if even(7) { return respond(500); } }).to("web");
route("/odd").on_request(|req| { if !odd(7) { return respond(500); } }).to("web");
"#;
        let program = runner(program, unhurried()).program;
        let mut held = Vec::with_capacity(20);
        for _ in 0..20 {
            let interpreter = Interpreter::new(program.clone()).unwrap();
            let mut edge = Runner {
                interpreter,
                program: program.clone(),
            };
            for path in ["/down", "/odd"] {
                let mut request = MemoryRequest::new("GET", "h", path);
                let ended = edge.run(&mut request).unwrap();
                assert!(!format!("{ended:?}").contains("Answer"), "{ended:?}");
            }
            drop(edge);
            held.push(counting::held());
        }
        let grown = held[19].wrapping_sub(held[4]).cast_signed();
        // Less than one for each of them, and far less than a function.
        assert!(grown < 15, "{grown} bytes are left of 15 interpreters");
    });
}
