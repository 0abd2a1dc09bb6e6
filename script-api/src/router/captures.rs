//! What the captures of a pattern matched, as places in the path.

use smallvec::SmallVec;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Span {
    start: usize,
    end: usize,
}

/// The captures of one match, in the order of [`Pattern::names`](super::Pattern::names). They are
/// places in the path that was matched, so they are read together with it. Up to 8 take no
/// allocation.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Captures(SmallVec<[Span; 8]>);

impl Captures {
    /// The text of capture `index` in `path`, percent-encoded as it stands there. `None` where there is
    /// no such capture, or where `path` is not the path that was matched and has no such place.
    pub fn get<'p>(&self, path: &'p str, index: usize) -> Option<&'p str> {
        let span = self.0.get(index)?;
        path.get(span.start..span.end)
    }

    /// How many captures there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the pattern has no captures.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn push(&mut self, start: usize, end: usize) {
        self.0.push(Span { start, end });
    }

    pub(super) fn pop(&mut self) {
        self.0.pop();
    }
}
