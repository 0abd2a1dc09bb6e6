//! What the tree shows of a value's type, without running anything.

use rhai::{Expr, FnCallExpr, Token};

use super::chain::{Chain, Link};
use super::program::{Program, capturing_closure, closure};
use crate::engine::REQUEST_PROPERTIES;

/// The natives that make an answer.
pub(super) const ANSWERS: [&str; 2] = ["respond", "redirect"];

/// The methods of an answer that give it.
const ON_ANSWERS: [&str; 2] = ["header", "cookie"];

/// Natives of the host and of Rhai's packages that give the same type whatever they are called on,
/// as functions and as methods, with the number of their arguments (a receiver counts).
const NATIVES: &[(&str, usize, Kind)] = &[
    ("argon2_verify", 2, Kind::Bool),
    ("base64", 1, Kind::TextOrUnit),
    ("base64url", 1, Kind::TextOrUnit),
    ("bcrypt_verify", 2, Kind::Bool),
    ("bucket", 2, Kind::NumberOrUnit),
    ("constant_time_eq", 2, Kind::Bool),
    ("cookie", 2, Kind::TextOrUnit),
    ("crc32", 1, Kind::NumberOrUnit),
    ("env", 1, Kind::Text),
    ("env", 2, Kind::Text),
    ("fixed", 2, Kind::TextOrUnit),
    ("form_encode", 1, Kind::TextOrUnit),
    ("form_parse", 1, Kind::MapOrUnit),
    ("from_base64", 1, Kind::BlobOrUnit),
    ("from_base64url", 1, Kind::BlobOrUnit),
    ("from_hex", 1, Kind::BlobOrUnit),
    ("header", 2, Kind::TextOrUnit),
    ("hex", 1, Kind::TextOrUnit),
    ("hmac_sha1", 2, Kind::BlobOrUnit),
    ("hmac_sha256", 2, Kind::BlobOrUnit),
    ("hmac_sha384", 2, Kind::BlobOrUnit),
    ("hmac_sha512", 2, Kind::BlobOrUnit),
    ("html_escape", 1, Kind::TextOrUnit),
    ("http_date", 1, Kind::TextOrUnit),
    ("in_use", 1, Kind::Number),
    ("in_use", 2, Kind::Number),
    ("index_of", 2, Kind::Number),
    ("is_def_fn", 2, Kind::Bool),
    ("is_def_fn", 3, Kind::Bool),
    ("is_def_var", 1, Kind::Bool),
    ("is_ip", 1, Kind::Bool),
    ("is_shared", 1, Kind::Bool),
    ("iso_date", 1, Kind::TextOrUnit),
    ("json_encode", 1, Kind::Text),
    ("jwt_sign", 2, Kind::TextOrUnit),
    ("jwt_verify", 2, Kind::MapOrUnit),
    ("len", 1, Kind::Number),
    ("md5", 1, Kind::BlobOrUnit),
    ("now", 0, Kind::Number),
    ("now_ms", 0, Kind::Number),
    ("num", 1, Kind::NumberOrUnit),
    ("padded_start", 3, Kind::TextOrUnit),
    ("param", 2, Kind::TextOrUnit),
    ("parse_float", 1, Kind::Number),
    ("parse_http_date", 1, Kind::NumberOrUnit),
    ("parse_int", 1, Kind::Number),
    ("parse_int", 2, Kind::Number),
    ("parse_iso_date", 1, Kind::NumberOrUnit),
    ("password_verify", 2, Kind::Bool),
    ("query", 2, Kind::TextOrUnit),
    ("random_bytes", 1, Kind::Blob),
    ("random_int", 2, Kind::Number),
    ("remaining", 2, Kind::Number),
    ("repeat", 2, Kind::TextOrUnit),
    ("retry_after", 2, Kind::Number),
    ("sha1", 1, Kind::BlobOrUnit),
    ("sha256", 1, Kind::BlobOrUnit),
    ("sha384", 1, Kind::BlobOrUnit),
    ("sha512", 1, Kind::BlobOrUnit),
    ("sub_string", 2, Kind::TextOrUnit),
    ("sub_string", 3, Kind::TextOrUnit),
    ("to_float", 1, Kind::Number),
    ("to_int", 1, Kind::Number),
    ("to_lower", 1, Kind::TextOrUnit),
    ("to_string", 1, Kind::Text),
    ("to_upper", 1, Kind::TextOrUnit),
    ("trimmed", 1, Kind::TextOrUnit),
    ("trimmed", 2, Kind::TextOrUnit),
    ("trimmed_end", 2, Kind::TextOrUnit),
    ("trimmed_start", 2, Kind::TextOrUnit),
    ("type_of", 1, Kind::Text),
    ("url_decode", 1, Kind::TextOrUnit),
    ("url_encode", 1, Kind::TextOrUnit),
    ("uuid_v4", 0, Kind::Text),
    ("uuid_v7", 0, Kind::Text),
    ("without_prefix", 2, Kind::TextOrUnit),
    ("without_suffix", 2, Kind::TextOrUnit),
];

/// Methods that give true or false on every type that has them, with any number of arguments.
const BOOL_METHODS: [&str; 7] = [
    "acquire",
    "allow",
    "contains",
    "ends_with",
    "is_empty",
    "is_match",
    "starts_with",
];

/// The type of a value as far as it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Unit,
    Bool,
    Number,
    /// What may be absent is `()` then.
    NumberOrUnit,
    Text,
    TextOrUnit,
    Blob,
    BlobOrUnit,
    Array,
    Map,
    MapOrUnit,
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
            Kind::NumberOrUnit => "a number or `()`",
            Kind::Text => "a text",
            Kind::TextOrUnit => "a text or `()`",
            Kind::Blob => "bytes",
            Kind::BlobOrUnit => "bytes or `()`",
            Kind::Array => "an array",
            Kind::Map => "a map",
            Kind::MapOrUnit => "a map or `()`",
            Kind::Function => "a function",
            Kind::Response => "a response",
        }
    }
}

/// The type of `expression`, or `None` when it doesn't show.
pub(super) fn kind_of(program: &Program<'_>, expression: &Expr) -> Option<Kind> {
    let types = Types {
        program,
        is_request: &|_| false,
    };
    types.kind_of(expression)
}

/// Tells types where more is known than the tree shows.
pub(super) struct Types<'t, 'a> {
    pub(super) program: &'t Program<'a>,
    /// Whether the variable with this name is a request.
    pub(super) is_request: &'t dyn Fn(&str) -> bool,
}

impl Types<'_, '_> {
    /// The type of `expression`, or `None` when it isn't known.
    pub(super) fn kind_of(&self, expression: &Expr) -> Option<Kind> {
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
            Expr::FnCall(call, _) => self.of_call(call),
            Expr::Dot(..) | Expr::Index(..) => self.of_chain(&Chain::of(expression)?),
            _ => None,
        }
    }

    fn of_call(&self, call: &FnCallExpr) -> Option<Kind> {
        if call.is_qualified() {
            return None;
        }
        if let Some(operator) = &call.op_token {
            return self.of_operation(operator, &call.args);
        }
        if self.program.has_function(&call.name) {
            return None;
        }
        match call.name.as_str() {
            "contains" => Some(Kind::Bool),
            "Fn" => Some(Kind::Function),
            _ if makes_answer(self.program, call) => Some(Kind::Response),
            name => native(name, call.args.len()),
        }
    }

    fn of_operation(&self, operator: &Token, operands: &[Expr]) -> Option<Kind> {
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
                let kinds = operands.iter().map(|operand| self.kind_of(operand));
                let kinds = kinds.collect::<Option<Vec<_>>>()?;
                let all = |wanted: &[Kind]| kinds.iter().all(|kind| wanted.contains(kind));
                if all(&[Kind::Number]) {
                    Some(Kind::Number)
                } else if all(&[Kind::Text, Kind::TextOrUnit]) && kinds.contains(&Kind::Text) {
                    // `()` joined to a text adds nothing.
                    Some(Kind::Text)
                } else {
                    None
                }
            }
            _ => None,
        }
    }

    /// A chain of methods on an answer stays one; some methods give the same
    /// type on whatever they stand.
    fn of_chain(&self, chain: &Chain<'_>) -> Option<Kind> {
        if is_answer_chain(self.program, chain) {
            return Some(Kind::Response);
        }
        if let (Some((name, _)), [Link::Property(property, _)]) =
            (chain.variable(), chain.links.as_slice())
        {
            // All properties of a request are text, but for its captures.
            let text = REQUEST_PROPERTIES.contains(property)
                && *property != "params"
                && (self.is_request)(name);
            return text.then_some(Kind::Text);
        }
        let Link::Method(call, _) = chain.links.last()? else {
            return None;
        };
        let name = call.name.as_str();
        if self.program.has_function(name) || self.program.members.contains(name) {
            None
        } else if BOOL_METHODS.contains(&name) {
            Some(Kind::Bool)
        } else {
            native(name, call.args.len() + 1)
        }
    }
}

fn native(name: &str, arguments: usize) -> Option<Kind> {
    let mut fitting = NATIVES.iter().filter(|(native, ..)| *native == name);
    let found = fitting.find(|(_, takes, _)| *takes == arguments);
    found.map(|(.., kind)| *kind)
}

/// Whether `call` makes an answer: a function of the script by that name would
/// win over the native.
pub(super) fn makes_answer(program: &Program<'_>, call: &FnCallExpr) -> bool {
    !call.is_qualified()
        && ANSWERS.contains(&call.name.as_str())
        && !program.has_function(&call.name)
}

/// `respond(..).header(..)`: an answer on which only its own methods are called.
pub(super) fn is_answer_chain(program: &Program<'_>, chain: &Chain<'_>) -> bool {
    let made = matches!(chain.root, Expr::FnCall(call, _) if makes_answer(program, call));
    let mut links = chain.links.iter();
    made && links.all(
        |link| matches!(link, Link::Method(call, _) if ON_ANSWERS.contains(&call.name.as_str())),
    )
}
