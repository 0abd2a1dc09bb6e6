//! What the tree shows of a value's type, without running anything.

use rhai::{Expr, FnCallExpr, Token};

use super::chain::{Chain, Link};
use super::program::{Program, capturing_closure, closure};

/// The natives that make an answer.
pub(super) const ANSWERS: [&str; 2] = ["respond", "redirect"];

/// Methods of the host and of Rhai's packages that give true or false on every
/// type that has them.
const BOOL_METHODS: [&str; 6] = [
    "allow",
    "contains",
    "ends_with",
    "is_empty",
    "is_match",
    "starts_with",
];

/// The free functions of that sort.
const BOOL_FUNCTIONS: [&str; 5] = [
    "constant_time_eq",
    "contains",
    "is_def_fn",
    "is_def_var",
    "is_shared",
];

/// The type of a value as far as it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Unit,
    Bool,
    Number,
    Text,
    Array,
    Map,
    Function,
    Response,
}

impl Kind {
    /// For messages.
    pub(super) fn described(self) -> &'static str {
        match self {
            Kind::Unit => "`()`",
            Kind::Bool => "a bool",
            Kind::Number => "a number",
            Kind::Text => "a text",
            Kind::Array => "an array",
            Kind::Map => "a map",
            Kind::Function => "a function",
            Kind::Response => "a response",
        }
    }
}

/// The type of `expression`, or `None` when it doesn't show.
pub(super) fn kind_of(program: &Program<'_>, expression: &Expr) -> Option<Kind> {
    match expression {
        Expr::Unit(_) => Some(Kind::Unit),
        Expr::BoolConstant(..) | Expr::And(..) | Expr::Or(..) => Some(Kind::Bool),
        Expr::IntegerConstant(..) | Expr::FloatConstant(..) => Some(Kind::Number),
        Expr::StringConstant(..) | Expr::InterpolatedString(..) | Expr::CharConstant(..) => {
            Some(Kind::Text)
        }
        Expr::Array(..) => Some(Kind::Array),
        Expr::Map(..) => Some(Kind::Map),
        Expr::DynamicConstant(..) => closure(expression).map(|_| Kind::Function),
        Expr::Stmt(block) => capturing_closure(block).map(|_| Kind::Function),
        Expr::FnCall(call, _) => kind_of_call(program, call),
        Expr::Dot(..) | Expr::Index(..) => kind_of_chain(program, &Chain::of(expression)?),
        _ => None,
    }
}

/// Whether `call` makes an answer: a function of the script by that name would
/// win over the native.
pub(super) fn makes_answer(program: &Program<'_>, call: &FnCallExpr) -> bool {
    !call.is_qualified()
        && ANSWERS.contains(&call.name.as_str())
        && !program.has_function(&call.name)
}

fn kind_of_call(program: &Program<'_>, call: &FnCallExpr) -> Option<Kind> {
    if call.is_qualified() {
        return None;
    }
    if let Some(operator) = &call.op_token {
        return kind_of_operation(program, operator, &call.args);
    }
    if program.has_function(&call.name) {
        return None;
    }
    match call.name.as_str() {
        name if BOOL_FUNCTIONS.contains(&name) => Some(Kind::Bool),
        "type_of" => Some(Kind::Text),
        "Fn" => Some(Kind::Function),
        _ if makes_answer(program, call) => Some(Kind::Response),
        _ => None,
    }
}

fn kind_of_operation(program: &Program<'_>, operator: &Token, operands: &[Expr]) -> Option<Kind> {
    use Token as T;
    match operator {
        T::EqualsTo
        | T::NotEqualsTo
        | T::LessThan
        | T::LessThanEqualsTo
        | T::GreaterThan
        | T::GreaterThanEqualsTo
        | T::Bang => Some(Kind::Bool),
        T::Plus | T::Minus | T::Multiply | T::Divide | T::Modulo | T::PowerOf => {
            let mut kinds = operands.iter().map(|operand| kind_of(program, operand));
            let first = kinds.next()??;
            let same = kinds.all(|kind| kind == Some(first));
            (same && matches!(first, Kind::Number | Kind::Text)).then_some(first)
        }
        _ => None,
    }
}

/// A chain of methods on an answer stays one; some methods give a bool on whatever they stand.
fn kind_of_chain(program: &Program<'_>, chain: &Chain<'_>) -> Option<Kind> {
    if is_answer_chain(program, chain) {
        return Some(Kind::Response);
    }
    match chain.links.last()? {
        Link::Method(call, _)
            if BOOL_METHODS.contains(&call.name.as_str())
                && !program.has_function(&call.name)
                && !program.members.contains(call.name.as_str()) =>
        {
            Some(Kind::Bool)
        }
        _ => None,
    }
}

/// `respond(..).header(..)`: an answer on which only `header` is called.
pub(super) fn is_answer_chain(program: &Program<'_>, chain: &Chain<'_>) -> bool {
    let made = matches!(chain.root, Expr::FnCall(call, _) if makes_answer(program, call));
    let mut links = chain.links.iter();
    made && links.all(|link| matches!(link, Link::Method(call, _) if call.name == "header"))
}
