//! `a.b(c)[d]?.e` as a list.
//!
//! In the tree a chain nests to the right: `Dot(a, Index(b(c), Dot(d, e)))`,
//! where each node says what joins its two sides. The flag BREAK ends the
//! chain: the right side of such an index is the index itself, even when it is
//! a chain of its own, as in `a[b.c]`.

use rhai::{ASTFlags, Expr, FnCallExpr, Position};

/// One step behind the root of a chain.
#[derive(Clone, Copy)]
pub(super) enum Link<'a> {
    Property(&'a str, Position),
    Method(&'a FnCallExpr, Position),
    Index(&'a Expr),
}

/// A root and what follows it; never without a link.
pub(super) struct Chain<'a> {
    pub(super) root: &'a Expr,
    pub(super) links: Vec<Link<'a>>,
}

impl<'a> Chain<'a> {
    /// `None` when `expression` is no chain.
    pub(super) fn of(expression: &'a Expr) -> Option<Self> {
        let (Expr::Dot(pair, flags, _) | Expr::Index(pair, flags, _)) = expression else {
            return None;
        };
        let mut chain = Self {
            root: &pair.lhs,
            links: Vec::new(),
        };
        let (mut pair, mut flags) = (pair, flags);
        let mut dotted = matches!(expression, Expr::Dot(..));
        loop {
            match &pair.rhs {
                next @ (Expr::Dot(inner, inner_flags, _) | Expr::Index(inner, inner_flags, _))
                    if !flags.contains(ASTFlags::BREAK) =>
                {
                    chain.push(&inner.lhs, dotted);
                    (pair, flags) = (inner, inner_flags);
                    dotted = matches!(next, Expr::Dot(..));
                }
                last => {
                    chain.push(last, dotted);
                    return Some(chain);
                }
            }
        }
    }

    fn push(&mut self, step: &'a Expr, dotted: bool) {
        self.links.push(match step {
            Expr::Property(property, at) if dotted => Link::Property(&property.2, *at),
            Expr::MethodCall(call, at) if dotted => Link::Method(call, *at),
            index => Link::Index(index),
        });
    }

    /// The name of the variable that the chain begins with.
    pub(super) fn variable(&self) -> Option<(&'a str, Position)> {
        match self.root {
            Expr::Variable(variable, _, at) if variable.2.is_empty() => {
                Some((variable.1.as_str(), *at))
            }
            _ => None,
        }
    }
}
