//! `Fn("name")` with a name that no function has.

use rhai::{Expr, FnCallExpr, Position};

use super::findings::Findings;
use super::names::{Names, did_you_mean};
use super::scope::Scope;
use super::walk::Check;

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
                did_you_mean(self.names.near_function(name)),
            );
        }
    }
}
