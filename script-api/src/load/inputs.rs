//! What a program is loaded with, and the natives that read it: `table`, `env`, `cidr`, `regex`.

use std::rc::Rc;

use rhai::{Dynamic, Engine, ImmutableString};

use super::{draft::SharedDraft, route_dsl::networks_of, tables};
use crate::{
    engine::{Limits, Local, NativeResult, native_error},
    path::PathPolicy,
    state::StateStore,
    values::{Cidr, Files, Regex},
};

/// Gives the value of an environment variable.
pub type Environment = Rc<dyn Fn(&str) -> Option<String>>;

/// Everything that a program is made of.
#[derive(Clone)]
pub struct Inputs {
    /// The name of the program's file, for messages.
    pub file: String,
    /// Its text.
    pub source: String,
    /// How it reads other files.
    pub files: Rc<dyn Files>,
    /// The environment.
    pub environment: Environment,
    /// Pools that are declared outside the program.
    pub pools: Vec<String>,
    /// Bounds of its hooks.
    pub limits: Limits,
    /// What paths must look like.
    pub path_policy: PathPolicy,
    /// What `rate`, `counter` and `cache` share with other programs: that of the process, or one of
    /// its own for a test or a tool.
    pub state: StateStore,
}

pub(super) fn register(engine: &mut Engine, inputs: &Inputs, draft: &SharedDraft) {
    tables::register(engine, inputs, draft);
    engine.register_fn("cidr", |networks: Dynamic| -> NativeResult<Local<Cidr>> {
        networks_of(networks).map(Local::new).map_err(native_error)
    });
    engine.register_fn("regex", |pattern: &str| -> NativeResult<Local<Regex>> {
        Regex::compile(pattern)
            .map(Local::new)
            .map_err(|reason| native_error(format!("bad pattern `{pattern}`: {reason}")))
    });
    let environment = inputs.environment.clone();
    engine.register_fn("env", move |name: &str| -> NativeResult<ImmutableString> {
        environment(name).map(Into::into).ok_or_else(|| {
            native_error(format!(
                "the environment variable `{name}` is not set; set it, or give a default: \
                 env(\"{name}\", \"..\")"
            ))
        })
    });
    let environment = inputs.environment.clone();
    engine.register_fn("env", move |name: &str, default: &str| {
        ImmutableString::from(environment(name).unwrap_or_else(|| default.to_owned()))
    });
}

/// The functions that belong to the load time.
pub(crate) const AT_LOAD: [&str; 20] = [
    "table",
    "cidr",
    "regex",
    "env",
    "secret",
    "htpasswd",
    "jwks",
    "route",
    "site",
    "pool",
    "on_request",
    "on_request_body",
    "on_response",
    "on_response_body",
    "on_log",
    "every",
    "rate",
    "counter",
    "cache",
    "concurrency",
];

/// Refuses, in hooks, what belongs to the load time.
pub(crate) fn refuse_in_hooks(engine: &mut Engine) {
    fn refused(name: &str) -> NativeResult<()> {
        Err(native_error(format!(
            "`{name}` stands at the top level: make a constant of it there"
        )))
    }
    for name in AT_LOAD {
        engine
            .register_fn(name, move || refused(name))
            .register_fn(name, move |_: Dynamic| refused(name))
            .register_fn(name, move |_: Dynamic, _: Dynamic| refused(name))
            .register_fn(name, move |_: Dynamic, _: Dynamic, _: Dynamic| {
                refused(name)
            });
    }
}
