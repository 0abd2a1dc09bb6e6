//! One worker's interpreter: the engine, the functions, and what is kept between calls.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    sync::Arc,
};

use rhai::{
    AST, Caches, Dynamic, Engine, EvalAltResult, EvalContext, Expr, GlobalRuntimeState,
    ImmutableString, Module, OptimizationLevel, Position, Scope, ScriptFuncDef, Shared, StmtBlock,
};
use smallvec::{SmallVec, smallvec};

use super::{
    attempt_api::AttemptHandle,
    comparisons,
    compiled::{self, CompiledHook, Compiler, Way},
    current::{self, Subject},
    failure::Failure,
    fetch_api, metric_api,
    request_api::RequestHandle,
    resolver::{self, SharedConstants},
    response_api::ResponseHandle,
    running::{Running, Said},
    sandbox, suspended,
};
use crate::{
    diagnostic::Diagnostic,
    frozen::Closures,
    load::refuse_in_hooks,
    program::{Hook, HookId, HookKind, Program},
    request::Request,
    syntax,
};

/// Runs the hooks of one program on one thread. Not `Send`: its values count their references
/// without locks.
pub struct Interpreter {
    program: Arc<Program>,
    state: Rc<State>,
}

/// What the calls of one program share on one thread.
pub(super) struct State {
    pub(super) program: Arc<Program>,
    engine: Engine,
    functions: rhai::Shared<Module>,
    /// By the number of the hook.
    hooks: Vec<Body>,
    /// Kept for the next calls.
    #[expect(clippy::vec_box, reason = "a call takes one along and gives it back")]
    frames: RefCell<Vec<Box<Frame>>>,
    /// After a panic nothing of it is used any more.
    pub(super) is_broken: Cell<bool>,
}

/// A hook, ready to be run as a block: that costs less than a call, and what runs out is then
/// reported where it happened in the hook and not where the hook was called.
struct Body {
    block: Expr,
    parameters: Vec<ImmutableString>,
    /// The values of the first parameters.
    captures: Vec<Dynamic>,
    /// Its compiled form, if it has one, which is run instead.
    compiled: Option<CompiledHook>,
    /// How it runs.
    way: Way,
}

/// What one call changes. A suspended hook keeps its own.
pub(super) struct Frame {
    global: GlobalRuntimeState,
    /// Kept between calls, so that a function is looked up by name once and not at each request.
    caches: Caches,
    scope: Scope<'static>,
    /// The variables of a compiled hook and of the functions that it calls.
    locals: Vec<Dynamic>,
}

/// Frames that are kept for the next calls. More exist only while hooks are suspended.
const KEPT_FRAMES: usize = 16;

/// The values that a hook is called with.
pub(super) type Arguments = SmallVec<[Dynamic; 2]>;

impl Interpreter {
    /// Compiles the program's functions and thaws its constants.
    ///
    /// # Errors
    /// When the source doesn't compile, which the loader has already ruled out.
    pub fn new(program: Arc<Program>) -> Result<Self, Diagnostic> {
        let state = Rc::new(State::new(&program)?);
        Ok(Self { program, state })
    }

    /// The program that it runs.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// How each hook runs, in the order of their numbers.
    pub fn ways(&self) -> impl Iterator<Item = &Way> {
        self.state.hooks.iter().map(|body| &body.way)
    }

    /// Whether none of its hooks is suspended: only then may it leave its thread.
    pub fn is_idle(&self) -> bool {
        Rc::strong_count(&self.state) == 1
    }

    /// Prepares a call of a hook, which begins when it is first resumed.
    ///
    /// # Errors
    /// When the interpreter has to be made anew after a panic, and can't be.
    pub fn start<V: Said>(&mut self, hook: HookId) -> Result<Running<V>, Failure> {
        if self.state.is_broken.get() {
            let state = State::new(&self.program);
            let state = state
                .map_err(|error| Failure::misuse(&self.program.hook(hook).place, error.message))?;
            self.state = Rc::new(state);
        }
        Ok(Running::new(&self.state, hook))
    }
}

impl State {
    fn new(program: &Arc<Program>) -> Result<Self, Diagnostic> {
        let mut engine = sandbox::engine(&program.limits, &program.path_policy);
        let mut constants = Module::new();
        // No optimisation: the optimiser would put constants in the place of parameters and local
        // variables that have their names.
        engine.set_optimization_level(OptimizationLevel::None);
        let ast = program.source.compile(&mut engine)?;
        let closures = Closures::of(&ast);
        let thawed: HashMap<String, Dynamic> = program
            .constants
            .iter()
            .map(|(name, value)| (name.clone(), value.thaw(&closures)))
            .collect();
        for (name, value) in &thawed {
            constants.set_var(name.as_str(), value.clone());
        }
        constants.build_index();
        engine.register_global_module(constants.into());
        refuse_in_hooks(&mut engine);
        let pools = program.clone();
        fetch_api::register(
            &mut engine,
            Rc::new(move |name| pools.pool_id(name)),
            program.limits.fetch_timeout,
        );
        metric_api::register(&mut engine, &program.metrics);

        if comparisons::are_used(&ast) {
            comparisons::refuse_mixed(&mut engine);
        }
        if resolver::is_needed(&ast) {
            let constants = SharedConstants::new(RefCell::new(thawed));
            resolver::install(&mut engine, &ast, constants);
        }
        suspended::allow_bytes(program.limits.waiting_memory);
        let hooks = bodies(program, &engine, &ast, &closures)?;
        Ok(Self {
            program: program.clone(),
            engine,
            functions: ast.shared_lib().clone(),
            hooks,
            frames: RefCell::default(),
            is_broken: Cell::new(false),
        })
    }

    /// Whether a hook may wait, or run for long, and so needs a stack of its own.
    pub(super) fn needs_stack(&self, hook: HookId) -> bool {
        let compiled = &self.hooks[hook.0 as usize].compiled;
        compiled
            .as_ref()
            .is_none_or(|compiled| compiled.needs_stack)
    }

    /// A frame for one call.
    pub(super) fn take_frame(&self) -> Box<Frame> {
        let kept = self.frames.borrow_mut().pop();
        kept.unwrap_or_else(|| {
            let mut global = self.engine.new_global_runtime_state();
            global.lib.push(self.functions.clone());
            global.source = Some(self.program.file().into());
            let mut caches = Caches::new();
            // The base layer: without one, each call would drop what it looked up.
            caches.push_fn_resolution_cache();
            Box::new(Frame {
                global,
                caches,
                scope: Scope::new(),
                locals: Vec::new(),
            })
        })
    }

    /// Takes a frame back after a call that ended, well or with an error.
    pub(super) fn keep_frame(&self, mut frame: Box<Frame>) {
        frame.scope.clear();
        let mut frames = self.frames.borrow_mut();
        if frames.len() < KEPT_FRAMES {
            frames.push(frame);
        }
    }

    /// What a hook gives, when that shows from the request alone.
    pub(super) fn quick(&self, hook: HookId, subject: &mut Subject<'_>) -> Option<Dynamic> {
        let limits = &self.program.limits;
        let hook = self.hooks[hook.0 as usize].compiled.as_ref()?;
        let quick = hook.quick.as_ref()?;
        if limits.operations < compiled::ENOUGH {
            return None;
        }
        let request: &dyn Request = match subject {
            Subject::Request(request) | Subject::Exchange(request, _) => &**request,
            Subject::Nothing => return None,
        };
        quick.gives(request, limits.string).cloned()
    }

    /// What a hook is given.
    fn arguments(&self, hook: HookId) -> Arguments {
        let hook = self.program.hook(hook);
        match hook.kind {
            HookKind::OnResponse | HookKind::OnResponseBody | HookKind::OnLog => {
                smallvec![Dynamic::from(RequestHandle), Dynamic::from(ResponseHandle)]
            }
            HookKind::To if hook.is_told_the_attempt => {
                smallvec![Dynamic::from(RequestHandle), Dynamic::from(AttemptHandle)]
            }
            HookKind::Every => smallvec![],
            _ => smallvec![Dynamic::from(RequestHandle)],
        }
    }

    /// Runs a hook in `frame`.
    pub(super) fn run(
        &self,
        hook: HookId,
        frame: &mut Frame,
    ) -> Result<Dynamic, Box<EvalAltResult>> {
        let body = &self.hooks[hook.0 as usize];
        let arguments = self.arguments(hook);
        if let Some(compiled) = &body.compiled {
            frame.locals.extend_from_slice(&body.captures);
            frame.locals.extend(arguments);
            if !body.captures.is_empty() {
                current::forget_answers();
            }
            frame.global.num_operations = 0;
            return compiled.run(&self.engine, &mut frame.global, &mut frame.locals);
        }
        let values = body.captures.iter().cloned().chain(arguments);
        for (name, value) in body.parameters.iter().zip(values) {
            frame.scope.push_dynamic(name.clone(), value);
        }
        if !body.captures.is_empty() {
            current::forget_answers();
        }
        // Nothing else sets Rhai's own counter back.
        frame.global.num_operations = 0;
        let mut context = EvalContext::new(
            &self.engine,
            &mut frame.global,
            &mut frame.caches,
            &mut frame.scope,
            None,
        );
        match context.eval_expression_tree(&(&body.block).into()) {
            Err(error) => match *error {
                EvalAltResult::Return(value, _) => Ok(value),
                _ => Err(error),
            },
            ended => ended,
        }
    }
}

/// The bodies of all hooks, in the order of their numbers.
fn bodies(
    program: &Program,
    engine: &Engine,
    ast: &AST,
    closures: &Closures,
) -> Result<Vec<Body>, Diagnostic> {
    let functions: HashMap<_, _> = ast
        .iter_fn_def()
        .map(|function| ((function.name.as_str(), function.params.len()), function))
        .collect();
    let function = |hook: &Hook| {
        let parameters = hook.function.captures.len() + hook.arguments();
        let function = functions.get(&(hook.function.name.as_str(), parameters));
        function.copied().ok_or_else(|| {
            Diagnostic::error(format!("the function `{}` is gone", hook.function.name))
        })
    };
    let functions = program.hooks.iter().map(function);
    let functions = functions.collect::<Result<Vec<_>, _>>()?;
    let captures = |hook: &Hook| -> Vec<Dynamic> {
        let captures = hook.function.captures.iter();
        captures.map(|value| value.thaw(closures)).collect()
    };
    let captures: Vec<_> = program.hooks.iter().map(captures).collect();
    let mut compiled = if program.limits.compile {
        let hooks = functions.iter().zip(&captures);
        let hooks = hooks.map(|(function, captures)| (*function, captures.as_slice()));
        Compiler::new(engine, ast).hooks(hooks)
    } else {
        Vec::new()
    }
    .into_iter();
    let body = |(function, captures): (&Shared<ScriptFuncDef>, Vec<Dynamic>)| {
        let (compiled, way) = match compiled.next() {
            None => (None, Way::Interpreted),
            Some(Ok(compiled)) => (Some(compiled), Way::Compiled),
            Some(Err(unknown)) => {
                let construct = program.source.readable(&unknown.construct, program.file());
                let way = Way::Unknown {
                    construct: construct.into_owned(),
                    place: program.source.place_or_start(unknown.place),
                };
                (None, way)
            }
        };
        let position = Position::NONE;
        let block = StmtBlock::new(syntax::body(function), position, position);
        Body {
            block: Expr::Stmt(Box::new(block)),
            parameters: function.params.iter().cloned().collect(),
            captures,
            compiled,
            way,
        }
    };
    Ok(functions.into_iter().zip(captures).map(body).collect())
}
