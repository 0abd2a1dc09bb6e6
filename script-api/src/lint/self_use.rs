//! Closures that use the variable whose method they are handed to: `a.map(|x| a.len())`. Rhai keeps the
//! variable locked while its method runs, so the call always fails.

use rhai::{Expr, Stmt};

use super::chain::{Chain, Link};
use super::findings::Findings;
use super::program::capturing_closure;
use super::scope::Scope;
use super::walk::Check;

pub(super) struct SelfUse;

impl<'a> Check<'a> for SelfUse {
    fn chain(&mut self, chain: &Chain<'a>, scope: &Scope<'a>, findings: &mut Findings) {
        let Some((name, _)) = chain.variable() else {
            return;
        };
        // A constant that is seen from a function isn't captured.
        if scope.find(name).is_none() {
            return;
        }
        for link in &chain.links {
            if let Link::Method(call, at) = link
                && call.args.iter().any(|argument| captures(argument, name))
            {
                let message =
                    format!("a closure that uses `{name}` can't be given to a method of `{name}`");
                let help = format!(
                    "use it under another name, `let same = {name};`, or write a function of the program"
                );
                findings.error(*at, call.name.chars().count(), message, Some(help));
            }
        }
    }
}

fn captures(argument: &Expr, name: &str) -> bool {
    let Expr::Stmt(block) = argument else {
        return false;
    };
    let Some(Stmt::Share(captured)) = block.statements().first() else {
        return false;
    };
    capturing_closure(block).is_some() && captured.iter().any(|(ident, _)| ident.name == name)
}
