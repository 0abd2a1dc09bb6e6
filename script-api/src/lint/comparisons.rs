//! `"5" < 10`, which is false whatever stands in the text.

use rhai::{FnCallExpr, Position, Token};

use super::findings::Findings;
use super::hooks::{Parameters, Subject};
use super::kinds::{Kind, Types};
use super::program::Program;
use super::scope::Scope;
use super::walk::Check;

pub(super) struct Comparisons<'a> {
    pub(super) program: &'a Program<'a>,
    /// Of the hook that is walked: reported is what only shows because of them.
    pub(super) parameters: Option<Parameters>,
}

impl Comparisons<'_> {
    fn mixes(&self, call: &FnCallExpr, is_request: &dyn Fn(&str) -> bool) -> bool {
        let [left, right] = call.args.as_slice() else {
            return false;
        };
        let types = Types {
            program: self.program,
            is_request,
        };
        let (Some(left), Some(right)) = (types.kind_of(left), types.kind_of(right)) else {
            return false;
        };
        (is_text(left) && is_number(right)) || (is_number(left) && is_text(right))
    }
}

impl<'a> Check<'a> for Comparisons<'a> {
    fn call(
        &mut self,
        call: &'a FnCallExpr,
        at: Position,
        scope: &Scope<'a>,
        findings: &mut Findings,
    ) {
        use Token as T;
        let compares = matches!(
            call.op_token,
            Some(T::LessThan | T::LessThanEqualsTo | T::GreaterThan | T::GreaterThanEqualsTo)
        );
        if !compares {
            return;
        }
        let shows = self.mixes(call, &|_| false);
        let wrong = match self.parameters {
            None => shows,
            Some(parameters) => {
                let request = Some(Subject::Request);
                !shows && self.mixes(call, &|name| parameters.subject(name, scope) == request)
            }
        };
        if wrong {
            findings.error(
                at,
                call.name.chars().count(),
                "text is compared with a number",
                Some("use `num(..)`".to_string()),
            );
        }
    }
}

fn is_text(kind: Kind) -> bool {
    matches!(kind, Kind::Text | Kind::TextOrUnit)
}

fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Number | Kind::NumberOrUnit)
}
