//! `curry`, which copies what it binds each time the function is copied.

use rhai::{Expr, FnCallExpr, Position};

use super::chain::{Chain, Link};
use super::findings::Findings;
use super::program::{Program, closure};
use super::scope::Scope;
use super::walk::Check;

const NAME: &str = "curry";

pub(super) struct Currying<'a> {
    pub(super) program: &'a Program<'a>,
}

impl<'a> Check<'a> for Currying<'a> {
    fn call(&mut self, call: &'a FnCallExpr, at: Position, _: &Scope<'a>, findings: &mut Findings) {
        if call.name == NAME && !is_capture(call, at) {
            report(at, findings);
        }
    }

    fn chain(&mut self, chain: &Chain<'a>, _: &Scope<'a>, findings: &mut Findings) {
        if self.program.members.contains(NAME) {
            return;
        }
        for link in &chain.links {
            if let Link::Method(call, at) = link
                && call.name == NAME
            {
                report(*at, findings);
            }
        }
    }
}

/// Whether the parser made the call out of a closure that captures something:
/// it stands where the closure stands, which nobody can write.
fn is_capture(call: &FnCallExpr, at: Position) -> bool {
    call.args.first().is_some_and(|function: &Expr| {
        closure(function).is_some() && function.start_position() == at
    })
}

fn report(at: Position, findings: &mut Findings) {
    findings.error(
        at,
        NAME.len(),
        "`curry` isn't available",
        Some("a closure keeps the values it uses: |req| gate(req, x)".to_string()),
    );
}
