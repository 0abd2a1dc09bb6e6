//! One worker's state: the engine, the functions, and what is kept between calls.

use std::{
    cell::RefCell,
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use rhai::{
    Caches, Dynamic, Engine, EvalContext, GlobalRuntimeState, Module, OptimizationLevel, Scope,
};

use smallvec::SmallVec;

use super::{
    budget, comparisons, current,
    failure::{Failure, FailureKind},
    resolver::{self, SharedConstants},
    sandbox,
};
use crate::{
    diagnostic::Diagnostic,
    frozen::Closures,
    load::refuse_in_hooks,
    program::{HookId, Program},
};

/// Runs the hooks of one program on one thread. Not `Send`: its values count their references
/// without locks.
pub struct Interpreter {
    pub(super) program: Arc<Program>,
    /// `None` after a panic, until it is made anew.
    state: Option<State>,
}

struct State {
    engine: Engine,
    global: GlobalRuntimeState,
    /// Kept between calls, so that a function is looked up by name once and not at each request.
    caches: Caches,
    scope: Scope<'static>,
    /// The captured values of each hook, by its number.
    captures: Vec<Vec<Dynamic>>,
}

impl Interpreter {
    /// Compiles the program's functions and thaws its constants.
    ///
    /// # Errors
    /// When the source doesn't compile, which the loader has already ruled out.
    pub fn new(program: Arc<Program>) -> Result<Self, Diagnostic> {
        let state = State::new(&program)?;
        Ok(Self {
            program,
            state: Some(state),
        })
    }

    /// The program that it runs.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Calls a hook with `arguments` behind its captured values. They are used up.
    pub(super) fn call(
        &mut self,
        hook: HookId,
        arguments: &mut [&mut Dynamic],
    ) -> Result<Dynamic, Failure> {
        let place = &self.program.hook(hook).place;
        let state = match &mut self.state {
            Some(state) => state,
            empty => match State::new(&self.program) {
                Ok(state) => empty.insert(state),
                Err(error) => return Err(Failure::misuse(place, error.message)),
            },
        };
        budget::start(&self.program.limits);
        let name = &self.program.hook(hook).function.name;
        let called = catch_unwind(AssertUnwindSafe(|| {
            state.call(name, hook.0 as usize, arguments)
        }));
        match called {
            // What ran out may have been caught by the program, in a callback of a native.
            Ok(Ok(value)) => match Failure::exhausted(place) {
                Some(failure) => Err(failure),
                None => Ok(value),
            },
            Ok(Err(error)) => Err(Failure::from_rhai(&error, &self.program.source, place)),
            Err(_) => {
                // Scope and caches may be left half done: never use them again.
                let failure = Failure {
                    kind: FailureKind::Panic,
                    limit: None,
                    place: place.clone(),
                    message: "the interpreter panicked".to_owned(),
                };
                self.state = None;
                Err(failure)
            }
        }
    }
}

impl State {
    fn new(program: &Program) -> Result<Self, Diagnostic> {
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

        if comparisons::are_used(&ast) {
            comparisons::refuse_mixed(&mut engine);
        }
        if resolver::is_needed(&ast) {
            let constants = SharedConstants::new(RefCell::new(thawed));
            resolver::install(&mut engine, &ast, constants);
        }

        let mut global = engine.new_global_runtime_state();
        global.lib.push(ast.shared_lib().clone());
        global.source = Some(program.file().into());
        let mut caches = Caches::new();
        // The base layer: without one, each call would drop what it looked up.
        caches.push_fn_resolution_cache();
        let captures = program
            .hooks
            .iter()
            .map(|hook| {
                let captures = hook.function.captures.iter();
                captures.map(|value| value.thaw(&closures)).collect()
            })
            .collect();
        Ok(Self {
            engine,
            global,
            caches,
            scope: Scope::new(),
            captures,
        })
    }

    fn call(
        &mut self,
        name: &str,
        hook: usize,
        arguments: &mut [&mut Dynamic],
    ) -> Result<Dynamic, Box<rhai::EvalAltResult>> {
        if self.captures[hook].is_empty() {
            return self.call_raw(name, arguments);
        }
        let mut captured = self.captures[hook].clone();
        current::forget_answers();
        let mut all: SmallVec<[&mut Dynamic; 8]> = captured.iter_mut().collect();
        all.extend(arguments.iter_mut().map(|argument| &mut **argument));
        self.call_raw(name, &mut all)
    }

    fn call_raw(
        &mut self,
        name: &str,
        arguments: &mut [&mut Dynamic],
    ) -> Result<Dynamic, Box<rhai::EvalAltResult>> {
        // Nothing else sets Rhai's own counter back.
        self.global.num_operations = 0;
        EvalContext::new(
            &self.engine,
            &mut self.global,
            &mut self.caches,
            &mut self.scope,
            None,
        )
        .call_fn_raw(name, false, false, arguments)
    }
}
