//! The hooks by Rhai alone, as one embeds it without edgewright: `Engine::new`, a custom type for the
//! request, `Engine::call_fn`.
//!
//! Set to the same bounds as edgewright's hooks, where Rhai has them; all else is Rhai's default. The
//! requests are held as the engine wants them (`Rc<RefCell<..>>`), so no call pays for that.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use edgewright_script::{
    answer::{Answer, header_name, header_value},
    engine::Limits,
    memory::MemoryRequest,
    request::header_text,
    rhai::{
        AST, CallFnOptions, Dynamic, Engine, EvalAltResult, INT, ImmutableString, Module, Scope,
    },
};

use super::job::{Hooks, Job, Outcome, Pool};
use super::native;
use crate::load::{self, BLUE, GREEN};

/// The same functions as in `crate::edgewright`. `KEYS` stands for what they call the table.
const FUNCTIONS: &str = r#"
fn require_key(req) {
    let client = KEYS.get(req.header("x-api-key"));
    if client == () { return respond(401, "unknown API key\n"); }
    req.set_header("x-client", client);
}

fn choose_pool(req) {
    if req.header("x-variant") == "green" { "green" } else { "blue" }
}
"#;

type NativeResult<T> = Result<T, Box<EvalAltResult>>;

/// The hooks by Rhai alone.
pub(super) struct Plain {
    engine: Engine,
    ast: AST,
    /// Whether each call runs the top level too, as `call_fn` does unless told otherwise.
    top_level: bool,
    requests: Vec<PlainRequest>,
}

#[derive(Clone)]
struct PlainRequest(Rc<RefCell<MemoryRequest>>);

#[derive(Clone)]
struct Keys(Rc<HashMap<String, ImmutableString>>);

impl Plain {
    /// For these requests.
    pub(super) fn new(top_level: bool, requests: Vec<MemoryRequest>) -> Result<Self> {
        let keys = Keys(Rc::new(
            load::keys()
                .map(|(key, client)| (key, client.into()))
                .collect(),
        ));
        let mut engine = bounded_engine();
        register(&mut engine);
        let source = if top_level {
            // The table itself is made once; the top level takes it anew for each call.
            engine.register_fn("keys", move || keys.clone());
            format!(
                "const KEYS = keys();\n{}",
                FUNCTIONS.replace("KEYS", "global::KEYS")
            )
        } else {
            let mut constants = Module::new();
            constants.set_var("KEYS", keys);
            constants.build_index();
            engine.register_global_module(constants.into());
            FUNCTIONS.to_owned()
        };
        let ast = engine
            .compile(source)
            .context("the plain script does not compile")?;
        Ok(Self {
            engine,
            ast,
            top_level,
            requests: requests
                .into_iter()
                .map(|request| PlainRequest(Rc::new(RefCell::new(request))))
                .collect(),
        })
    }

    fn run(&self, function: &str, request: usize) -> NativeResult<Dynamic> {
        let arguments = (self.requests[request].clone(),);
        let mut scope = Scope::new();
        if self.top_level {
            return self
                .engine
                .call_fn(&mut scope, &self.ast, function, arguments);
        }
        let options = CallFnOptions::new().eval_ast(false);
        self.engine
            .call_fn_with_options(options, &mut scope, &self.ast, function, arguments)
    }
}

impl Hooks for Plain {
    fn call(&mut self, job: Job, request: usize) -> Result<Outcome> {
        let function = match job {
            Job::Routing => "choose_pool",
            Job::Auth => "require_key",
            Job::Networks | Job::Pattern => bail!("not written for Rhai alone"),
        };
        // Rhai's errors aren't `Send`.
        let value = self
            .run(function, request)
            .map_err(|error| anyhow::anyhow!("{error}"))?;
        if value.is_unit() {
            return Ok(Outcome::Continue);
        }
        if let Ok(name) = value.as_immutable_string_ref() {
            return match name.as_str() {
                BLUE => Ok(Outcome::Pool(Pool::Blue)),
                GREEN => Ok(Outcome::Pool(Pool::Green)),
                other => bail!("there is no pool `{other}`"),
            };
        }
        match value.try_cast::<Answer>() {
            Some(answer) => Ok(Outcome::Answer(answer)),
            None => bail!("a hook gave neither a pool nor an answer"),
        }
    }

    fn client(&self, request: usize) -> Option<String> {
        native::client(&self.requests[request].0.borrow())
    }
}

/// Rhai's standard engine with the bounds of edgewright's hooks, as far as it has them.
fn bounded_engine() -> Engine {
    let limits = Limits::default();
    let mut engine = Engine::new();
    engine
        .set_max_operations(limits.operations)
        .set_max_call_levels(limits.call_depth)
        .set_max_string_size(limits.string)
        .set_max_array_size(limits.items)
        .set_max_map_size(limits.items);
    engine
}

fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<PlainRequest>("Request")
        .register_fn("header", |req: &mut PlainRequest, name: &str| -> Dynamic {
            let request = req.0.borrow();
            let value = request.headers.get(name);
            value.map_or(Dynamic::UNIT, |value| {
                ImmutableString::from(&*header_text(value.as_bytes())).into()
            })
        })
        .register_fn(
            "set_header",
            |req: &mut PlainRequest, name: &str, value: &str| -> NativeResult<()> {
                let (name, value) = (header_name(name)?, header_value(value)?);
                req.0.borrow_mut().headers.insert(name, value);
                Ok(())
            },
        )
        .register_type_with_name::<Keys>("Keys")
        .register_fn("get", |keys: &mut Keys, key: &str| -> Dynamic {
            let client = keys.0.get(key);
            client.map_or(Dynamic::UNIT, |client| client.clone().into())
        })
        .register_fn("get", |_: &mut Keys, (): ()| Dynamic::UNIT)
        .register_type_with_name::<Answer>("Answer")
        .register_fn(
            "respond",
            |status: INT, body: ImmutableString| -> NativeResult<Answer> {
                Ok(Answer::new(status, body.as_str().to_owned())?)
            },
        );
}
