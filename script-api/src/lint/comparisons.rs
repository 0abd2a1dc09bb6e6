//! `"5" < 10`, which is false whatever stands in the text.

use rhai::{FnCallExpr, Position, Token};

use super::findings::Findings;
use super::kinds::{Kind, kind_of};
use super::program::Program;
use super::scope::Scope;
use super::walk::Check;

pub(super) struct Comparisons<'a> {
    pub(super) program: &'a Program<'a>,
}

impl<'a> Check<'a> for Comparisons<'a> {
    fn call(&mut self, call: &'a FnCallExpr, at: Position, _: &Scope<'a>, findings: &mut Findings) {
        use Token as T;
        let compares = matches!(
            call.op_token,
            Some(T::LessThan | T::LessThanEqualsTo | T::GreaterThan | T::GreaterThanEqualsTo)
        );
        let [left, right] = call.args.as_slice() else {
            return;
        };
        if !compares {
            return;
        }
        let kinds = (kind_of(self.program, left), kind_of(self.program, right));
        if let (Some(Kind::Text), Some(Kind::Number)) | (Some(Kind::Number), Some(Kind::Text)) =
            kinds
        {
            findings.error(
                at,
                call.name.chars().count(),
                format!("`{}` can't compare a text with a number", call.name),
                Some("`num(text)` makes a number of a text".to_string()),
            );
        }
    }
}
