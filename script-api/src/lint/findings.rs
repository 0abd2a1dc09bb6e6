//! The list of findings while it grows.

use std::{collections::BTreeSet, sync::Arc};

use rhai::Position;

use crate::{diagnostic::Diagnostic, source::Source};

/// The findings about one program.
pub(super) struct Findings {
    source: Arc<Source>,
    /// Each with its place in the text of the whole program.
    list: Vec<(Position, Diagnostic)>,
}

impl Findings {
    pub(super) fn new(source: &Arc<Source>) -> Self {
        Self {
            source: source.clone(),
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
        let mut finding = Diagnostic {
            place: self.source.place(at, length),
            help,
            ..finding
        };
        self.source.make_readable(&mut finding);
        self.list.push((at, finding));
    }

    /// In the order of their places; functions are walked in no particular order.
    /// The same finding twice at one place is one.
    pub(super) fn into_sorted(self) -> Vec<Diagnostic> {
        let mut list = self.list;
        list.sort_by(|(at, a), (other_at, b)| {
            at.cmp(other_at).then_with(|| a.message.cmp(&b.message))
        });
        let mut seen = BTreeSet::new();
        list.retain(|(at, one)| seen.insert((*at, one.message.clone())));
        list.into_iter().map(|(_, finding)| finding).collect()
    }
}
