//! Calls to other services: what can be seen of them in the tree.

use rhai::{Expr, FnCallExpr, Position};

use super::findings::Findings;
use super::pools;
use super::scope::Scope;
use super::walk::Check;
use crate::engine::FETCH_OPTIONS;
use crate::suggest::nearest;

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
