//! What it costs that a hook can wait: three ways to run a hook that asks another service, with the
//! answer at hand at once.
//!
//! `cargo run --release -p edgewright-bench --example waiting` prints the CPU time of each; with a
//! way and a number of calls as arguments it only runs them, for counting instructions:
//! `valgrind --tool=callgrind target/release/examples/waiting replay 1000`.

use std::{
    cell::{Cell, RefCell},
    hint::black_box,
    ptr::NonNull,
    rc::Rc,
};

use corosensei::{Coroutine, CoroutineResult, Yielder, stack::DefaultStack};
use edgewright_script::rhai::{
    Caches, Dynamic, Engine, EvalAltResult, EvalContext, GlobalRuntimeState, INT, Position, Scope,
    packages::{CorePackage, Package},
};
use rustix::time::{ClockId, clock_gettime};

/// The hook, with `{calls}` in it.
const HOOK: &str =
    "fn hook(x) { let a = x * 2; let sum = 0; {calls} if sum > 100 { return 0; } sum + 1 }";
const CALL: &str = "let r = fetch(a); sum += r; ";

/// How `fetch` comes to its answer.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// It has it: nothing can wait.
    Direct,
    /// The hook runs on a stack of its own, and does not stop.
    CoroutineThrough,
    /// The hook runs on a stack of its own, and stops.
    CoroutineStops,
    /// The hook ends at the call, and begins again with the answer at hand.
    Replay,
}

const WAYS: [(&str, Way); 4] = [
    ("direct", Way::Direct),
    ("coroutine-through", Way::CoroutineThrough),
    ("coroutine-stops", Way::CoroutineStops),
    ("replay", Way::Replay),
];

thread_local! {
    static WAY: Cell<Way> = const { Cell::new(Way::Direct) };
    static YIELDER: Cell<Option<NonNull<Yielder<INT, INT>>>> = const { Cell::new(None) };
    static ANSWERS: RefCell<Vec<INT>> = const { RefCell::new(Vec::new()) };
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

fn fetch(asked: INT) -> Result<INT, Box<EvalAltResult>> {
    match WAY.get() {
        Way::Direct | Way::CoroutineThrough => Ok(asked + 1),
        Way::CoroutineStops => match YIELDER.get() {
            // SAFETY: set by the coroutine that runs now, on whose stack the yielder lies.
            Some(yielder) => Ok(unsafe { yielder.as_ref() }.suspend(asked)),
            None => Err("there is no coroutine".into()),
        },
        Way::Replay => {
            let number = ASKED.replace(ASKED.get() + 1);
            match ANSWERS.with_borrow(|answers| answers.get(number).copied()) {
                Some(answer) => Ok(answer),
                None => Err(EvalAltResult::ErrorTerminated(asked.into(), Position::NONE).into()),
            }
        }
    }
}

/// An interpreter whose state is kept between calls, as edgewright's is.
struct State {
    engine: Engine,
    frame: RefCell<(GlobalRuntimeState, Caches, Scope<'static>)>,
}

impl State {
    fn new(calls: usize) -> anyhow::Result<Rc<Self>> {
        let mut engine = Engine::new_raw();
        engine.register_global_module(CorePackage::new().as_shared_module());
        engine.register_fn("fetch", fetch);
        let ast = engine.compile(HOOK.replace("{calls}", &CALL.repeat(calls)))?;
        let mut global = engine.new_global_runtime_state();
        global.lib.push(ast.shared_lib().clone());
        let mut caches = Caches::new();
        caches.push_fn_resolution_cache();
        Ok(Rc::new(Self {
            engine,
            frame: RefCell::new((global, caches, Scope::new())),
        }))
    }

    fn call(&self) -> Result<Dynamic, Box<EvalAltResult>> {
        let (global, caches, scope) = &mut *self.frame.borrow_mut();
        global.num_operations = 0;
        let mut context = EvalContext::new(&self.engine, global, caches, scope, None);
        context.call_fn_raw("hook", false, false, &mut [&mut Dynamic::from(7 as INT)])
    }
}

fn in_coroutine(state: &Rc<State>, stack: DefaultStack) -> anyhow::Result<DefaultStack> {
    let runs = state.clone();
    let mut coroutine = Coroutine::with_stack(stack, move |yielder: &Yielder<INT, INT>, _| {
        YIELDER.set(Some(NonNull::from(yielder)));
        runs.call().map_err(|error| error.to_string())
    });
    let mut answer = 0;
    loop {
        match coroutine.resume(answer) {
            CoroutineResult::Yield(asked) => answer = asked + 1,
            CoroutineResult::Return(ended) => {
                let _value = black_box(ended.map_err(anyhow::Error::msg)?);
                return Ok(coroutine.into_stack());
            }
        }
    }
}

fn replayed(state: &State) -> anyhow::Result<()> {
    ANSWERS.with_borrow_mut(Vec::clear);
    loop {
        ASKED.set(0);
        match state.call() {
            Ok(value) => {
                let _value = black_box(value);
                return Ok(());
            }
            Err(error) => match *error {
                EvalAltResult::ErrorTerminated(asked, _) => {
                    let answer = asked.as_int().unwrap_or_default() + 1;
                    ANSWERS.with_borrow_mut(|answers| answers.push(answer));
                }
                other => anyhow::bail!("{other}"),
            },
        }
    }
}

fn run(way: Way, times: usize, state: &Rc<State>) -> anyhow::Result<()> {
    WAY.set(way);
    let mut stack = DefaultStack::new(1024 * 1024)?;
    for _ in 0..times {
        match way {
            Way::Direct => {
                let value = state.call().map_err(|error| anyhow::anyhow!("{error}"))?;
                let _value = black_box(value);
            }
            Way::CoroutineThrough | Way::CoroutineStops => stack = in_coroutine(state, stack)?,
            Way::Replay => replayed(state)?,
        }
    }
    Ok(())
}

fn cpu_nanoseconds() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [name, times] = arguments.as_slice() {
        let known = WAYS.iter().find(|(known, _)| known == name);
        let (_, way) = known.ok_or_else(|| anyhow::anyhow!("there is no way `{name}`"))?;
        return run(*way, times.parse()?, &State::new(1)?);
    }
    const TIMES: usize = 20_000;
    const ROUNDS: usize = 9;
    for calls in [1, 3] {
        let state = State::new(calls)?;
        let mut rounds = [const { Vec::new() }; WAYS.len()];
        for _ in 0..ROUNDS {
            for (measured, (_, way)) in rounds.iter_mut().zip(WAYS) {
                let begun = cpu_nanoseconds();
                run(way, TIMES, &state)?;
                measured.push((cpu_nanoseconds() - begun) / TIMES as i64);
            }
        }
        println!(
            "a hook with {calls} calls, CPU ns: median (min..max) of {ROUNDS} rounds in turns"
        );
        for (measured, (name, _)) in rounds.iter_mut().zip(WAYS) {
            measured.sort_unstable();
            let (least, most) = (measured[0], measured[ROUNDS - 1]);
            println!("  {name:18} {} ({least}..{most})", measured[ROUNDS / 2]);
        }
    }
    Ok(())
}
