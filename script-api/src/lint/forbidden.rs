//! `import` where requests run, and `eval` anywhere.

use rhai::{FnCallExpr, Position};

use super::findings::Findings;
use super::scope::Scope;
use super::walk::Check;

pub(super) struct Forbidden;

impl<'a> Check<'a> for Forbidden {
    fn import(&mut self, at: Position, scope: &Scope<'a>, findings: &mut Findings) {
        if !scope.is_plain_top_level() {
            findings.error(
                at,
                "import".len(),
                "`import` can't stand in a function: files are read only while loading",
                Some("move it to the top level".to_string()),
            );
        }
    }

    fn call(&mut self, call: &'a FnCallExpr, at: Position, _: &Scope<'a>, findings: &mut Findings) {
        if call.name == "eval" {
            findings.error(
                at,
                "eval".len(),
                "`eval` isn't available: a program must be checkable before it runs",
                None,
            );
        }
    }
}
