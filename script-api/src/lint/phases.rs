//! What stands in a hook that can't stand there, also in the functions that it calls.
//!
//! What a call needs of its place says [`crate::reference`], what a hook has says
//! [`crate::program::Need`]. The type of a receiver is known where it is a parameter of the hook, and is
//! handed on as such to the program's own functions.

use std::collections::HashSet;

use rhai::{Expr, FnCallExpr, ImmutableString, Position};

use super::chain::{Chain, Link};
use super::findings::Findings;
use super::hooks::{self, Subject};
use super::names::{Meaning, Names};
use super::program::Function;
use super::scope::{Scope, Use};
use super::walk::{Check, Walker};
use crate::program::{HookKind, Need};
use crate::reference;

/// Functions that a hook leads to; a program that has more is not followed to its end.
const MOST_VISITS: usize = 10_000;

/// Reports what the hook called `name` can't do, at the place where it does it.
pub(super) fn check_hook(names: Names<'_>, name: &str, kind: HookKind, findings: &mut Findings) {
    let mut seen = HashSet::new();
    let mut next: Vec<Visit<'_>> = hooks::candidates(names.program, name, kind)
        .map(|function| Visit {
            function,
            subjects: hooks::of_parameters(function, kind),
            way: Vec::new(),
        })
        .collect();
    while let Some(visit) = next.pop() {
        let key = (
            visit.function.name.clone(),
            visit.function.params.len(),
            visit.subjects.clone(),
        );
        if seen.len() >= MOST_VISITS || !seen.insert(key) {
            continue;
        }
        let function = visit.function;
        let mut phases = Phases {
            names,
            kind,
            visit,
            calls: Vec::new(),
        };
        let checks: &mut [&mut dyn Check<'_>] = &mut [&mut phases];
        Walker::new(names.program, checks, findings).walk_function(function);
        next.extend(phases.calls);
    }
}

/// A function that runs in the hook.
struct Visit<'a> {
    function: &'a Function,
    /// What its parameters are, as far as that is known.
    subjects: Vec<Option<Subject>>,
    /// The functions through which the hook comes here, this one last; empty for the hook itself.
    way: Vec<ImmutableString>,
}

struct Phases<'a> {
    names: Names<'a>,
    kind: HookKind,
    visit: Visit<'a>,
    /// Functions of the program that it calls or hands on.
    calls: Vec<Visit<'a>>,
}

impl<'a> Phases<'a> {
    /// What the variable is, when it is one of the parameters that are known.
    fn subject(&self, name: &str, scope: &Scope<'_>) -> Option<Subject> {
        // Parameters are declared first, in their order, so a local's index tells which it is.
        let (index, _) = scope.find(name)?;
        *self.visit.subjects.get(index)?
    }

    fn subject_of(&self, value: &Expr, scope: &Scope<'_>) -> Option<Subject> {
        match value {
            Expr::Variable(variable, ..) if variable.2.is_empty() => {
                self.subject(&variable.1, scope)
            }
            _ => None,
        }
    }

    /// Notes the functions called `name` that `fits`, to be looked at as a part of the hook.
    fn follow(
        &mut self,
        name: &str,
        subjects: &[Option<Subject>],
        fits: impl Fn(&Function) -> bool,
    ) -> bool {
        let all = self.names.program.functions(name).iter();
        let before = self.calls.len();
        self.calls
            .extend(all.filter(|one| fits(one)).map(|function| {
                let mut way = self.visit.way.clone();
                way.push(function.name.clone());
                let given = subjects.iter().copied().chain(std::iter::repeat(None));
                Visit {
                    function,
                    subjects: given.take(function.params.len()).collect(),
                    way,
                }
            }));
        self.calls.len() > before
    }

    /// Reports `name` at `at` unless hooks of this kind have what it needs.
    fn require(&self, need: Need, name: &str, at: Position, findings: &mut Findings) {
        if self.kind.has(need) {
            return;
        }
        let (message, mut help) = match need {
            Need::RequestChange | Need::RequestValues => self.late_change(),
            need => (
                format!(
                    "`{name}` can't stand in {}: {}",
                    self.kind.described(),
                    need.reason()
                ),
                match need {
                    Need::LoadTime => "move it there: hooks see its constants".to_owned(),
                    need => format!("it may stand {}", need.places()),
                },
            ),
        };
        if !self.visit.way.is_empty() {
            let way: Vec<String> = self
                .visit
                .way
                .iter()
                .map(|name| format!("`{name}`"))
                .collect();
            help = format!("{help}; the hook comes here through {}", way.join(", "));
        }
        findings.error(at, name.chars().count(), message, Some(help));
    }
}

impl Phases<'_> {
    /// Why the request can't be changed here, and what to do.
    fn late_change(&self) -> (String, String) {
        let (message, or) = match self.kind {
            HookKind::When => ("a `.when` only looks at the request", ""),
            HookKind::OnLog => (
                "everything is over in `on_log`: it only looks at the request",
                "",
            ),
            _ => (
                "the request was sent already: it can't be changed once the response is there",
                ", or change `res`",
            ),
        };
        (message.to_owned(), format!("change it in `on_request`{or}"))
    }
}

/// What the reference calls the type.
fn type_of(subject: Subject) -> &'static str {
    match subject {
        Subject::Request => "Request",
        Subject::Response => "Response",
        Subject::Attempt => "Attempt",
    }
}

impl<'a> Check<'a> for Phases<'a> {
    fn call(
        &mut self,
        call: &'a FnCallExpr,
        at: Position,
        scope: &Scope<'a>,
        findings: &mut Findings,
    ) {
        let name = call.name.as_str();
        if let ("Fn", [Expr::StringConstant(name, _)]) = (name, call.args.as_slice()) {
            self.follow(name, &[], |_| true);
            return;
        }
        let subjects: Vec<_> = call
            .args
            .iter()
            .map(|value| self.subject_of(value, scope))
            .collect();
        let arguments = subjects.len();
        // A function of the program goes before a native.
        if self.follow(name, &subjects, |one| one.params.len() == arguments) {
            return;
        }
        // `set_header(req, ..)` is `req.set_header(..)`.
        let receiver = subjects.first().copied().flatten();
        let method = receiver.and_then(|of| reference::find(Some(type_of(of)), name));
        if let Some(entry) = method.or_else(|| reference::find(None, name)) {
            self.require(entry.need, name, at, findings);
        }
    }

    fn chain(&mut self, chain: &Chain<'a>, scope: &Scope<'a>, findings: &mut Findings) {
        let receiver = chain
            .variable()
            .and_then(|(name, _)| self.subject(name, scope));
        for (index, link) in chain.links.iter().enumerate() {
            let (name, at) = match link {
                Link::Method(call, at) => (call.name.as_str(), *at),
                Link::Property(name, at) => (*name, *at),
                Link::Index(_) => continue,
            };
            let own = receiver.filter(|_| index == 0).map(type_of);
            if let Some(entry) = own.and_then(|own| reference::find(Some(own), name)) {
                self.require(entry.need, name, at, findings);
                continue;
            }
            let Link::Method(call, _) = link else {
                continue;
            };
            let arguments = call.args.len();
            if self.follow(name, &[], |one| one.params.len() == arguments) {
                continue;
            }
            // `"authz".fetch()` is `fetch("authz")`; of a name that is also a method or may be that of a
            // function in a map nothing is known.
            if let Some(entry) = reference::find(None, name)
                && !reference::is_method(name)
                && !self.names.program.members.contains(name)
            {
                self.require(entry.need, name, at, findings);
            }
        }
    }

    fn assignment(
        &mut self,
        target: &'a Expr,
        _value: &'a Expr,
        scope: &Scope<'a>,
        findings: &mut Findings,
    ) {
        let Some(chain) = Chain::of(target) else {
            return;
        };
        if let [Link::Property(property, at)] = chain.links.as_slice()
            && let Some((variable, _)) = chain.variable()
            && let Some(of) = self.subject(variable, scope)
            && let Some(entry) = reference::find(Some(type_of(of)), property)
        {
            match entry.assigned {
                Some(need) => self.require(need, property, *at, findings),
                None => {
                    let message = format!("`{property}` can't be assigned to: it is only read");
                    findings.error(*at, property.chars().count(), message, None);
                }
            }
        }
    }

    /// A function that is handed on is called by someone, in this hook.
    fn variable(&mut self, used: Use<'a>, scope: &Scope<'a>, _: &mut Findings) {
        if matches!(self.names.meaning(used.name, scope), Meaning::Function) {
            self.follow(used.name, &[], |_| true);
        }
    }
}
