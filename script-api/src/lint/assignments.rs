//! Assignments that can't work: to constants, to parts of constants (which
//! stop Rhai's interpreter with a panic), to the variables that a closure
//! captured (which would be hidden state of one worker), and of a closure to a
//! variable that it uses (which would never be freed).

use rhai::{Expr, Position, Stmt};

use super::chain::Chain;
use super::findings::Findings;
use super::names::{Meaning, Names, is_captured, is_constant};
use super::scope::Scope;
use super::walk::Check;

pub(super) struct Assignments<'a> {
    pub(super) names: Names<'a>,
}

/// What is assigned to.
struct Target<'a> {
    name: &'a str,
    at: Position,
    /// `M.a = 1` and not `M = 1`.
    part: bool,
}

fn target<'a>(expression: &'a Expr) -> Option<Target<'a>> {
    if let Some(chain) = Chain::of(expression) {
        let (name, at) = chain.variable()?;
        return Some(Target {
            name,
            at,
            part: true,
        });
    }
    match expression {
        Expr::Variable(variable, _, at) if variable.2.is_empty() => Some(Target {
            name: &variable.1,
            at: *at,
            part: false,
        }),
        _ => None,
    }
}

impl<'a> Check<'a> for Assignments<'a> {
    fn assignment(
        &mut self,
        target_expression: &'a Expr,
        value: &'a Expr,
        scope: &Scope<'a>,
        findings: &mut Findings,
    ) {
        let Some(Target { name, at, part }) = target(target_expression) else {
            return;
        };
        let (message, help) = match self.names.meaning(name, scope) {
            Meaning::Local(local) if is_constant(local) => constant(name, part),
            Meaning::Constant => constant(name, part),
            Meaning::Local(local) if is_captured(local, scope) => captured(name),
            Meaning::Local(_) if keeps(value, name) => kept(name),
            Meaning::Function => (
                format!("`{name}` is a function and can't be assigned to"),
                "choose another name for the variable".to_string(),
            ),
            _ => return,
        };
        findings.error(at, name.chars().count(), message, Some(help));
    }
}

/// Whether `value` is a closure that captures the variable `name`, or a list or map with one.
fn keeps(value: &Expr, name: &str) -> bool {
    match value {
        Expr::Stmt(block) => match block.statements() {
            [Stmt::Share(captured), ..] => captured.iter().any(|(one, _)| one.name == name),
            _ => false,
        },
        Expr::Array(items, _) => items.iter().any(|item| keeps(item, name)),
        Expr::Map(entries, _) => entries.0.iter().any(|(_, value)| keeps(value, name)),
        _ => false,
    }
}

fn kept(name: &str) -> (String, String) {
    (
        format!("a closure that uses `{name}` can't be kept in `{name}`: it would never be freed"),
        "make it a function of the program, `fn name(..)`, or give it what it needs as an argument"
            .to_string(),
    )
}

fn constant(name: &str, part: bool) -> (String, String) {
    if part {
        (
            format!("`{name}` is a constant: its parts can't be assigned to"),
            format!("change a copy: `let copy = {name};`"),
        )
    } else {
        (
            format!("`{name}` is a constant and can't be assigned to"),
            "choose another name for the variable".to_string(),
        )
    }
}

fn captured(name: &str) -> (String, String) {
    (
        format!("a closure can't change `{name}`, which is declared outside of it"),
        "a closure keeps the values that variables have when it is made; let it give its result \
         back, or keep state in `counter`, `cache` or `req.set`"
            .to_string(),
    )
}
