//! Hooks as machine code of closures.
//!
//! The interpreter walks the syntax tree of a hook in each call: it looks functions up by hashes of names
//! and types, asks each node what it is, and boxes what `return` gives. Here that is done once, when a
//! program is loaded: each node becomes a closure that holds the closures of its parts, names are numbers
//! of slots, and a place that calls a native function keeps the function for the types that came.
//!
//! **The meaning is Rhai's, to the letter**, and Rhai's interpreter is the reference: values are Rhai's
//! own, natives are the very same functions, operations are counted where it counts them, and errors are
//! its own with its positions. A hook with anything in it that isn't known here is interpreted as a
//! whole; [`Way`] says what that was. `tests/compiled.rs` runs generated programs both ways.

mod direct;
mod iterators;
mod lent;
mod lower;
mod machine;
mod native;
mod numbers;
mod quick;

use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
};

use rhai::{
    AST, Dynamic, Engine, EvalAltResult, GlobalRuntimeState, Position, ScriptFuncDef, Shared,
};

use lower::{Body, Compiled, Lowering};
use machine::{Host, Machine, Stop};

pub(super) use lower::Unknown;
pub(super) use quick::{ENOUGH, Quick};

use super::budget;
use crate::{diagnostic::Place, syntax};

/// How a hook runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// As compiled code.
    Compiled,
    /// By the interpreter, since compiling is switched off.
    Interpreted,
    /// By the interpreter: this, at this place, can't be compiled.
    Unknown {
        /// What, in the words of the manual.
        construct: String,
        /// Where it begins.
        place: Place,
    },
}

/// A hook, compiled.
pub(super) struct CompiledHook {
    body: Body,
    /// Whether it may take long or wait, and so needs a stack of its own.
    pub(super) needs_stack: bool,
    /// The questions to the request that it begins with.
    pub(super) quick: Option<Quick>,
    /// The functions that it may call, which all hooks of a program share.
    _functions: Rc<Vec<Compiled>>,
}

impl CompiledHook {
    /// Runs it with `locals` as its first variables: what it captured, and what it is given. They are gone
    /// afterwards.
    ///
    /// # Errors
    /// As of the interpreter.
    pub(super) fn run(
        &self,
        engine: &Engine,
        global: &mut GlobalRuntimeState,
        locals: &mut Vec<Dynamic>,
    ) -> Result<Dynamic, Box<EvalAltResult>> {
        let mut machine = Machine {
            host: Host { engine, global },
            locals,
            base: 0,
        };
        let ended = (self.body.code)(&mut machine);
        locals.clear();
        match ended {
            Ok(value) | Err(Stop::Return(value)) => Ok(value),
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::Break(_) | Stop::Continue) => {
                Err(EvalAltResult::LoopBreak(false, Dynamic::UNIT, Position::NONE).into())
            }
        }
    }
}

/// Compiles functions of one program as bodies of hooks.
pub(super) struct Compiler<'p> {
    engine: &'p Engine,
    global: GlobalRuntimeState,
    functions: HashMap<(&'p str, usize), &'p Shared<ScriptFuncDef>>,
    source: Option<&'p str>,
}

impl<'p> Compiler<'p> {
    /// For the functions of `ast`, with the constants that `engine` knows.
    pub(super) fn new(engine: &'p Engine, ast: &'p AST) -> Self {
        let mut global = engine.new_global_runtime_state();
        global.lib.push(ast.shared_lib().clone());
        let functions = ast
            .iter_fn_def()
            .map(|function| ((function.name.as_str(), function.params.len()), function))
            .collect();
        Self {
            engine,
            global,
            functions,
            source: ast.shared_lib().id(),
        }
    }

    /// Compiles each of these functions, with the values of its first parameters.
    pub(super) fn hooks<'f>(
        &mut self,
        functions: impl Iterator<Item = (&'f Shared<ScriptFuncDef>, &'f [Dynamic])>,
    ) -> Vec<Result<CompiledHook, Unknown>> {
        let names: HashSet<&str> = self.functions.keys().map(|(name, _)| *name).collect();
        // What is left of the last call on this thread is no bound of this.
        budget::stop();
        let builtins = Rc::new(Engine::new_raw());
        let mut lowering = Lowering::new(
            self.engine,
            &mut self.global,
            &builtins,
            &self.functions,
            self.source,
        );
        let lowered: Vec<_> = functions
            .map(|(function, captured)| {
                let (body, traits) = lowering.hook(function, captured)?;
                Ok((body, traits, quick(function, captured, &names)))
            })
            .collect();
        let functions = Rc::new(lowering.into_functions());
        lowered
            .into_iter()
            .map(|lowered| {
                let (body, traits, quick) = lowered?;
                Ok(CompiledHook {
                    body,
                    needs_stack: traits.needs_stack,
                    quick,
                    _functions: functions.clone(),
                })
            })
            .collect()
    }
}

/// The questions that a hook begins with: its first parameter behind what it captured is the request.
fn quick(
    function: &Shared<ScriptFuncDef>,
    captured: &[Dynamic],
    names: &HashSet<&str>,
) -> Option<Quick> {
    let request = function.params.get(captured.len())?;
    // A parameter that has the same name as another one is hidden by it.
    if function
        .params
        .iter()
        .filter(|name| *name == request)
        .count()
        > 1
    {
        return None;
    }
    let finder = quick::Finder {
        request,
        is_own: &|name| names.contains(name),
        kept: None,
    };
    finder.body(&syntax::body(function))
}
