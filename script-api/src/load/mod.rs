//! From the text of `routes.rhai` to a [`Program`].
//!
//! The top level runs here, once. It fills a [`draft::Draft`], which is then checked as a whole and
//! becomes the immutable program.

mod auth_dsl;
mod auth_options;
mod auth_values;
mod background;
mod build;
mod compress_dsl;
mod cors_dsl;
mod draft;
mod forward_dsl;
mod gate_draft;
mod gate_dsl;
mod hook_dsl;
mod inputs;
mod link;
mod mirror_dsl;
mod options;
mod order;
mod retries_dsl;
mod route_dsl;
mod site_dsl;
mod states;
mod sticky_dsl;
mod tables;
mod top_level;

use std::{cell::RefCell, collections::HashSet, rc::Rc, sync::Arc};

use rhai::{Engine, OptimizationLevel};

pub(crate) use inputs::{AT_LOAD, refuse_in_hooks};
pub use inputs::{Environment, Inputs};

use crate::{
    diagnostic::{Diagnostic, Diagnostics, Severity},
    engine::{self, REQUEST_PROPERTIES, RESPONSE_PROPERTIES, sandbox},
    lint::{Known, Linter, Natives},
    program::Program,
    source::Source,
    state::metric::Metric,
};
use draft::{Draft, SharedDraft};

/// A program, and what its author should know about it.
#[derive(Debug)]
pub struct Loaded {
    /// The program.
    pub program: Program,
    /// Findings that don't stop it.
    pub warnings: Vec<Diagnostic>,
}

/// Why there is no program.
#[derive(Debug)]
pub enum LoadError {
    /// The folder was swapped while it was read: start again.
    Changed,
    /// The program is wrong.
    Invalid(Diagnostics),
}

impl From<Diagnostic> for LoadError {
    fn from(error: Diagnostic) -> Self {
        Self::Invalid(error.into())
    }
}

impl From<Diagnostics> for LoadError {
    fn from(errors: Diagnostics) -> Self {
        Self::Invalid(errors)
    }
}

/// Compiles, checks and evaluates a program.
///
/// # Errors
/// With every mistake that could be found at once, each with its place.
pub fn load(inputs: &Inputs) -> Result<Loaded, LoadError> {
    let draft = Rc::new(RefCell::new(Draft::new()));
    let limits = inputs.limits.for_loading();
    let mut engine = engine(inputs, &draft);
    let mut natives = Natives::from_engine(&engine);
    let lasting = sandbox::engine(&limits, &inputs.path_policy);
    natives.outlast(&Natives::from_engine(&lasting), &AT_LOAD);
    let (source, ast) = link::compile(&mut engine, inputs, &natives)?;
    let source = Arc::new(source);
    draft.borrow_mut().set_source(&source);
    let known = Known {
        source: &source,
        functions: &natives,
        request_properties: REQUEST_PROPERTIES,
        response_properties: RESPONSE_PROPERTIES,
        constants: &[],
        pools: None,
    };
    let linter = Linter::new(&ast, &known);
    let mut findings = linter.check();
    let (metrics, of_metrics) = linter.metrics();
    findings.extend(of_metrics);
    stop_at_errors(&mut findings, &source)?;

    engine::start_budget(&limits);
    let ran = top_level::run(&mut engine, &ast, &natives, &draft, &source);
    // The engine's functions hold the draft too.
    drop(engine);
    let mut draft = std::mem::take(&mut *draft.borrow_mut());
    if draft.files_changed {
        return Err(LoadError::Changed);
    }
    findings.extend(draft.findings.iter().cloned());
    match ran {
        Ok(()) => findings.extend(draft.nameless_states()),
        Err(error) => findings.push(error),
    }
    stop_at_errors(&mut findings, &source)?;

    draft.metrics = metrics.into_iter().map(Metric::new).collect();
    let states = std::mem::take(&mut draft.states);
    let program = build::build(draft, &ast, inputs, source.clone(), &mut findings);
    let Some(program) = program else {
        return Err(LoadError::Invalid(all_of(&mut findings, &source)));
    };
    let pools: Vec<&str> = program
        .pools
        .iter()
        .map(|pool| pool.name.as_str())
        .collect();
    let known = Known {
        pools: Some(&pools),
        ..known
    };
    let linter = Linter::new(&ast, &known);
    findings.extend(linter.check_fetches());
    let mut checked = HashSet::new();
    for hook in &program.hooks {
        if checked.insert((&hook.function.name, hook.kind)) {
            findings.extend(linter.check_hook(&hook.function.name, hook.kind));
        }
    }
    stop_at_errors(&mut findings, &source)?;
    states::bind(&states, &program.metrics, &inputs.state);
    for route in &program.routes {
        if let Some(gates) = &route.gates {
            gates.bind(&inputs.state);
        }
    }
    Ok(Loaded {
        program,
        warnings: all_of(&mut findings, &source).0,
    })
}

/// The engine of the load time, whose natives fill `draft`.
fn engine(inputs: &Inputs, draft: &SharedDraft) -> Engine {
    let limits = inputs.limits.for_loading();
    let mut engine = sandbox::engine(&limits, &inputs.path_policy);
    engine.set_optimization_level(OptimizationLevel::None);
    site_dsl::register(&mut engine, draft);
    route_dsl::register(&mut engine);
    hook_dsl::register(&mut engine, draft);
    gate_dsl::register(&mut engine);
    compress_dsl::register(&mut engine);
    retries_dsl::register(&mut engine);
    mirror_dsl::register(&mut engine);
    auth_dsl::register(&mut engine);
    forward_dsl::register(&mut engine);
    inputs::register(&mut engine, inputs, draft);
    auth_values::register(&mut engine, inputs, draft);
    states::register(&mut engine, draft);
    background::register(&mut engine, draft);
    engine::refuse_while_loading(&mut engine);
    engine::refuse_metrics_while_loading(&mut engine);
    engine
}

/// The engine of the load time, for who only looks at its natives.
#[cfg(test)]
pub(crate) fn bare_engine(inputs: &Inputs) -> Engine {
    engine(inputs, &SharedDraft::default())
}

/// The types of what the load time makes of the program, and what the reference calls them.
#[cfg(test)]
pub(crate) fn own_types() -> Vec<(std::any::TypeId, &'static str)> {
    use std::any::TypeId;
    vec![
        (TypeId::of::<route_dsl::RouteHandle>(), "Route"),
        (TypeId::of::<site_dsl::SiteHandle>(), "Site"),
    ]
}

fn stop_at_errors(findings: &mut Vec<Diagnostic>, source: &Source) -> Result<(), LoadError> {
    if findings.iter().any(|one| one.severity == Severity::Error) {
        return Err(LoadError::Invalid(all_of(findings, source)));
    }
    Ok(())
}

/// Takes the findings, as a reader of the files knows the names in them.
fn all_of(findings: &mut Vec<Diagnostic>, source: &Source) -> Diagnostics {
    let mut all = std::mem::take(findings);
    for finding in &mut all {
        source.make_readable(finding);
    }
    Diagnostics(all)
}
