//! Calls that can't stand in a hook: those that wait for other services where it can't wait, and those that
//! belong to the top level.

use std::collections::BTreeSet;

use rhai::{FnCallExpr, Position};

use super::chain::{Chain, Link};
use super::findings::Findings;
use super::hooks;
use super::program::Program;
use super::scope::Scope;
use super::walk::{Check, Walker};
use crate::engine::VERIFYING;
use crate::load::AT_LOAD;
use crate::program::HookKind;

/// The functions that wait for other services.
const WAITING: [&str; 2] = ["fetch", "fetch_all"];

fn waits(name: &str) -> bool {
    WAITING.contains(&name) || VERIFYING.contains(&name)
}

/// Reports them in a hook, also in the functions that it calls by their names.
pub(super) fn check_hook(
    program: &Program<'_>,
    name: &str,
    kind: HookKind,
    findings: &mut Findings,
) {
    let mut seen = BTreeSet::new();
    let mut next: Vec<_> = hooks::candidates(program, name, kind).collect();
    while let Some(function) = next.pop() {
        if !seen.insert((function.name.clone(), function.params.len())) {
            continue;
        }
        let mut misplaced = Misplaced {
            program,
            kind,
            calls: BTreeSet::new(),
        };
        let checks: &mut [&mut dyn Check<'_>] = &mut [&mut misplaced];
        Walker::new(program, checks, findings).walk_function(function);
        let calls = misplaced.calls.iter();
        next.extend(calls.flat_map(|called| program.functions(called)));
    }
}

struct Misplaced<'p> {
    program: &'p Program<'p>,
    kind: HookKind,
    /// The names of all that is called.
    calls: BTreeSet<String>,
}

impl Misplaced<'_> {
    fn called(&mut self, call: &FnCallExpr, at: Position, findings: &mut Findings) {
        let name = call.name.as_str();
        if waits(name) && !self.kind.may_wait() {
            findings.error(
                at,
                name.len(),
                format!(
                    "`{name}` can't stand in {}: it waits",
                    self.kind.described()
                ),
                Some(format!("it may stand in {}", HookKind::WAITING)),
            );
        } else if !self.calls.contains(name) {
            self.calls.insert(name.to_owned());
        }
    }

    /// Whether a function of the program is called, which may have the name of a native.
    fn is_own(&self, call: &FnCallExpr) -> bool {
        let own = self.program.functions(call.name.as_str());
        own.iter()
            .any(|function| function.params.len() == call.args.len())
    }
}

impl<'a> Check<'a> for Misplaced<'_> {
    fn call(
        &mut self,
        call: &'a FnCallExpr,
        at: Position,
        _scope: &Scope<'a>,
        findings: &mut Findings,
    ) {
        let name = call.name.as_str();
        if AT_LOAD.contains(&name) && !self.is_own(call) {
            let message = format!(
                "`{name}` can't stand in {}: it belongs to the top level",
                self.kind.described()
            );
            let help = "move it there: hooks see its constants".to_owned();
            findings.error(at, name.len(), message, Some(help));
        }
        self.called(call, at, findings);
    }

    fn chain(&mut self, chain: &Chain<'a>, _scope: &Scope<'a>, findings: &mut Findings) {
        for link in &chain.links {
            if let Link::Method(call, at) = link {
                self.called(call, *at, findings);
            }
        }
    }
}
