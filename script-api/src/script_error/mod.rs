//! Rhai's own errors as findings in plain words.
//!
//! Rhai says `Function not found: foo (i64)\nin call to function 'gate'`; a
//! person who writes routes wants to read what is wrong, where in their file,
//! and how the program came there.

mod eval;
mod parse;
mod shown;
mod types;

use rhai::{Dynamic, EvalAltResult, ParseError, Position};

use crate::{diagnostic::Diagnostic, source::Source};

impl Diagnostic {
    /// A syntax error as a finding in the files of `source`.
    #[must_use]
    pub fn from_parse_error(error: &ParseError, source: &Source) -> Self {
        parse::convert(error.err_type(), error.position(), source)
    }

    /// A failure while running as a finding in the files of `source`.
    ///
    /// The message is about the innermost cause and the place is the innermost
    /// one known; how the program came there stands in the help. A
    /// [`Diagnostic`] raised by a native (see its conversion into
    /// `Box<EvalAltResult>`) is taken as it is.
    #[must_use]
    pub fn from_eval_error(error: &EvalAltResult, source: &Source) -> Self {
        eval::convert(error, source, &mut std::iter::empty())
    }

    /// [`Diagnostic::from_eval_error`], which also suggests the nearest of
    /// `names` where the failure is about an unknown one.
    #[must_use]
    pub fn from_eval_error_among<'a>(
        error: &EvalAltResult,
        source: &Source,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        eval::convert(error, source, &mut names.into_iter())
    }

    /// Says where, if `position` is a place, and underlines `length` characters.
    fn at_position(mut self, source: &Source, position: Position, length: usize) -> Self {
        self.place = source.place(position, length).or(self.place);
        self
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
