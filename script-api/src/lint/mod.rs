//! Checks over the syntax tree of `routes.rhai`, made while loading.
//!
//! Rhai compiles a program that calls a function which exists nowhere, reads a
//! variable that was never declared, or makes a response and forgets to return
//! it; all of that would surface when the first request comes through the hook.
//! These checks find it before.
//!
//! The tree must come from an engine with `OptimizationLevel::None`: the
//! optimiser folds code away, and with it the mistakes. Depth is bounded by the
//! engine's limits on expression depth, which the parser enforces; deeper trees
//! (from an engine without limits) get a warning instead of an overflow.

mod assignments;
mod calls;
mod chain;
mod comparisons;
mod conditions;
mod currying;
mod discarded;
mod fetches;
mod findings;
mod forbidden;
mod functions;
mod hooks;
mod kinds;
mod known;
mod literals;
mod metrics;
mod names;
mod no_effect;
mod phases;
mod picks;
mod place;
mod pools;
mod program;
mod properties;
mod pure;
mod results;
mod scope;
mod self_use;
mod shadowing;
mod variables;
mod walk;

#[cfg(test)]
mod tests;

use rhai::AST;

pub use known::{Known, NativeSignature, Natives};

use crate::{diagnostic::Diagnostic, program::HookKind, state::metric::MetricRule};
use findings::Findings;
use hooks::Parameters;
use names::Names;
use program::Program;
use walk::{Check, Walker};

/// A program prepared for checking: its functions are taken out of the tree once.
pub struct Linter<'a> {
    program: Program<'a>,
    known: &'a Known<'a>,
}

impl<'a> Linter<'a> {
    /// Prepares `ast`, which must be compiled with `OptimizationLevel::None`.
    #[must_use]
    pub fn new(ast: &'a AST, known: &'a Known<'a>) -> Self {
        Self {
            program: Program::new(ast),
            known,
        }
    }

    /// Every check that holds for the whole program; findings in the order of their places.
    #[must_use]
    pub fn check(&self) -> Vec<Diagnostic> {
        let mut findings = Findings::new(self.known.source);
        let names = Names::new(&self.program, self.known);
        let checks: &mut [&mut dyn Check<'_>] = &mut [
            &mut variables::Variables { names },
            &mut assignments::Assignments { names },
            &mut calls::Calls { names },
            &mut functions::FunctionNames { names },
            &mut discarded::Discarded {
                program: &self.program,
            },
            &mut no_effect::NoEffect { names },
            &mut pure::Pure {
                program: &self.program,
            },
            &mut literals::Literals {
                program: &self.program,
            },
            &mut comparisons::Comparisons {
                program: &self.program,
                parameters: None,
            },
            &mut conditions::Conditions {
                program: &self.program,
            },
            &mut forbidden::Forbidden {
                program: &self.program,
                source: self.known.source,
            },
            &mut currying::Currying {
                program: &self.program,
            },
            &mut self_use::SelfUse,
            &mut picks::Picks,
        ];
        Walker::new(&self.program, checks, &mut findings).walk_program();
        shadowing::check(names, &mut findings);
        findings.into_sorted()
    }

    /// The metrics that the program uses, and what is wrong with them.
    pub(crate) fn metrics(&self) -> (Vec<MetricRule>, Vec<Diagnostic>) {
        let mut findings = Findings::new(self.known.source);
        let mut metrics = metrics::Metrics::new(&self.program);
        let checks: &mut [&mut dyn Check<'_>] = &mut [&mut metrics];
        Walker::new(&self.program, checks, &mut findings).walk_program();
        let rules = metrics.finish(&mut findings);
        (rules, findings.into_sorted())
    }

    /// The check that asks for the pools, for the whole program; nothing while they aren't known.
    #[must_use]
    pub fn check_fetches(&self) -> Vec<Diagnostic> {
        let mut findings = Findings::new(self.known.source);
        if let Some(pools) = self.known.pools {
            let checks: &mut [&mut dyn Check<'_>] = &mut [&mut fetches::Fetches { pools }];
            Walker::new(&self.program, checks, &mut findings).walk_program();
        }
        findings.into_sorted()
    }

    /// The checks for a function or closure that is used as a hook, by its
    /// name (Rhai's own name, `anon$…`, for a closure). A name that the program
    /// doesn't define has no findings: whoever registers the hook reports it.
    #[must_use]
    pub fn check_hook(&self, name: &str, kind: HookKind) -> Vec<Diagnostic> {
        let mut findings = Findings::new(self.known.source);
        let names = Names::new(&self.program, self.known);
        phases::check_hook(names, name, kind, &mut findings);
        for function in hooks::candidates(&self.program, name, kind) {
            results::check(&self.program, function, kind, &mut findings);
            if let (HookKind::To, Some(pools)) = (kind, self.known.pools) {
                pools::check(&self.program, function, pools, &mut findings);
            }
            let parameters = Parameters::of(function, kind);
            let checks: &mut [&mut dyn Check<'_>] = &mut [
                &mut properties::Properties {
                    known: self.known,
                    program: &self.program,
                    parameters,
                },
                &mut comparisons::Comparisons {
                    program: &self.program,
                    parameters: Some(parameters),
                },
            ];
            Walker::new(&self.program, checks, &mut findings).walk_function(function);
        }
        findings.into_sorted()
    }
}

/// [`Linter::check`] for one use.
#[must_use]
pub fn check(ast: &AST, known: &Known<'_>) -> Vec<Diagnostic> {
    Linter::new(ast, known).check()
}
