//! What is to be done to the words of one file.

use rhai::Position;

use crate::{diagnostic::Diagnostic, source::Rename};

/// What was found in one file.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Words that mean something else, by their places in the file.
    pub(super) renames: Vec<(Position, Rename)>,
    /// Stretches of the text that are blanked.
    pub(super) blanks: Vec<Blank>,
    pub(super) findings: Vec<Diagnostic>,
}

/// A stretch of a file's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Blank {
    /// From the word `import` at the first place to the `;` at the second one, or to the end.
    Import(Position, Option<Position>),
    /// What stands behind the first word up to the end of the second one.
    Behind(Word, Word),
}

/// A word and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) at: Position,
}

impl Words {
    pub(super) fn rename(&mut self, at: Position, name: String, written: usize) {
        self.renames.push((at, Rename { name, written }));
    }
}
