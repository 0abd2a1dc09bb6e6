//! What is wrong in the text of a pattern, template or host, and where.

use std::ops::Range;

/// A mistake in the text of a [`Pattern`](super::Pattern), [`Template`](super::Template) or
/// [`HostPattern`](super::HostPattern). Displays as its message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct PatternError {
    /// What is wrong: lower case, no trailing dot.
    pub message: String,
    /// What to write instead, where that is known.
    pub help: Option<String>,
    /// Where the mistake begins, in bytes from the start of the text.
    pub offset: usize,
    /// How many bytes it takes up. 0 only where there is nothing to point at, as in an empty text.
    pub length: usize,
}

impl PatternError {
    pub(super) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        PatternError {
            message: message.into(),
            help: None,
            offset: span.start,
            length: span.len(),
        }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
