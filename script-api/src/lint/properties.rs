//! Properties of the request and the response that don't exist. Only where the
//! receiver is the hook's own parameter: the type of anything else doesn't show.

use super::chain::{Chain, Link};
use super::findings::Findings;
use super::hooks::{Parameters, Subject};
use super::known::Known;
use super::names::did_you_mean;
use super::program::Program;
use super::scope::Scope;
use super::walk::Check;
use crate::engine::ATTEMPT_PROPERTIES;
use crate::suggest::nearest;

pub(super) struct Properties<'a> {
    pub(super) known: &'a Known<'a>,
    pub(super) program: &'a Program<'a>,
    pub(super) parameters: Parameters,
}

impl<'a> Properties<'a> {
    /// The properties that the variable called `name` has, and what it is.
    fn properties(&self, name: &str, scope: &Scope<'a>) -> Option<(&'a [&'a str], &'static str)> {
        match self.parameters.subject(name, scope)? {
            Subject::Request => Some((self.known.request_properties, "request")),
            Subject::Response => Some((self.known.response_properties, "response")),
            Subject::Attempt => Some((ATTEMPT_PROPERTIES, "attempt")),
        }
    }
}

impl<'a> Check<'a> for Properties<'a> {
    fn chain(&mut self, chain: &Chain<'a>, scope: &Scope<'a>, findings: &mut Findings) {
        let (Some((name, _)), Some(Link::Property(property, at))) =
            (chain.variable(), chain.links.first())
        else {
            return;
        };
        let Some((properties, subject)) = self.properties(name, scope) else {
            return;
        };
        if properties.contains(property) {
            return;
        }
        let natives = self.known.functions;
        let method = natives
            .arities(property)
            .is_some_and(|arities| arities.iter().any(|n| *n > 0));
        let help = if method {
            Some(format!(
                "`{property}` is a method: write `{name}.{property}(..)`"
            ))
        } else if self.program.has_function(property) {
            Some(format!(
                "`{property}` is a function: write `{property}({name})`"
            ))
        } else {
            let near = nearest(property, properties.iter().copied().chain(natives.names()));
            did_you_mean(near.map(String::from))
        };
        findings.error(
            *at,
            property.chars().count(),
            format!("a {subject} has no property `{property}`"),
            help,
        );
    }
}
