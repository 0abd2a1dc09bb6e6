//! Changes of the request where it can't be changed: after it was sent, and
//! while a route is looked for.

use rhai::{Expr, Position};

use super::chain::{Chain, Link};
use super::findings::Findings;
use super::hooks::{Parameters, Subject};
use super::scope::Scope;
use super::walk::Check;
use crate::program::HookKind;

/// The methods that change a request.
const METHODS: [&str; 9] = [
    "set_header",
    "add_header",
    "remove_header",
    "set_query",
    "add_query",
    "remove_query",
    "sort_query",
    "set_cookie",
    "remove_cookie",
];

/// Keeps a value for later hooks, which changes nothing that is sent.
const KEEPS: &str = "set";

/// The properties that can be assigned to.
const PROPERTIES: [&str; 2] = ["path", "query_string"];

pub(super) struct RequestChanges {
    pub(super) parameters: Parameters,
    pub(super) kind: HookKind,
}

impl RequestChanges {
    /// Why a hook of this kind can't change the request, and what to do; `None` when it can.
    fn reason(&self) -> Option<(&'static str, &'static str)> {
        match self.kind {
            HookKind::OnResponse | HookKind::OnResponseBody => Some((
                "the request was sent already: it can't be changed once the response is there",
                "change it in `on_request`, or change `res`",
            )),
            HookKind::OnLog => Some((
                "everything is over in `on_log`: it only looks at the request",
                "change it in `on_request`",
            )),
            HookKind::When => Some((
                "a `.when` only looks at the request",
                "change it in `on_request`",
            )),
            HookKind::OnRequest | HookKind::OnRequestBody | HookKind::To | HookKind::Respond => {
                None
            }
            // It has none.
            HookKind::Every => None,
        }
    }

    fn changes(&self, method: &str) -> bool {
        METHODS.contains(&method) || (self.kind == HookKind::When && method == KEEPS)
    }

    fn is_request(&self, chain: &Chain<'_>, scope: &Scope<'_>) -> bool {
        chain
            .variable()
            .and_then(|(name, _)| self.parameters.subject(name, scope))
            == Some(Subject::Request)
    }

    fn report(&self, at: Position, name: &str, findings: &mut Findings) {
        if let Some((message, help)) = self.reason() {
            let length = name.chars().count();
            findings.error(at, length, message, Some(help.to_string()));
        }
    }
}

impl<'a> Check<'a> for RequestChanges {
    fn chain(&mut self, chain: &Chain<'a>, scope: &Scope<'a>, findings: &mut Findings) {
        if let Some(Link::Method(call, at)) = chain.links.first()
            && self.changes(&call.name)
            && self.is_request(chain, scope)
        {
            self.report(*at, &call.name, findings);
        }
    }

    fn assignment(
        &mut self,
        target: &'a Expr,
        _value: &'a Expr,
        scope: &Scope<'a>,
        findings: &mut Findings,
    ) {
        if let Some(chain) = Chain::of(target)
            && let [Link::Property(property, at)] = chain.links.as_slice()
            && PROPERTIES.contains(property)
            && self.is_request(&chain, scope)
        {
            self.report(*at, property, findings);
        }
    }
}
