//! Rhai's own errors as findings in plain words.
//!
//! Rhai says `Function not found: foo (i64)\nin call to function 'gate'`; a
//! person who writes routes wants to read what is wrong, where in their file,
//! and how the program came there.

mod eval;
mod parse;
mod types;

use rhai::{Dynamic, EvalAltResult, ParseError, Position};

use crate::diagnostic::Diagnostic;

impl Diagnostic {
    /// A syntax error as a finding in `file`.
    #[must_use]
    pub fn from_parse_error(error: &ParseError, file: &str) -> Self {
        parse::convert(error.err_type(), error.position(), file)
    }

    /// A failure while running as a finding in `file`.
    ///
    /// The message is about the innermost cause and the place is the innermost
    /// one known; how the program came there stands in the help. A
    /// [`Diagnostic`] raised by a native (see its conversion into
    /// `Box<EvalAltResult>`) is taken as it is.
    #[must_use]
    pub fn from_eval_error(error: &EvalAltResult, file: &str) -> Self {
        eval::convert(error, file, &mut std::iter::empty())
    }

    /// [`Diagnostic::from_eval_error`], which also suggests the nearest of
    /// `names` where the failure is about an unknown one.
    #[must_use]
    pub fn from_eval_error_among<'a>(
        error: &EvalAltResult,
        file: &str,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        eval::convert(error, file, &mut names.into_iter())
    }

    fn at_position(self, file: &str, position: Position) -> Self {
        match position.line() {
            Some(line) => self.at(file, line, position.position().unwrap_or(1)),
            None => self,
        }
    }
}

/// What a native returns to raise a finding with its help; Rhai adds the place of the call.
impl From<Diagnostic> for Box<EvalAltResult> {
    fn from(finding: Diagnostic) -> Self {
        EvalAltResult::ErrorRuntime(Dynamic::from(finding), Position::NONE).into()
    }
}

/// Rhai's messages begin with a capital letter and some end with the position.
fn plain(message: &str) -> String {
    let message = match message.rfind(" (line ") {
        Some(end) if message.ends_with(')') => &message[..end],
        _ => message,
    };
    let mut characters = message.chars();
    match characters.next() {
        // An acronym or a type name stays as it is.
        Some(first) if !characters.as_str().starts_with(char::is_uppercase) => {
            first.to_lowercase().chain(characters).collect()
        }
        _ => message.to_string(),
    }
}
