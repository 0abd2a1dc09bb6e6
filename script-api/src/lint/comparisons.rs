//! `"5" < 10`, which is false whatever stands in the text, and `sha256(x) == "2c26.."`, which is false
//! unless both are absent.

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

/// Types that have nothing to do with each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mix {
    TextAndNumber,
    TextAndBytes,
}

impl Comparisons<'_> {
    fn mix(&self, call: &FnCallExpr, is_request: &dyn Fn(&str) -> bool) -> Option<Mix> {
        let [left, right] = call.args.as_slice() else {
            return None;
        };
        let types = Types {
            program: self.program,
            is_request,
        };
        let (left, right) = (types.kind_of(left)?, types.kind_of(right)?);
        let mixes = |one: fn(Kind) -> bool, other: fn(Kind) -> bool| {
            (one(left) && other(right)) || (other(left) && one(right))
        };
        if mixes(is_text, is_number) {
            Some(Mix::TextAndNumber)
        } else {
            mixes(is_text, is_bytes).then_some(Mix::TextAndBytes)
        }
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
        let refused = match call.op_token {
            Some(T::LessThan | T::LessThanEqualsTo | T::GreaterThan | T::GreaterThanEqualsTo) => {
                Mix::TextAndNumber
            }
            Some(T::EqualsTo | T::NotEqualsTo) => Mix::TextAndBytes,
            _ => return,
        };
        let refused = Some(refused);
        let shows = self.mix(call, &|_| false) == refused;
        let wrong = match self.parameters {
            None => shows,
            Some(parameters) => {
                let request = Some(Subject::Request);
                let is_request = |name: &str| parameters.subject(name, scope) == request;
                !shows && self.mix(call, &is_request) == refused
            }
        };
        if !wrong {
            return;
        }
        let (message, help) = if refused == Some(Mix::TextAndNumber) {
            ("text is compared with a number", "use `num(..)`")
        } else {
            (
                "bytes are compared with text, and are never equal",
                "use `constant_time_eq(hex(..), ..)`",
            )
        };
        let length = call.name.chars().count();
        findings.error(at, length, message, Some(help.to_string()));
    }
}

fn is_text(kind: Kind) -> bool {
    matches!(kind, Kind::Text | Kind::TextOrUnit)
}

fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Number | Kind::NumberOrUnit)
}

fn is_bytes(kind: Kind) -> bool {
    matches!(kind, Kind::Blob | Kind::BlobOrUnit)
}
