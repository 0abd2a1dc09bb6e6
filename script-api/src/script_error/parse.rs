//! Syntax errors.

use rhai::{LexError, ParseErrorType, Position};

use super::plain;
use super::types::plain_type;
use crate::{diagnostic::Diagnostic, source::Source};

/// `error`, which Rhai found at `position` of `source`, in plain words.
pub(super) fn convert(error: &ParseErrorType, position: Position, source: &Source) -> Diagnostic {
    let (message, help) = describe(error);
    let length = match error {
        ParseErrorType::Reserved(word)
        | ParseErrorType::AssignmentToConstant(word)
        | ParseErrorType::VariableUndefined(word)
        | ParseErrorType::ForbiddenVariable(word)
        | ParseErrorType::BadInput(LexError::UnexpectedInput(word)) => word.chars().count(),
        _ => 1,
    };
    let mut finding = Diagnostic::error(message).at_position(source, position, length);
    finding.help = help;
    source.make_readable(&mut finding);
    finding
}

fn describe(error: &ParseErrorType) -> (String, Option<String>) {
    use ParseErrorType as E;
    match error {
        E::UnexpectedEOF => ("the file ends too early".into(), None),
        E::BadInput(input) => lexical(input),
        // Rhai notices at the next token, which is often on the next line.
        E::MissingToken(token, why) if token == ";" => (
            "missing `;` before this".into(),
            Some(format!("a `;` is needed {why}")),
        ),
        E::MissingToken(token, why) => (format!("expected `{token}` {why}"), None),
        E::Reserved(word) if matches!(word.as_str(), "null" | "nil" | "void") => (
            format!("there is no `{word}`"),
            Some("what is absent is `()`".into()),
        ),
        E::Reserved(word) if word.starts_with(char::is_alphabetic) => (
            format!("`{word}` is a reserved word"),
            Some("choose another name".into()),
        ),
        E::Reserved(symbol) => (format!("`{symbol}` is not an operator here"), None),
        E::UnknownOperator(symbol) => (format!("unknown operator `{symbol}`"), None),
        E::AssignmentToConstant(name) if !name.is_empty() => (
            format!("`{name}` is a constant and can't be assigned to"),
            Some("declare it with `let` if it is to change".into()),
        ),
        E::MismatchedType(wanted, got) => {
            (format!("expected {wanted}, not {}", plain_type(got)), None)
        }
        E::DuplicatedProperty(name) => (format!("`{name}` stands twice in this map"), None),
        E::DuplicatedVariable(name) => (format!("`{name}` stands twice here"), None),
        E::FnDuplicatedDefinition(name, parameters) => (
            format!(
                "function `{name}` with {parameters} parameter{} is defined twice",
                if *parameters == 1 { "" } else { "s" }
            ),
            None,
        ),
        E::FnDuplicatedParam(name, parameter) if name.is_empty() => {
            (format!("two parameters are called `{parameter}`"), None)
        }
        E::FnDuplicatedParam(name, parameter) => (
            format!("two parameters of `{name}` are called `{parameter}`"),
            None,
        ),
        E::VariableUndefined(name) => (format!("undefined variable `{name}`"), None),
        E::ExprTooDeep => (
            "this is nested too deeply".into(),
            Some("give parts of it names with `let`, or make them functions".into()),
        ),
        other => (plain(&other.to_string()), None),
    }
}

fn lexical(error: &LexError) -> (String, Option<String>) {
    match error {
        LexError::UnexpectedInput(text) => (format!("unexpected `{text}`"), None),
        LexError::UnterminatedString => (
            "this text has no closing quote".into(),
            Some("a text over several lines stands between backticks".into()),
        ),
        LexError::MalformedEscapeSequence(text) => (
            format!("unknown escape sequence `{text}`"),
            Some(r"a backslash is written `\\`".into()),
        ),
        LexError::MalformedNumber(text) => (format!("`{text}` is not a number"), None),
        LexError::MalformedIdentifier(text) => (format!("`{text}` can't be a name"), None),
        other => (plain(&other.to_string()), None),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use rhai::Engine;

    use crate::{diagnostic::Diagnostic, source::Source};

    fn summary(source: &str) -> String {
        let error = Engine::new_raw().compile(source).unwrap_err();
        Diagnostic::from_parse_error(&error, &Source::one_file("routes.rhai", source)).summary()
    }

    #[test]
    fn syntax_errors_in_plain_words() {
        for (source, expected) in [
            (
                "let a = 1\nlet b = 2;",
                "routes.rhai:2:1: error: missing `;` before this (a `;` is needed to terminate this statement)",
            ),
            (
                "if x == null { }",
                "routes.rhai:1:9: error: there is no `null` (what is absent is `()`)",
            ),
            (
                "let match = 1;",
                "routes.rhai:1:5: error: `match` is a reserved word (choose another name)",
            ),
            (
                "const K = 1;\nK = 2;",
                "routes.rhai:2:1: error: `K` is a constant and can't be assigned to (declare it with `let` if it is to change)",
            ),
            (
                "if 1 { 2 }",
                "routes.rhai:1:4: error: expected a boolean expression, not a number",
            ),
            (
                "while |x| x { }",
                "routes.rhai:1:7: error: expected a boolean expression, not a function",
            ),
            (
                "fn f() {\n  g(1",
                "routes.rhai:2:6: error: expected `)` to close the arguments list of this function call 'g'",
            ),
            (
                "let a = \"x\n\";",
                "routes.rhai:1:9: error: this text has no closing quote (a text over several lines stands between backticks)",
            ),
            (
                "fn f(a) {}\nfn f(b) {}",
                "routes.rhai:2:1: error: function `f` with 1 parameter is defined twice",
            ),
            (
                "let m = #{ a: 1, a: 2 };",
                "routes.rhai:1:18: error: `a` stands twice in this map",
            ),
            (
                "let",
                "routes.rhai:1:4: error: expecting name of a variable",
            ),
        ] {
            assert_eq!(summary(source), expected, "{source}");
        }
    }

    #[test]
    fn the_word_is_underlined() {
        let source = "let match = 1;";
        let error = Engine::new_raw().compile(source).unwrap_err();
        let finding =
            Diagnostic::from_parse_error(&error, &Source::one_file("routes.rhai", source));
        assert_eq!(
            finding.render(&|_| Some(source.into()), false),
            "\
error: `match` is a reserved word
 --> routes.rhai:1:5
  |
1 | let match = 1;
  |     ^^^^^
  |
  = help: choose another name"
        );
    }
}
