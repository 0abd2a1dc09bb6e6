//! Statements that do nothing but name a value: a gate left open, or a pool not
//! chosen, by a forgotten `return`.

use std::ptr;

use rhai::{Expr, Position, Stmt};

use super::chain::{Chain, Link};
use super::findings::Findings;
use super::names::{Meaning, Names};
use super::scope::Scope;
use super::walk::Check;

pub(super) struct NoEffect<'a> {
    pub(super) names: Names<'a>,
}

/// A value as the program writes it.
struct Written {
    text: String,
    at: Position,
    /// In characters.
    length: usize,
}

impl<'a> NoEffect<'a> {
    /// What the value is written as when nothing happens in it: a variable, a
    /// chain without a call, or a text or bool. Other literals are no results
    /// that a function could have been meant to give, and `()` says "nothing".
    fn written(&self, value: &Expr, scope: &Scope<'a>) -> Option<Written> {
        match value {
            Expr::StringConstant(text, at) => Some(Written {
                text: format!("{text:?}"),
                at: *at,
                length: text.chars().count() + "\"\"".len(),
            }),
            Expr::BoolConstant(value, at) => Some(Written::name(value.to_string(), *at)),
            Expr::Dot(..) | Expr::Index(..) => {
                let chain = Chain::of(value)?;
                if self.is_undefined(chain.root, scope) {
                    return None;
                }
                written_chain(&chain)
            }
            name if self.is_undefined(name, scope) => None,
            name => {
                let mut written = written_name(name)?;
                if let Meaning::Function = self.names.meaning(&written.text, scope) {
                    written.text.push_str("(..)");
                }
                Some(written)
            }
        }
    }

    /// A variable that doesn't exist is another check's business.
    fn is_undefined(&self, value: &Expr, scope: &Scope<'a>) -> bool {
        match value {
            Expr::Variable(variable, ..) if variable.2.is_empty() => {
                matches!(self.names.meaning(&variable.1, scope), Meaning::Nothing)
            }
            _ => false,
        }
    }

    /// The last statement gives the value of the whole program, which may be anything.
    fn is_last_of_program(&self, value: &Expr) -> bool {
        match self.names.program.statements.last() {
            Some(Stmt::Expr(last)) => ptr::eq(last.as_ref(), value),
            _ => false,
        }
    }
}

impl Written {
    fn name(text: String, at: Position) -> Self {
        let length = text.chars().count();
        Self { text, at, length }
    }

    /// Underlines up to the end of `name`, if it stands in the same line.
    fn reach(&mut self, at: Position, name: &str) {
        if let (Some(first), Some(last)) = (self.at.position(), at.position())
            && self.at.line() == at.line()
            && last > first
        {
            self.length = last - first + name.chars().count();
        }
    }
}

fn written_name(value: &Expr) -> Option<Written> {
    match value {
        Expr::Variable(variable, _, at) => {
            let (modules, name) = (&variable.2.path, &variable.1);
            let first = modules.first().map_or(*at, |module| module.pos);
            let mut text = String::new();
            for module in modules {
                text.push_str(&module.name);
                text.push_str("::");
            }
            text.push_str(name);
            Some(Written::name(text, first))
        }
        Expr::ThisPtr(at) => Some(Written::name("this".to_string(), *at)),
        _ => None,
    }
}

fn written_chain(chain: &Chain<'_>) -> Option<Written> {
    let mut written = written_name(chain.root)?;
    for link in &chain.links {
        match link {
            Link::Property(name, at) => {
                written.text.push('.');
                written.text.push_str(name);
                written.reach(*at, name);
            }
            Link::Index(index) => {
                written.text.push('[');
                written.text.push_str(&written_index(index)?);
                written.text.push(']');
            }
            Link::Method(..) => return None,
        }
    }
    Some(written)
}

/// An index, or `None` when it calls something.
fn written_index(index: &Expr) -> Option<String> {
    match index {
        Expr::StringConstant(text, _) => Some(format!("{text:?}")),
        Expr::IntegerConstant(number, _) => Some(number.to_string()),
        Expr::Dot(..) | Expr::Index(..) => Some(written_chain(&Chain::of(index)?)?.text),
        _ => Some(written_name(index)?.text),
    }
}

impl<'a> Check<'a> for NoEffect<'a> {
    fn discarded(&mut self, value: &'a Expr, scope: &Scope<'a>, findings: &mut Findings) {
        if self.is_last_of_program(value) {
            return;
        }
        let Some(Written { text, at, length }) = self.written(value, scope) else {
            return;
        };
        let help = (!scope.is_plain_top_level()).then(|| format!("write `return {text}`"));
        findings.error(at, length, "this value is thrown away", help);
    }
}
