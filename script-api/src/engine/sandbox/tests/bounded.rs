//! Every function that a program can call, with the largest values that it can be given: none takes
//! more memory at once than the budget leaves room for, none takes long, none panics.

use std::{
    any::TypeId,
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    time::Duration,
};

use rhai::{AST, Dynamic, Engine, Scope, Token, is_valid_identifier};

use super::{
    super::engine,
    counting, on_a_workers_stack,
    samples::{never_in_a_script, samples},
};
use crate::{
    engine::{Limits, Subject, budget, current, fetch_api, request_api, response_api},
    memory::{MemoryRequest, MemoryResponse},
    path::PathPolicy,
    program::HookKind,
};

/// What a native may allocate at once, arguments that are copied for it included, in bytes.
const MOST_AT_ONCE: u64 = 1024 * 1024;

/// CPU time that one call may take, callbacks included: many times the budget of a hook, which ends
/// what calls back, and far more than what a native of bounded work needs on a slow machine.
const LONGEST: Duration = Duration::from_millis(500);

/// Functions for natives that take one, each with as many parameters as natives give.
const CALLBACKS: &str = "
    fn yes() { true } fn yes(a) { true } fn yes(a, b) { true } fn yes(a, b, c) { true }
    fn same(a) { a } fn same(a, b) { a } fn same(a, b, c) { a }
    fn fails() { throw 1 } fn fails(a) { throw 1 } fn fails(a, b) { throw 1 } fn fails(a, b, c) { throw 1 }
";

/// A native as the engine knows it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Native {
    name: String,
    parameters: Vec<TypeId>,
}

impl Native {
    /// How a script calls it with the variables `a0`, `a1`, ..; `None` when it has no way to.
    fn call(&self) -> Option<String> {
        let arguments: Vec<_> = (0..self.parameters.len())
            .map(|n| format!("a{n}"))
            .collect();
        let name = self.name.as_str();
        if let Some(property) = name.strip_prefix("get$") {
            return Some(format!("a0.{property}"));
        }
        if let Some(property) = name.strip_prefix("set$") {
            return Some(format!("a0.{property} = a1"));
        }
        Some(match (name, arguments.len()) {
            ("index$get$", _) => "a0[a1]".to_owned(),
            ("index$set$", _) => "a0[a1] = a2".to_owned(),
            (name, _) if is_valid_identifier(name) => format!("{name}({})", arguments.join(", ")),
            (name, _) if Token::lookup_symbol_from_syntax(name).is_none() => return None,
            (operator, 1) => format!("{operator}a0"),
            (operator, _) => format!("a0 {operator} a1"),
        })
    }
}

fn natives(engine: &Engine) -> BTreeSet<Native> {
    let all = engine.collect_fn_metadata(
        None,
        |function| {
            Some(Native {
                name: function.metadata.name.to_string(),
                parameters: function.metadata.param_types.to_vec(),
            })
        },
        true,
    );
    all.into_iter().collect()
}

/// A request whose every part is as long as a request can be.
fn long_request() -> MemoryRequest {
    let mut request = MemoryRequest::new("GET", "h", "/a");
    request.query = "a&".repeat(32 * 1024);
    for _ in 0..1024 {
        request = request.with_header("a", "b");
    }
    request.params = (0..64)
        .map(|n| (format!("p{n}"), "x".repeat(1024)))
        .collect();
    request
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    )
}

/// Calls `call` with `values` and says what is wrong with it.
fn attempt(
    engine: &Engine,
    limits: &Limits,
    call: &AST,
    values: &[&Dynamic],
    request: &MemoryRequest,
) -> Option<String> {
    let mut scope = Scope::new();
    for (number, value) in values.iter().enumerate() {
        scope.push_dynamic(format!("a{number}"), (*value).clone());
    }
    let mut request = request.clone();
    let mut response = MemoryResponse {
        status: http::StatusCode::OK,
        headers: request.headers.clone(),
        is_local: false,
        body: "{\"a\":[1]}".into(),
    };
    let run = || engine.eval_ast_with_scope::<Dynamic>(&mut scope, call);
    current::begin(HookKind::OnResponse);
    budget::start(limits);
    let before = cpu_time();
    let (result, peak) = Subject::Exchange(&mut request, &mut response)
        .during(|| counting::peak_of(|| catch_unwind(AssertUnwindSafe(run))));
    let took = cpu_time().saturating_sub(before);
    if result.is_err() {
        return Some("panics".to_owned());
    }
    if peak > MOST_AT_ONCE {
        return Some(format!("allocates {} KiB", peak / 1024));
    }
    (took > LONGEST).then(|| format!("takes {took:?}"))
}

/// Each choice of one value of each list.
fn combinations<'v>(lists: &'v [Vec<Dynamic>]) -> Vec<Vec<&'v Dynamic>> {
    lists.iter().fold(vec![Vec::new()], |chosen, list| {
        let longer = |values: &Vec<&'v Dynamic>| {
            let values = values.clone();
            list.iter().map(move |value| {
                let mut values = values.clone();
                values.push(value);
                values
            })
        };
        chosen.iter().flat_map(longer).collect()
    })
}

#[test]
fn no_native_takes_much_at_once() {
    on_a_workers_stack(call_all);
}

fn call_all() {
    let limits = Limits::default();
    let mut engine = engine(&limits, &PathPolicy::default());
    fetch_api::register(&mut engine, Rc::new(|_| None), limits.fetch_timeout);
    let natives = natives(&engine);
    let requests = [MemoryRequest::new("GET", "h", "/a"), long_request()];
    let handles = [
        TypeId::of::<request_api::RequestHandle>(),
        TypeId::of::<response_api::ResponseHandle>(),
    ];
    let mut found = Vec::new();
    let mut calls = 0;
    for native in &natives {
        let of_other_tests = native.name == "panic_on_purpose";
        if of_other_tests || native.parameters.iter().any(|id| never_in_a_script(*id)) {
            continue;
        }
        let Some(text) = native.call() else {
            continue;
        };
        let lists: Vec<_> = native
            .parameters
            .iter()
            .map(|id| samples(*id, &limits))
            .collect();
        assert!(
            lists.iter().all(|list| !list.is_empty()),
            "`{text}` takes a type whose values this test doesn't know"
        );
        let call = engine.compile(format!("{CALLBACKS}\n{text}")).unwrap();
        let looks = native.parameters.iter().any(|id| handles.contains(id));
        let request = &requests[usize::from(looks)];
        for values in combinations(&lists) {
            calls += 1;
            if let Some(what) = attempt(&engine, &limits, &call, &values, request) {
                let types: Vec<_> = values
                    .iter()
                    .map(|value| {
                        let text: String = format!("{value:?}").chars().take(20).collect();
                        format!("{} {text}", value.type_name())
                    })
                    .collect();
                found.push(format!("{text} with ({}) {what}", types.join(", ")));
            }
        }
    }
    assert!(
        natives.len() > 500 && calls > 5000,
        "{} natives, {calls} calls",
        natives.len()
    );
    assert!(found.is_empty(), "{}", found.join("\n"));
}
