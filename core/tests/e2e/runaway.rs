//! Hooks that run away: a loop, a text and a list that grow, in callbacks too, calls without an end. Each
//! is a 500 within its budget and the proxy goes on; a pattern that would backtrack just answers; the
//! requests of others don't notice.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::support::client::{self, Connection, Request};
use crate::support::launch::{Builder, serving};
use crate::support::lock;
use crate::support::proxy::Proxy;
use crate::support::skip::{measured, not_run};
use crate::support::upstream::Upstream;
use crate::support::wait::SOON;

/// The name of the route, the body of its hook, and the kinds of failure that it may end with. On a slow
/// machine each may run out of time first.
const ATTACKS: [(&str, &str, &[&str]); 7] = [
    ("/loop", "loop {}", &["operations", "time"]),
    (
        "/text",
        r#"let s = "x"; loop { s += s; }"#,
        &["memory", "time"],
    ),
    (
        "/list",
        "let a = []; loop { a.push(0); }",
        &["memory", "time"],
    ),
    (
        "/map",
        "[1].map(|x| { let a = []; loop { a.push(0); } });",
        &["memory", "time"],
    ),
    (
        "/sort",
        r#"[2, 1].sort(|x, y| { let s = "x"; loop { s += s; } });"#,
        &["memory", "time"],
    ),
    ("/calls", "down(0);", &["memory", "time"]),
    (
        "/hold",
        "let a = []; a.pad(4000, 0); let m = #{}; let i = 0; loop { m[`k${i}`] = a + []; i += 1; }",
        &["memory", "time"],
    ),
];

/// A pattern that backtracks for ever in other engines, over 64 KiB that almost match.
const PATTERN: &str = r#"
const EVIL = regex("(a+)+$");
route("/pattern").on_request(|req| {
    let s = ""; s.pad(65535, 'a'); s += "b";
    if EVIL.is_match(s) { return respond(403); }
}).to("web");
"#;

/// The program, and the line on which the body of each attack stands.
fn program() -> (String, Vec<usize>) {
    let mut text = String::from(
        "route(\"/fine\").to(\"web\");\n\
         route(\"/gated\").on_request(|req| { req.set_header(\"x-gate\", \"seen\"); }).to(\"web\");\n\
         fn down(n) { down(n + 1) }\n",
    );
    text += PATTERN;
    let mut lines = Vec::new();
    for (target, body, _) in ATTACKS {
        text += &format!("route(\"{target}\").on_request(|req| {{\n");
        lines.push(text.lines().count() + 1);
        text += &format!("{body}\n}}).to(\"web\");\n");
    }
    (text, lines)
}

fn proxy(routes: &str, web: &Upstream) -> Builder {
    serving(routes)
        .settings("[server]\nthreads = 1")
        .pool("web", web.address())
}

/// A figure in bytes of `/proc/PID/status` (proc_pid_status(5)).
fn memory(proxy: &Proxy, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", proxy.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib: u64 = line
        .and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok())
        .unwrap();
    kib * 1024
}

/// CPU time of the process (proc_pid_stat(5), in ticks of 10 ms).
fn cpu_time(proxy: &Proxy) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", proxy.pid())).unwrap();
    let behind_name = stat.rsplit_once(')').unwrap().1;
    let ticks = behind_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

/// What the process may hold beyond what it holds when it serves: the memory of one hook (16 MiB) with
/// what one native adds, as much again that the allocator has not given back yet, and the stack that
/// a hook may use (32 MiB).
const MOST_MORE: u64 = (2 * (16 + 1) + 32) * 1024 * 1024;

/// CPU time that one attack may take: many times the 20 ms that it has, since this is no release build
/// and the machine is shared.
const LONGEST: Duration = Duration::from_secs(1);

#[test]
fn each_is_a_500_within_its_budget() {
    let web = Upstream::fixed("ok");
    let (routes, lines) = program();
    let mut proxy = proxy(&routes, &web).start();
    for target in ["/fine", "/gated"] {
        assert_eq!(proxy.text(target), "ok");
    }
    let before = memory(&proxy, "VmRSS:");
    let mut hits = web.hits();
    // Again and again: what one leaves behind, the others would find.
    for round in 1..=5 {
        for ((target, _, kinds), line) in ATTACKS.iter().zip(&lines) {
            let started = cpu_time(&proxy);
            assert_eq!(proxy.get(target).status, 500, "{target}");
            let took = cpu_time(&proxy) - started;
            assert!(took < LONGEST, "{target} took {took:?}");

            let what = format!("script failure route={target} ");
            let logged = proxy.log.wait_nth(&what, round, SOON);
            let inside = format!(" at=routes.rhai:{line}:");
            assert!(logged.contains(&inside), "not {inside}: {logged}");
            let kind = kinds
                .iter()
                .find(|kind| logged.contains(&format!(" kind={kind} ")));
            assert!(kind.is_some(), "none of {kinds:?}: {logged}");
            let failures = proxy.metric("script_failures_total", &[("route", target)]);
            assert_eq!(failures, round as f64, "{target}");
            assert_eq!(
                proxy.log.count(&what),
                round,
                "{target}: more than one line"
            );

            assert_eq!(web.hits(), hits, "{target} reached the upstream");
            assert_eq!(proxy.text("/gated"), "ok", "after {target}");
            hits += 1;
        }
    }
    let more = memory(&proxy, "VmHWM:").saturating_sub(before);
    measured(
        "runaway",
        &format!(
            "{} MiB before, at most {} MiB more",
            before >> 20,
            more >> 20
        ),
    );
    assert!(more < MOST_MORE, "{more} bytes more");
    assert!(proxy.running());
    assert_eq!(proxy.log.count("panicked"), 0, "{}", proxy.log.text());
}

#[test]
fn a_pattern_that_backtracks_elsewhere_just_answers() {
    let web = Upstream::fixed("ok");
    let proxy = proxy(&program().0, &web).start();
    for _ in 0..3 {
        let response = proxy.get("/pattern");
        assert_eq!((response.status, response.text().as_str()), (200, "ok"));
    }
    assert_eq!(proxy.metric("script_failures_total", &[]), 0.0);
}

/// One phase of the measurement, and how many there are of each kind, in turn.
const PHASE: Duration = Duration::from_secs(3);
const PHASES: usize = 24;
/// Between two requests of a victim, and between two attacks.
const STEADY: Duration = Duration::from_millis(2);
const ATTACK_EVERY: Duration = Duration::from_millis(500);
/// How much later the 99th percentile may come while the attack lasts.
const MOST_LATER: f64 = 0.10;

/// Waits for a moment. Pace is what is measured with here.
fn wait_until(moment: Instant) {
    thread::sleep(moment.saturating_duration_since(Instant::now()));
}

/// Runs `step` every `pace` on a thread of its own with its own connection, until it is stopped.
fn steadily<T: Send + 'static>(
    to: SocketAddr,
    stop: &Arc<AtomicBool>,
    pace: Duration,
    mut step: impl FnMut(&mut Connection) -> T + Send + 'static,
) -> JoinHandle<Vec<T>> {
    let stop = Arc::clone(stop);
    thread::spawn(move || {
        let mut connection = Connection::open(to).unwrap();
        let mut results = Vec::new();
        let mut next = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            wait_until(next);
            results.push(step(&mut connection));
            next += pace;
        }
        results
    })
}

/// Sends `request` at a steady pace; gives the time that each took. A request that had to wait because
/// the one before it was late took that time too.
fn victim(to: SocketAddr, stop: &Arc<AtomicBool>, request: Request) -> JoinHandle<Vec<Duration>> {
    let mut due = Instant::now();
    steadily(to, stop, STEADY, move |connection| {
        // What this thread overslept is none of the proxy's doing.
        let begun = Instant::now();
        let late = begun.saturating_duration_since(due) > STEADY;
        let begun = if late { due } else { begun };
        let response = connection.send(&request).unwrap();
        assert_eq!(response.status, 200);
        due = Instant::now();
        due - begun
    })
}

/// The 99th percentile of both victims together, in one phase.
fn phase(proxy: &Proxy, with_attack: bool) -> Duration {
    let to = proxy.address();
    let stop = Arc::default();
    let victims = ["/fine", "/gated"].map(|target| victim(to, &stop, client::get(target)));
    let attacker = with_attack.then(|| {
        let mut targets = ATTACKS.iter().map(|(target, ..)| *target).cycle();
        steadily(to, &stop, ATTACK_EVERY, move |connection| {
            let response = connection.send(&client::get(targets.next().unwrap()));
            assert_eq!(response.unwrap().status, 500);
        })
    });
    wait_until(Instant::now() + PHASE);
    stop.store(true, Ordering::Relaxed);
    let mut times: Vec<_> = victims
        .into_iter()
        .flat_map(|victim| victim.join().unwrap())
        .collect();
    if let Some(attacker) = attacker {
        assert!(attacker.join().unwrap().len() > 4, "there was no attack");
    }
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

/// The value below which a part of them lies, in seconds.
fn quantile(times: &[Duration], part: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[(times.len() as f64 * part) as usize].as_secs_f64()
}

/// By how much the median of such figures may be off, as a part of it: twice its standard error, which
/// is about the distance of the quartiles over the root of their number.
fn uncertainty(times: &[Duration]) -> f64 {
    let apart = quantile(times, 0.75) - quantile(times, 0.25);
    2.0 * apart / (times.len() as f64).sqrt() / quantile(times, 0.5)
}

/// With `EDGEWRIGHT_SOAK=1`, since it needs two and a half minutes and two CPUs for itself: edgewright with
/// one worker on one, all load on the other.
#[test]
fn the_requests_of_others_do_not_notice() {
    if std::env::var_os("EDGEWRIGHT_SOAK").is_none_or(|value| value != "1") {
        return;
    }
    let _turn = lock::turn();
    let allowed = sched_getaffinity(None).unwrap();
    let cpus: Vec<_> = (0..CpuSet::MAX_CPU)
        .filter(|cpu| allowed.is_set(*cpu))
        .collect();
    let [its_cpu, our_cpu, ..] = cpus[..] else {
        return not_run("runaway", "one CPU only");
    };
    // Threads that are made from here on are on it too.
    let mut ours = CpuSet::new();
    ours.set(our_cpu);
    sched_setaffinity(None, &ours).unwrap();

    let web = Upstream::fixed("ok");
    let proxy = proxy(&program().0, &web)
        .through(["taskset", "-c", &its_cpu.to_string()].map(str::to_owned))
        .start();
    phase(&proxy, true);
    let (mut quiet, mut attacked) = (Vec::new(), Vec::new());
    for _ in 0..PHASES {
        quiet.push(phase(&proxy, false));
        attacked.push(phase(&proxy, true));
    }
    let later = quantile(&attacked, 0.5) / quantile(&quiet, 0.5) - 1.0;
    let noise = uncertainty(&quiet).hypot(uncertainty(&attacked));
    measured(
        "runaway",
        &format!(
            "99th percentile without attack {quiet:?}, with it {attacked:?}: medians {:+.1} % ± {:.1} %",
            later * 100.0,
            noise * 100.0
        ),
    );
    // Through so much noise a difference of that size can't be seen, only a larger one.
    if noise > MOST_LATER && later - noise < MOST_LATER {
        return not_run(
            "runaway",
            "the machine is too noisy to tell a difference of 10 %",
        );
    }
    assert!(later < MOST_LATER, "later by {:.1} %", later * 100.0);
    assert_eq!(proxy.log.count("panicked"), 0, "{}", proxy.log.text());
}
