//! Runs attacks as a worker does: on its stack, with its budget, one interpreter for all calls.

use std::{sync::Arc, thread, time::Duration};

use edgewright_script::{
    diagnostic::Place,
    engine::{Failure, FailureKind, Interpreter, Limits, ScriptLimit, count_memory_with},
    load::load,
    memory::MemoryRequest,
};

use crate::support::{End, Runner, counting, inputs};

/// The stack of a worker, in bytes (`core/src/server.rs`).
const STACK: usize = 64 * 1024 * 1024;

/// What a call may hold: its budget, and beyond it what one native may allocate before it is looked at.
const MOST_HELD: u64 = (16 + 1) * 1024 * 1024;

/// How a hook ends.
#[derive(Clone, Debug)]
pub enum Ends {
    /// It goes on to the pool.
    Well,
    /// It ends with this text as the body of its answer.
    Saying(&'static str),
    /// It runs into a limit.
    At(ScriptLimit),
    /// It runs into the limit of time, or before it, on a fast machine, into that of operations.
    InTime,
    /// It makes an error whose message contains this.
    Wrong(&'static str),
}

/// One row of a table.
pub struct Attack {
    /// The body of the hook.
    pub body: String,
    /// Functions of the program.
    pub functions: &'static str,
    pub ends: Ends,
    /// Whether the place of the failure may be in one of the functions.
    inside: bool,
    /// Bytes that may be held at a time.
    most_held: u64,
}

/// CPU time within which a hook ends whose budget is the default: many times that budget, so that a
/// slow machine and a debug build have room.
const LONGEST: Duration = Duration::from_millis(500);

/// An attack without functions.
pub fn attack(body: impl Into<String>, ends: Ends) -> Attack {
    Attack {
        body: body.into(),
        functions: "",
        ends,
        inside: false,
        most_held: MOST_HELD,
    }
}

impl Attack {
    pub fn with(self, functions: &'static str) -> Self {
        Self { functions, ..self }
    }

    /// The failure happens in a callback that one of the functions makes, and its place is there.
    pub fn inside(self) -> Self {
        Self {
            inside: true,
            ..self
        }
    }

    /// It may hold a copy of all that it holds.
    pub fn twice(self) -> Self {
        Self {
            most_held: 2 * MOST_HELD,
            ..self
        }
    }
}

/// The limits of a hook, with so much time that another limit ends it on the slowest machine.
pub fn unhurried() -> Limits {
    Limits {
        time: Duration::from_secs(20),
        wall_time: Duration::from_secs(600),
        ..Limits::default()
    }
}

/// Runs `test` with the stack of a worker.
pub fn on_a_worker<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
    on_a_stack_of(STACK, test)
}

/// Runs `test` with a stack of so many bytes.
pub fn on_a_stack_of<T: Send + 'static>(
    bytes: usize,
    test: impl FnOnce() -> T + Send + 'static,
) -> T {
    count_memory_with(counting::held);
    let worker = thread::Builder::new().stack_size(bytes).spawn(test);
    let ended = worker.unwrap().join();
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A program and its interpreter; panics when it doesn't load.
pub fn runner(source: &str, limits: Limits) -> Runner {
    let mut inputs = inputs(source);
    inputs.limits = limits;
    let loaded = load(&inputs).unwrap_or_else(|error| panic!("{error:?}\n{source}"));
    let program = Arc::new(loaded.program);
    Runner {
        interpreter: Interpreter::new(program.clone()).unwrap(),
        program,
    }
}

/// Runs every attack, once with time enough and once with the defaults, each as a closure and as a
/// function. Says everything that is not as it should be.
pub fn try_all(attacks: Vec<Attack>) {
    let wrong = on_a_worker(move || {
        let mut wrong = Vec::new();
        for attack in &attacks {
            for as_function in [false, true] {
                for limits in [unhurried(), Limits::default()] {
                    let in_time = matches!(attack.ends, Ends::InTime);
                    if in_time && limits != Limits::default() {
                        continue;
                    }
                    let found = try_one(attack, as_function, limits);
                    let body: String = attack.body.chars().take(200).collect();
                    wrong.extend(found.iter().map(|what| format!("{body}\n    {what}")));
                }
            }
        }
        wrong
    });
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// What is wrong with one run of an attack.
fn try_one(attack: &Attack, as_function: bool, limits: Limits) -> Vec<String> {
    let (body, place) = unmarked(&attack.body);
    let source = program(&body, attack.functions, as_function);
    let line = body_line(&source);
    let mut edge = runner(&source, limits);
    let mut request = MemoryRequest::new("GET", "h", "/attack");
    let before = cpu_time();
    let (ended, peak) = counting::peak_of(|| edge.run(&mut request));
    let took = cpu_time().saturating_sub(before);
    let in_a_hurry = limits == Limits::default();
    let mut wrong = Vec::new();
    wrong.extend(check(&attack.ends, &ended, in_a_hurry));
    if let Err(failure) = &ended {
        // Time may run out anywhere before.
        let ran_late = in_a_hurry && failure.limit == Some(ScriptLimit::Time);
        let place = if ran_late { Part::ALL } else { place };
        let line = if attack.inside { FUNCTIONS_AT } else { line };
        wrong.extend(place.check(&failure.place, line, failure));
    }
    if peak > attack.most_held {
        wrong.push(format!("{} KiB were held", peak / 1024));
    }
    if in_a_hurry && took > LONGEST {
        wrong.push(format!("it took {took:?}"));
    }
    match edge.run(&mut MemoryRequest::new("GET", "h", "/next")) {
        Ok(End::Answer(200, text)) if text == "fine" => {}
        other => wrong.push(format!("the next call ended with {other:?}")),
    }
    wrong
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    )
}

/// The line on which the functions of a program begin, from 1.
const FUNCTIONS_AT: usize = 13;

/// The program around the body of a hook.
fn program(body: &str, functions: &str, as_function: bool) -> String {
    let hook = if as_function {
        format!("route(\"/attack\").on_request(attack).to(\"web\");\nfn attack(req) {{\n{body}\n}}")
    } else {
        format!("route(\"/attack\").on_request(|req| {{\n{body}\n}}).to(\"web\");")
    };
    format!(
        r#"const LIST = [1, 2, 3];
const MAP = #{{ a: 1 }};
const TABLE = table("keys.json");
const CACHE = cache("1m", 100);
const X = regex("x");
const EVIL = regex("(a+)+$");
const QUADRATIC = regex("[^b]*b|a");
const GROUPS = regex("((((((((a+))))))))");
route("/next").respond(|req| {{
    let n = [1, 2, 3].map(|x| x + 1).reduce(|sum, x| sum + x, 0);
    respond(200, if n == 9 {{ "fine" }} else {{ "broken" }})
}});
{functions}
{hook}
"#
    )
}

/// The line on which the body begins, from 1.
fn body_line(source: &str) -> usize {
    let hook = source.lines().position(|line| {
        line.ends_with("on_request(|req| {") || line.ends_with("fn attack(req) {")
    });
    hook.unwrap() + 2
}

fn check(ends: &Ends, ended: &Result<End, Failure>, in_a_hurry: bool) -> Option<String> {
    if in_a_hurry
        && let Err(failure) = ended
        && (failure.kind, failure.limit) == (FailureKind::Time, Some(ScriptLimit::Time))
    {
        return None;
    }
    let fits = match (ends, ended) {
        (Ends::Well, Ok(End::Pool(pool))) => pool == "web",
        (Ends::Saying(text), Ok(End::Answer(200, body))) => body == text,
        (Ends::At(limit), Err(failure)) => {
            failure.limit == Some(*limit) && failure.kind == kind_of(*limit)
        }
        (Ends::InTime, Err(failure)) => failure.limit == Some(ScriptLimit::Operations),
        (Ends::Wrong(message), Err(failure)) => {
            failure.kind == FailureKind::Error
                && failure.limit.is_none()
                && failure.message.contains(message)
        }
        _ => false,
    };
    if fits {
        return None;
    }
    let ended = format!("{ended:?}");
    let ended: String = ended.chars().take(300).collect();
    Some(format!("{ends:?} was expected, not {ended}"))
}

fn kind_of(limit: ScriptLimit) -> FailureKind {
    match limit {
        ScriptLimit::Operations => FailureKind::Operations,
        ScriptLimit::Time => FailureKind::Time,
        _ => FailureKind::Memory,
    }
}

/// A part of the body: lines from 0, columns from 1, both ends included.
struct Part {
    from: (usize, usize),
    to: (usize, usize),
}

/// The body without marks, and the part between them; all of it when there are none.
fn unmarked(body: &str) -> (String, Part) {
    let at = |mark: char| {
        let before = body.split_once(mark)?.0.replace('«', "");
        let lines = before.matches('\n').count();
        let column = before.chars().rev().take_while(|c| *c != '\n').count();
        Some((lines, column + 1))
    };
    let part = Part {
        from: at('«').unwrap_or(Part::ALL.from),
        to: at('»').unwrap_or(Part::ALL.to),
    };
    (body.replace(['«', '»'], ""), part)
}

impl Part {
    const ALL: Self = Self {
        from: (0, 1),
        to: (usize::MAX, usize::MAX),
    };

    /// Whether `place` lies in this part of a body that begins on `line`.
    fn check(&self, place: &Place, line: usize, failure: &Failure) -> Option<String> {
        let found = (place.line.wrapping_sub(line), place.column);
        if place.file == "routes.rhai" && self.from <= found && found <= self.to {
            return None;
        }
        let (from, to) = (self.from, self.to);
        let shown =
            |(row, column): (usize, usize)| format!("{}:{column}", row.saturating_add(line));
        let text: String = failure.to_string().chars().take(150).collect();
        Some(format!(
            "the place is not between {} and {}: {text}",
            shown(from),
            shown(to)
        ))
    }
}
