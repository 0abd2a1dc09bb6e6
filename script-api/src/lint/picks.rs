//! What a script picks, as far as it shows in the tree.

use rhai::{Expr, FnCallExpr, Position};

use super::findings::Findings;
use super::scope::Scope;
use super::walk::Check;
use crate::engine::PICK_OPTIONS;
use crate::suggest::nearest;

/// Options that `pick` doesn't have, or that have no meaning together. Pools are checked with the results of `.to`.
pub(super) struct Picks;

impl<'a> Check<'a> for Picks {
    fn call(
        &mut self,
        call: &'a FnCallExpr,
        _at: Position,
        _scope: &Scope<'a>,
        findings: &mut Findings,
    ) {
        let ("pick", [_, Expr::Map(map, _)]) = (call.name.as_str(), call.args.as_slice()) else {
            return;
        };
        for (key, _) in &map.0 {
            let name = key.name.as_str();
            if !PICK_OPTIONS.contains(&name) {
                let help = match nearest(name, PICK_OPTIONS) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("it has {}", PICK_OPTIONS.join(", ")),
                };
                let message = format!("`pick` has no option `{name}`");
                findings.error(key.pos, name.chars().count(), message, Some(help));
            }
        }
        let has = |name: &str| map.0.iter().any(|(key, _)| key.name == name);
        let only = map.0.iter().find(|(key, _)| key.name == "only");
        if let Some((key, _)) = only
            && !has("target")
        {
            let help = "name one: #{ target: \"10.0.0.1:80\", only: true }".to_owned();
            findings.error(
                key.pos,
                "only".len(),
                "`only` of `pick` needs a `target`",
                Some(help),
            );
        }
    }
}
