//! Hooks that are a few questions to the request.
//!
//! Many hooks only compare a header or the path with something written out, and then name a pool, say
//! yes or no, or do nothing at all for this request. That is answered before anything is set up to run
//! a hook: no budget, no variables, no values. Such questions can't fail and change nothing, and where
//! their answer leads to anything else, the hook runs as ever, from its beginning.

use std::borrow::Cow;

use http::HeaderName;
use rhai::{ASTFlags, Dynamic, Expr, FnCallExpr, ImmutableString, Stmt};

use crate::{
    engine::request_text::RequestText,
    request::{Request, header_text},
};

/// Questions that are asked so. Whoever has more of them is better served by the budget.
const MOST_QUESTIONS: usize = 64;

/// Operations that no hook of so many questions comes near: who may do so many can't notice that
/// questions aren't counted.
pub(in crate::engine) const ENOUGH: u64 = 64 * MOST_QUESTIONS as u64;

/// Questions, and what follows from the answers.
pub(in crate::engine) enum Quick {
    /// The hook gives this.
    Gives(Dynamic),
    /// The hook must run.
    Runs,
    /// Depends.
    If(Question, Box<Quick>, Box<Quick>),
}

/// A question to the request.
pub(in crate::engine) enum Question {
    /// Two texts are the same, or both are absent.
    Same(Asked, Asked),
    /// A text begins with this.
    Begins(Asked, ImmutableString),
    /// A text ends with this.
    Ends(Asked, ImmutableString),
    /// A text is kept in a variable, which is fine.
    Kept(Asked),
    Not(Box<Question>),
    All(Vec<Question>),
    Any(Vec<Question>),
}

/// What is asked for.
#[derive(Clone)]
pub(in crate::engine) enum Asked {
    Header(HeaderName),
    Text(RequestText),
    Written(ImmutableString),
    Absent,
}

/// A text of the request, if it is there.
type Found<'a> = Option<Cow<'a, str>>;

impl Quick {
    /// What the hook gives for this request; `None`: it has to run. No text may be longer than `longest`,
    /// since that is a failure.
    pub(in crate::engine) fn gives(
        &self,
        request: &dyn Request,
        longest: usize,
    ) -> Option<&Dynamic> {
        match self {
            Self::Gives(value) => Some(value),
            Self::Runs => None,
            Self::If(question, yes, no) => {
                let answer = question.holds(request, longest)?;
                let next = if answer { yes } else { no };
                next.gives(request, longest)
            }
        }
    }

    fn questions(&self) -> usize {
        match self {
            Self::Gives(_) | Self::Runs => 0,
            Self::If(question, yes, no) => question.questions() + yes.questions() + no.questions(),
        }
    }

    fn is_worth_it(&self) -> bool {
        match self {
            Self::Gives(_) => true,
            Self::Runs => false,
            Self::If(_, yes, no) => yes.is_worth_it() || no.is_worth_it(),
        }
    }
}

impl Question {
    fn questions(&self) -> usize {
        match self {
            Self::Same(..) | Self::Begins(..) | Self::Ends(..) | Self::Kept(_) => 1,
            Self::Not(question) => 1 + question.questions(),
            Self::All(questions) | Self::Any(questions) => {
                1 + questions.iter().map(Self::questions).sum::<usize>()
            }
        }
    }

    fn holds(&self, request: &dyn Request, longest: usize) -> Option<bool> {
        Some(match self {
            Self::Same(one, other) => {
                let (one, other) = (one.find(request, longest)?, other.find(request, longest)?);
                one == other
            }
            Self::Begins(asked, with) => {
                let text = asked.find(request, longest)?;
                text.is_some_and(|text| text.starts_with(with.as_str()))
            }
            Self::Ends(asked, with) => {
                let text = asked.find(request, longest)?;
                text.is_some_and(|text| text.ends_with(with.as_str()))
            }
            Self::Kept(asked) => {
                asked.find(request, longest)?;
                true
            }
            Self::Not(question) => !question.holds(request, longest)?,
            Self::All(questions) => {
                for question in questions {
                    if !question.holds(request, longest)? {
                        return Some(false);
                    }
                }
                true
            }
            Self::Any(questions) => {
                for question in questions {
                    if question.holds(request, longest)? {
                        return Some(true);
                    }
                }
                false
            }
        })
    }
}

impl Asked {
    /// The outer `None`: that is too long.
    fn find<'a>(&'a self, request: &'a dyn Request, longest: usize) -> Option<Found<'a>> {
        let found = match self {
            Self::Absent => None,
            Self::Written(text) => Some(Cow::Borrowed(text.as_str())),
            Self::Header(name) => request.field(name).map(header_text),
            Self::Text(text) => Some(Cow::Borrowed(text.of(request))),
        };
        let fits = found.as_ref().is_none_or(|text| text.len() <= longest);
        fits.then_some(found)
    }
}

/// Finds the questions that a hook begins with.
pub(super) struct Finder<'f> {
    /// The name of the parameter that is the request.
    pub(super) request: &'f ImmutableString,
    /// Whether the program has a function of this name, which would be called instead.
    pub(super) is_own: &'f dyn Fn(&str) -> bool,
    /// The variables that were declared on the way here.
    pub(super) kept: Option<&'f Kept<'f>>,
}

/// A variable with an answer of the request, and those that were declared before it.
pub(super) struct Kept<'f> {
    name: &'f str,
    asked: Asked,
    before: Option<&'f Kept<'f>>,
}

impl Kept<'_> {
    fn find(&self, name: &str) -> Option<&Asked> {
        if self.name == name {
            return Some(&self.asked);
        }
        self.before?.find(name)
    }
}

impl Finder<'_> {
    /// The questions of a body; `None` when they lead nowhere.
    pub(super) fn body(&self, statements: &[Stmt]) -> Option<Quick> {
        let quick = self.statements(statements);
        (quick.is_worth_it() && quick.questions() <= MOST_QUESTIONS).then_some(quick)
    }

    fn statements(&self, statements: &[Stmt]) -> Quick {
        let Some((first, rest)) = statements.split_first() else {
            return Quick::Gives(Dynamic::UNIT);
        };
        match first {
            Stmt::Noop(_) => self.statements(rest),
            Stmt::Return(value, flags, _) if flags.is_empty() => match value {
                None => Quick::Gives(Dynamic::UNIT),
                Some(value) => self.value(value),
            },
            Stmt::If(details, _) => {
                let Some(question) = self.question(&details.expr) else {
                    return Quick::Runs;
                };
                let branch = |statements: &[Stmt]| {
                    // A branch that doesn't return goes on behind the `if`.
                    if rest.is_empty() || ends_with_return(statements) {
                        self.statements(statements)
                    } else if statements.is_empty() {
                        self.statements(rest)
                    } else {
                        Quick::Runs
                    }
                };
                let yes = branch(details.body.statements());
                let no = branch(details.branch.statements());
                Quick::If(question, Box::new(yes), Box::new(no))
            }
            Stmt::Expr(value) if rest.is_empty() => self.value(value),
            Stmt::Var(details, flags, _) if !flags.contains(ASTFlags::EXPORTED) => {
                let (name, value, shadowed) = &**details;
                match self.asked(value) {
                    Some(asked) if shadowed.is_none() => self.kept(&name.name, asked, rest),
                    _ => Quick::Runs,
                }
            }
            _ => Quick::Runs,
        }
    }

    /// What follows when an answer is kept in a variable.
    fn kept(&self, name: &str, asked: Asked, rest: &[Stmt]) -> Quick {
        let question = Question::Kept(asked.clone());
        let kept = Kept {
            name,
            asked,
            before: self.kept,
        };
        let inner = Finder {
            request: self.request,
            is_own: self.is_own,
            kept: Some(&kept),
        };
        let then = inner.statements(rest);
        Quick::If(question, Box::new(then), Box::new(Quick::Runs))
    }

    fn value(&self, expression: &Expr) -> Quick {
        match expression {
            Expr::StringConstant(..) | Expr::BoolConstant(..) | Expr::Unit(..) => {
                let value = expression.get_literal_value(None);
                value.map_or(Quick::Runs, Quick::Gives)
            }
            Expr::Stmt(block) => self.statements(block.statements()),
            _ => match self.question(expression) {
                Some(question) => Quick::If(
                    question,
                    Box::new(Quick::Gives(Dynamic::TRUE)),
                    Box::new(Quick::Gives(Dynamic::FALSE)),
                ),
                None => Quick::Runs,
            },
        }
    }

    fn question(&self, expression: &Expr) -> Option<Question> {
        match expression {
            Expr::And(parts, _) => self.questions(parts).map(Question::All),
            Expr::Or(parts, _) => self.questions(parts).map(Question::Any),
            Expr::FnCall(call, _) => self.operator(call),
            Expr::Dot(sides, flags, _) if flags.is_empty() => {
                if let Some(asked) = self.variable(&sides.lhs) {
                    return self.test(asked, &sides.rhs);
                }
                // `req.path.starts_with(..)` nests to the right, `req.header(..).starts_with(..)` too.
                let Expr::Dot(inner, inner_flags, _) = &sides.rhs else {
                    return None;
                };
                if !inner_flags.is_empty() {
                    return None;
                }
                let asked = self.asked_of(&sides.lhs, &inner.lhs)?;
                self.test(asked, &inner.rhs)
            }
            _ => None,
        }
    }

    fn questions(&self, parts: &[Expr]) -> Option<Vec<Question>> {
        parts.iter().map(|part| self.question(part)).collect()
    }

    fn operator(&self, call: &FnCallExpr) -> Option<Question> {
        call.op_token.as_ref()?;
        match (call.name.as_str(), &call.args[..]) {
            ("!", [operand]) => {
                let question = self.question(operand)?;
                Some(Question::Not(Box::new(question)))
            }
            (name @ ("==" | "!="), [one, other]) => {
                let same = Question::Same(self.asked(one)?, self.asked(other)?);
                Some(if name == "==" {
                    same
                } else {
                    Question::Not(Box::new(same))
                })
            }
            _ => None,
        }
    }

    fn asked(&self, expression: &Expr) -> Option<Asked> {
        match expression {
            Expr::StringConstant(text, _) => Some(Asked::Written(text.clone())),
            Expr::Unit(_) => Some(Asked::Absent),
            Expr::Variable(..) => self.variable(expression),
            Expr::Dot(sides, flags, _) if flags.is_empty() => self.asked_of(&sides.lhs, &sides.rhs),
            _ => None,
        }
    }

    /// A variable that was declared on the way here.
    fn variable(&self, expression: &Expr) -> Option<Asked> {
        let Expr::Variable(details, ..) = expression else {
            return None;
        };
        if !details.2.is_empty() {
            return None;
        }
        self.kept?.find(&details.1).cloned()
    }

    /// A property or a header of the request.
    fn asked_of(&self, of: &Expr, what: &Expr) -> Option<Asked> {
        let Expr::Variable(details, ..) = of else {
            return None;
        };
        // The parameter itself, unless what was declared since hides it.
        let is_hidden = self
            .kept
            .is_some_and(|kept| kept.find(&details.1).is_some());
        if details.1 != *self.request || is_hidden || !details.2.is_empty() {
            return None;
        }
        match what {
            Expr::Property(names, _) => RequestText::named(&names.2).map(Asked::Text),
            Expr::MethodCall(call, _) if call.name == "header" && !(self.is_own)("header") => {
                match &call.args[..] {
                    // A name that is none finds nothing, which the native knows best.
                    [Expr::StringConstant(name, _)] => {
                        let name = HeaderName::from_bytes(name.as_bytes());
                        name.ok().map(Asked::Header)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn test(&self, asked: Asked, test: &Expr) -> Option<Question> {
        let Expr::MethodCall(call, _) = test else {
            return None;
        };
        let [Expr::StringConstant(text, _)] = &call.args[..] else {
            return None;
        };
        if (self.is_own)(&call.name) {
            return None;
        }
        match call.name.as_str() {
            "starts_with" => Some(Question::Begins(asked, text.clone())),
            "ends_with" => Some(Question::Ends(asked, text.clone())),
            _ => None,
        }
    }
}

fn ends_with_return(statements: &[Stmt]) -> bool {
    match statements.last() {
        Some(Stmt::Return(..)) => true,
        Some(Stmt::If(details, _)) => {
            ends_with_return(details.body.statements())
                && ends_with_return(details.branch.statements())
        }
        _ => false,
    }
}
