//! The list of findings while it grows.

use std::collections::BTreeSet;

use rhai::Position;

use crate::diagnostic::Diagnostic;

/// The findings about one file.
pub(super) struct Findings {
    file: String,
    list: Vec<Diagnostic>,
}

impl Findings {
    pub(super) fn new(file: &str) -> Self {
        Self {
            file: file.to_string(),
            list: Vec::new(),
        }
    }

    /// Adds an error that underlines `length` characters.
    pub(super) fn error(
        &mut self,
        at: Position,
        length: usize,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        self.add(Diagnostic::error(message), at, length, help);
    }

    /// Adds a warning that underlines `length` characters.
    pub(super) fn warning(&mut self, at: Position, length: usize, message: impl Into<String>) {
        self.add(Diagnostic::warning(message), at, length, None);
    }

    fn add(&mut self, finding: Diagnostic, at: Position, length: usize, help: Option<String>) {
        let finding = match at.line() {
            Some(line) => finding
                .at(&self.file, line, at.position().unwrap_or(1))
                .spanning(length),
            None => finding,
        };
        self.list.push(match help {
            Some(help) => finding.help(help),
            None => finding,
        });
    }

    /// In the order of their places; functions are walked in no particular order.
    /// The same finding twice at one place is one.
    pub(super) fn into_sorted(self) -> Vec<Diagnostic> {
        let mut list = self.list;
        let key = |one: &Diagnostic| one.place.as_ref().map(|place| (place.line, place.column));
        list.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.message.cmp(&b.message)));
        let mut seen = BTreeSet::new();
        list.retain(|one| seen.insert((key(one), one.message.clone())));
        list
    }
}
