//! Answers that are made and not returned, and limits that are asked and not obeyed: a gate left open
//! by a forgotten `return` or `if`.

use rhai::{Expr, Position};

use super::chain::{Chain, Link};
use super::findings::Findings;
use super::kinds::{Kind, is_answer_chain, makes_answer};
use super::program::Program;
use super::results::results;
use super::scope::Scope;
use super::walk::Check;

pub(super) struct Discarded<'a> {
    pub(super) program: &'a Program<'a>,
}

/// What makes the answer.
struct Made<'a> {
    name: &'a str,
    at: Position,
    /// A function of the script, which may also let the request pass.
    gate: bool,
}

impl Discarded<'_> {
    fn made<'e>(&self, value: &'e Expr) -> Option<Made<'e>> {
        if let Some(chain) = Chain::of(value) {
            let Expr::FnCall(call, at) = chain.root else {
                return None;
            };
            return is_answer_chain(self.program, &chain).then_some(Made {
                name: &call.name,
                at: *at,
                gate: false,
            });
        }
        let Expr::FnCall(call, at) = value else {
            return None;
        };
        let gate = self.is_gate(&call.name, call.args.len()) && !call.is_qualified();
        (gate || makes_answer(self.program, call)).then_some(Made {
            name: &call.name,
            at: *at,
            gate,
        })
    }

    /// Where `LIMIT.allow(..)` or `SLOTS.acquire(..)` stands, the constant and the method, when `value`
    /// is that: constants with these methods are limits.
    fn limit<'e>(&self, value: &'e Expr) -> Option<(&'e str, &'e str, Position)> {
        let chain = Chain::of(value)?;
        let (name, _) = chain.variable()?;
        let Link::Method(call, at) = chain.links.last()? else {
            return None;
        };
        let method = call.name.as_str();
        let asks = match method {
            "allow" => call.args.len() == 1,
            "acquire" => call.args.len() <= 1,
            _ => false,
        };
        let is_limit =
            asks && self.program.constants.contains(name) && !self.program.has_function(method);
        is_limit.then_some((name, method, *at))
    }

    /// Whether the tree shows that a function of the script can give an answer.
    fn is_gate(&self, name: &str, arguments: usize) -> bool {
        let functions = self.program.functions(name).iter();
        let mut called = functions.filter(|function| function.params.len() == arguments);
        called.any(|function| {
            let results = results(self.program, function);
            results
                .iter()
                .any(|result| result.kind == Some(Kind::Response))
        })
    }
}

impl<'a> Check<'a> for Discarded<'a> {
    fn discarded(&mut self, value: &'a Expr, scope: &Scope<'a>, findings: &mut Findings) {
        if let Some((name, method, at)) = self.limit(value)
            && !scope.is_plain_top_level()
        {
            let (message, help) = if method == "allow" {
                (
                    "whether it is allowed is thrown away",
                    format!(
                        "`if !{name}.allow(key) {{ return respond(429); }}`; when it only counts, `let counted = {name}.allow(key);`"
                    ),
                )
            } else {
                (
                    "whether there was a slot is thrown away",
                    format!("`if !{name}.acquire(key) {{ return respond(503); }}`"),
                )
            };
            findings.error(at, method.len(), message, Some(help));
            return;
        }
        let Some(Made { name, at, gate }) = self.made(value) else {
            return;
        };
        let (message, help) = if scope.is_plain_top_level() {
            (
                "this answer goes nowhere".to_string(),
                "an answer belongs to a route: `route(\"/path\").respond(200, \"ok\")`".to_string(),
            )
        } else if gate {
            (
                format!("`{name}` can answer the request, and the answer is thrown away"),
                format!("let r = {name}(..); if r != () {{ return r; }}"),
            )
        } else {
            (
                "this answer is thrown away".to_string(),
                format!("write `return {name}(..)`"),
            )
        };
        findings.error(at, name.chars().count(), message, Some(help));
    }
}
