//! Calls to other services: where they may stand, and what can be seen of them in the tree.

use std::collections::BTreeSet;

use rhai::{Expr, FnCallExpr, Position};

use super::chain::{Chain, Link};
use super::findings::Findings;
use super::program::Program;
use super::scope::Scope;
use super::walk::{Check, Walker};
use super::{hooks, pools};
use crate::engine::{FETCH_OPTIONS, VERIFYING};
use crate::program::HookKind;
use crate::suggest::nearest;

/// The functions that wait for other services.
const WAITING: [&str; 2] = ["fetch", "fetch_all"];

fn waits(name: &str) -> bool {
    WAITING.contains(&name) || VERIFYING.contains(&name)
}

/// Reports calls in a hook that can't wait, also in the functions that it calls by their names.
pub(super) fn check_hook(
    program: &Program<'_>,
    name: &str,
    kind: HookKind,
    findings: &mut Findings,
) {
    if kind.may_wait() {
        return;
    }
    let mut seen = BTreeSet::new();
    let mut next: Vec<_> = hooks::candidates(program, name, kind).collect();
    while let Some(function) = next.pop() {
        if !seen.insert((function.name.clone(), function.params.len())) {
            continue;
        }
        let mut misplaced = Misplaced {
            kind,
            calls: BTreeSet::new(),
        };
        let checks: &mut [&mut dyn Check<'_>] = &mut [&mut misplaced];
        Walker::new(program, checks, findings).walk_function(function);
        let calls = misplaced.calls.iter();
        next.extend(calls.flat_map(|called| program.functions(called)));
    }
}

struct Misplaced {
    kind: HookKind,
    /// The names of all that is called.
    calls: BTreeSet<String>,
}

impl Misplaced {
    fn called(&mut self, call: &FnCallExpr, at: Position, findings: &mut Findings) {
        let name = call.name.as_str();
        if waits(name) {
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
}

impl<'a> Check<'a> for Misplaced {
    fn call(
        &mut self,
        call: &'a FnCallExpr,
        at: Position,
        _scope: &Scope<'a>,
        findings: &mut Findings,
    ) {
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

/// Pools and options that don't exist, where a call names them in so many words.
pub(super) struct Fetches<'a> {
    pub(super) pools: &'a [&'a str],
}

impl<'a> Check<'a> for Fetches<'_> {
    fn call(
        &mut self,
        call: &'a FnCallExpr,
        _at: Position,
        _scope: &Scope<'a>,
        findings: &mut Findings,
    ) {
        match (call.name.as_str(), call.args.as_slice()) {
            ("fetch", [to]) => self.recipient(to, findings),
            ("fetch", [to, options]) => {
                self.recipient(to, findings);
                self.options(options, None, findings);
            }
            ("fetch_all", [Expr::Array(calls, _)]) => {
                for call in calls.iter() {
                    self.recipient(call, findings);
                    self.options(call, Some("to"), findings);
                }
            }
            _ => {}
        }
    }
}

impl Fetches<'_> {
    fn recipient(&self, to: &Expr, findings: &mut Findings) {
        if let Expr::StringConstant(name, at) = to
            && !name.contains("://")
            && !self.pools.contains(&name.as_str())
        {
            pools::unknown(name, *at, self.pools, findings);
        }
    }

    /// `more` is the one option that is known beside those of `fetch`.
    fn options(&self, options: &Expr, more: Option<&str>, findings: &mut Findings) {
        let Expr::Map(map, _) = options else {
            return;
        };
        for (key, value) in &map.0 {
            let name = key.name.as_str();
            if more == Some(name) {
                self.recipient(value, findings);
            } else if !FETCH_OPTIONS.contains(&name) {
                let known = FETCH_OPTIONS.iter().copied().chain(more);
                let help = match nearest(name, known.clone()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("it has {}", known.collect::<Vec<_>>().join(", ")),
                };
                let message = format!("`fetch` has no option `{name}`");
                findings.error(key.pos, name.chars().count(), message, Some(help));
            }
        }
    }
}
