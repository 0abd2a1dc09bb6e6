//! `Fn("name")` with a name that no function has, and `map("name")`.

use rhai::{Expr, FnCallExpr, Position};

use super::chain::{Chain, Link};
use super::findings::Findings;
use super::names::{Names, did_you_mean};
use super::scope::Scope;
use super::walk::Check;
use crate::engine::by_name::TAKE_A_FUNCTION;

pub(super) struct FunctionNames<'a> {
    pub(super) names: Names<'a>,
}

impl<'a> Check<'a> for FunctionNames<'a> {
    fn call(&mut self, call: &'a FnCallExpr, _: Position, _: &Scope<'a>, findings: &mut Findings) {
        let ("Fn", [Expr::StringConstant(name, at)]) = (call.name.as_str(), call.args.as_slice())
        else {
            return;
        };
        let exists = self.names.program.has_function(name)
            || self.names.known.functions.arities(name).is_some();
        if !exists {
            findings.error(
                *at,
                name.chars().count() + 2,
                format!("there is no function `{name}`"),
                did_you_mean(self.names.near_function(name, *at)),
            );
        }
    }

    fn chain(&mut self, chain: &Chain<'a>, _: &Scope<'a>, findings: &mut Findings) {
        let program = self.names.program;
        for link in &chain.links {
            let Link::Method(call, _) = link else {
                continue;
            };
            let name = call.name.as_str();
            let is_other = program.has_function(name) || program.members.contains(name);
            if let (true, false, Some(Expr::StringConstant(text, at))) =
                (TAKE_A_FUNCTION.contains(&name), is_other, call.args.first())
            {
                findings.error(
                    *at,
                    text.chars().count() + "\"\"".len(),
                    format!("`{name}` takes a function, not a text"),
                    Some(format!("write the name without quotes: `.{name}({text})`")),
                );
            }
        }
    }
}
