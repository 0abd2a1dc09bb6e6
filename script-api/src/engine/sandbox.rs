//! The engine that programs run in: chosen packages only, every depth and size bounded.

use rhai::{
    Array, Dynamic, Engine, FLOAT, FnPtr, ImmutableString, Map, Module,
    module_resolvers::DummyModuleResolver,
    packages::{
        ArithmeticPackage, BasicArrayPackage, BasicFnPackage, BasicIteratorPackage,
        BasicMapPackage, BasicMathPackage, BasicStringPackage, LogicPackage, MoreStringPackage,
        Package,
    },
};

use super::{
    absent, answer_api, attempt_api, blob_api, body_api, by_name, coding_api, collections,
    cookie_api,
    current::{NativeResult, error},
    digest_api, equality, jwt,
    limits::Limits,
    log_api, metric_api, password_api, pick_api, progress, query_api, reply_api, request_api,
    request_values_api, response_api, secret_api, state_api, text_api, text_helpers, time_api,
    value_api, written,
};
use crate::path::PathPolicy;

/// Depth of nested expressions at the top level and in functions. Set in so many words because
/// Rhai's own defaults differ between debug and release builds.
const EXPRESSION_DEPTH: (usize, usize) = (512, 128);
/// Variables of one call and all its callers, and of the top level.
const VARIABLES: usize = 4096;
/// Functions of one program, closures included.
const FUNCTIONS: usize = 10_000;

/// An engine with everything that hooks can use, and no more: no `eval`, no `sleep`, no printing to
/// standard output, no access to files.
pub(crate) fn engine(limits: &Limits, path_policy: &PathPolicy) -> Engine {
    let mut engine = of_rhai();
    engine
        .set_max_call_levels(limits.call_depth)
        .set_max_expr_depths(EXPRESSION_DEPTH.0, EXPRESSION_DEPTH.1)
        .set_max_variables(VARIABLES)
        .set_max_functions(FUNCTIONS)
        .set_max_modules(0)
        .set_max_string_size(limits.string)
        .set_max_array_size(limits.items)
        .set_max_map_size(limits.items)
        .set_module_resolver(DummyModuleResolver::new())
        .disable_symbol("eval")
        .on_print(|_| {})
        .on_debug(|_, _, _| {});
    progress::install(&mut engine);

    request_api::register(&mut engine, *path_policy, limits.items);
    response_api::register(&mut engine, limits);
    body_api::register(&mut engine, limits);
    attempt_api::register(&mut engine, limits.items);
    request_values_api::register(&mut engine);
    query_api::register(&mut engine, limits);
    cookie_api::register(&mut engine);
    answer_api::register(&mut engine);
    reply_api::register(&mut engine, limits);
    value_api::register(&mut engine, limits);
    password_api::register(&mut engine);
    pick_api::register(&mut engine);
    secret_api::register(&mut engine, limits.string);
    state_api::register(&mut engine);
    text_api::register(&mut engine, limits);
    text_helpers::register(&mut engine, limits);
    written::register(&mut engine, limits);
    blob_api::register(&mut engine, limits.string);
    coding_api::register(&mut engine, limits);
    digest_api::register(&mut engine);
    time_api::register(&mut engine);
    jwt::register(&mut engine, limits);
    log_api::register(&mut engine);
    metric_api::register_methods(&mut engine);
    absent::register(&mut engine);
    closed(&mut engine);
    #[cfg(test)]
    engine.register_fn("panic_on_purpose", || -> () { panic!("on purpose") });
    collections::register(&mut engine, limits);
    equality::register(&mut engine);
    by_name::register(&mut engine);
    engine
}

/// An engine with what is used of Rhai's own packages, and nothing else.
pub(crate) fn of_rhai() -> Engine {
    let mut engine = Engine::new_raw();
    // One module for all packages: a name is looked up in one map, not in nine.
    let mut natives = Module::new();
    ArithmeticPackage::init(&mut natives);
    LogicPackage::init(&mut natives);
    BasicMathPackage::init(&mut natives);
    BasicStringPackage::init(&mut natives);
    MoreStringPackage::init(&mut natives);
    BasicIteratorPackage::init(&mut natives);
    BasicFnPackage::init(&mut natives);
    BasicArrayPackage::init(&mut natives);
    BasicMapPackage::init(&mut natives);
    natives.build_index();
    engine.register_global_module(natives.into());
    engine
}

/// Functions that Rhai has and that have no place in a proxy. The one that fits a value best is
/// called, so there must be one for each type that Rhai has one for.
fn closed(engine: &mut Engine) {
    fn fails<T>(_: T) -> NativeResult<()> {
        nothing()
    }
    fn nothing() -> NativeResult<()> {
        Err(error("there is no standard output here"))
    }
    for name in ["print", "debug"] {
        engine
            .register_fn(name, nothing)
            .register_fn(name, fails::<Dynamic>)
            .register_fn(name, fails::<ImmutableString>)
            .register_fn(name, fails::<char>)
            .register_fn(name, fails::<bool>)
            .register_fn(name, fails::<()>)
            .register_fn(name, fails::<FLOAT>)
            .register_fn(name, fails::<Array>)
            .register_fn(name, fails::<Map>)
            .register_fn(name, fails::<FnPtr>);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
