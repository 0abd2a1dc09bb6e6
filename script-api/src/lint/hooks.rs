//! What the places are called where a route takes a function.

use super::program::{Function, Program};
use super::scope::Scope;
use crate::program::HookKind;

/// What a parameter of a hook is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    Request,
    Response,
    Attempt,
}

impl HookKind {
    /// As it is written in the program.
    pub(super) fn described(self) -> &'static str {
        match self {
            HookKind::OnRequest => "an `on_request` hook",
            HookKind::To => "the function of `.to`",
            HookKind::When => "the function of `.when`",
            HookKind::Respond => "the function of `.respond`",
            HookKind::OnRequestBody => "an `on_request_body` hook",
            HookKind::OnResponse => "an `on_response` hook",
            HookKind::OnResponseBody => "an `on_response_body` hook",
            HookKind::OnLog => "an `on_log` hook",
            HookKind::Every => "the function of `every`",
        }
    }

    /// Its parameters behind the captured ones.
    fn subjects(self) -> &'static [Subject] {
        match self {
            HookKind::OnResponse | HookKind::OnResponseBody | HookKind::OnLog => {
                &[Subject::Request, Subject::Response]
            }
            HookKind::Every => &[],
            HookKind::OnRequest
            | HookKind::OnRequestBody
            | HookKind::To
            | HookKind::When
            | HookKind::Respond => &[Subject::Request],
        }
    }
}

/// The functions called `name` that the hook can mean: those with a fitting
/// number of parameters (the same name can have several), or all when none fits.
pub(super) fn candidates<'p>(
    program: &'p Program<'_>,
    name: &str,
    kind: HookKind,
) -> impl Iterator<Item = &'p Function> {
    let all = program.functions(name);
    let fits = move |function: &&Function| subjects(function, kind).is_some();
    let some = all.iter().any(|function| fits(&function));
    all.iter().filter(move |function| !some || fits(function))
}

/// What the parameters behind the captured ones are, or `None` when their
/// number doesn't fit: nothing is known of them then.
fn subjects(function: &Function, kind: HookKind) -> Option<&'static [Subject]> {
    let own = function.params.len().checked_sub(function.captured)?;
    let subjects = match (kind, own) {
        (HookKind::To, 2) => &[Subject::Request, Subject::Attempt],
        _ => kind.subjects(),
    };
    (subjects.len() == own).then_some(subjects)
}

/// What each parameter of a function is when it is a hook, as far as that is known.
pub(super) fn of_parameters(function: &Function, kind: HookKind) -> Vec<Option<Subject>> {
    let own = subjects(function, kind).unwrap_or(&[]);
    let captured = std::iter::repeat_n(None, function.captured);
    captured.chain(own.iter().copied().map(Some)).collect()
}

/// The parameters of a function as a hook.
#[derive(Clone, Copy)]
pub(super) struct Parameters {
    /// Index of the first one that the host gives.
    first: usize,
    subjects: &'static [Subject],
}

impl Parameters {
    pub(super) fn of(function: &Function, kind: HookKind) -> Self {
        Self {
            first: function.captured,
            subjects: subjects(function, kind).unwrap_or(&[]),
        }
    }

    /// What the host gives in the variable called `name`, if it is a parameter.
    pub(super) fn subject(&self, name: &str, scope: &Scope<'_>) -> Option<Subject> {
        // Parameters are declared first, in their order, so a local's index tells which it is.
        let (index, _) = scope.find(name)?;
        self.subjects.get(index.checked_sub(self.first)?).copied()
    }
}
