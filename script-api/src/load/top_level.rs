//! Runs the top level, statement by statement, so that each constant is visible in functions that
//! later statements call.

use rhai::{AST, Caches, Dynamic, Engine, EvalAltResult, Position, Scope};

use super::draft::SharedDraft;
use crate::{
    diagnostic::Diagnostic,
    engine::{
        Exhausted, exhausted,
        resolver::{self, SharedConstants},
    },
    frozen::Frozen,
    lint::Natives,
    source::Source,
};

pub(super) fn run(
    engine: &mut Engine,
    ast: &AST,
    natives: &Natives,
    draft: &SharedDraft,
    source: &Source,
) -> Result<(), Diagnostic> {
    // Functions don't see the top level in Rhai.
    let constants = SharedConstants::default();
    resolver::install(engine, ast, constants.clone());

    let mut global = engine.new_global_runtime_state();
    // A function of the program that is called like a method of routes can be handed over here, and not
    // called: Rhai would take it for the method.
    let mut functions = ast.clone_functions_only();
    functions
        .retain_functions(|_, _, name, parameters| !natives.hides_for_a_while(name, parameters));
    global.lib.push(functions.shared_lib().clone());
    global.source = Some(source.main_file().into());
    let mut caches = Caches::new();
    caches.push_fn_resolution_cache();
    let mut scope = Scope::new();
    for statement in ast.statements() {
        let known = scope.len();
        #[allow(deprecated)] // The only way to run single statements with a state that is kept.
        let _value = engine
            .eval_statements_raw(
                &mut global,
                &mut caches,
                &mut scope,
                std::slice::from_ref(statement),
            )
            .map_err(|error| stopped(&error, statement.position(), source))?;
        // The newest come first; a block or function call leaves nothing behind.
        let made: Vec<_> = scope
            .iter_raw()
            .take(scope.len().saturating_sub(known))
            .filter(|(_, is_constant, _)| *is_constant)
            .map(|(name, _, value)| (name.to_owned(), value.flatten_clone()))
            .collect();
        for (name, value) in made {
            keep(draft, &name, &value, statement.position());
            constants.borrow_mut().insert(name, value);
        }
    }
    Ok(())
}

/// Why a statement failed; what ran out is named.
fn stopped(error: &EvalAltResult, statement: Position, source: &Source) -> Diagnostic {
    let found = Diagnostic::from_eval_error(error, source);
    let what = match exhausted() {
        None => return found,
        Some(Exhausted::Operations) => "more operations than a program may use",
        Some(Exhausted::Time) => "more time than a program may use (5 s of CPU time)",
        Some(Exhausted::Memory) => "more memory than a program may use (256 MiB)",
        Some(Exhausted::Stack) => "calls nested deeper than a program may nest them",
        // Calls can't be made here at all.
        Some(Exhausted::Fetches | Exhausted::Waiting) => return found,
    };
    Diagnostic {
        place: found.place.or(Some(source.place_or_start(statement))),
        ..Diagnostic::error(format!("loading takes {what}"))
    }
}

/// Freezes a constant for the hooks.
fn keep(draft: &SharedDraft, name: &str, value: &Dynamic, position: rhai::Position) {
    let mut draft = draft.borrow_mut();
    match Frozen::freeze(value) {
        Ok(frozen) => {
            draft.name_states(name, &frozen);
            draft.constants.retain(|(known, _)| known != name);
            draft.constants.push((name.to_owned(), frozen));
        }
        Err(what) => {
            let place = draft.place(position);
            draft
                .error(place, format!("the constant `{name}` holds {what}"))
                .help = Some(
                "constants are visible in hooks, so they hold plain data, tables, networks, \
                 patterns, shared state and functions; use `let` for a route or a site"
                    .to_owned(),
            );
        }
    }
}
