//! The pattern of a route: `/api/{version}/{*rest}`.

mod parse;
#[cfg(test)]
mod tests;

use super::PatternError;
use std::cmp::Ordering;
use std::fmt;

/// The most captures that one pattern may have.
pub const MAX_CAPTURES: usize = 16;

/// The most segments that one pattern may have. It bounds the work and the recursion of a match.
pub const MAX_SEGMENTS: usize = 64;

/// One part of a pattern, between two slashes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Segment {
    /// This text, in the normal form of a path. Empty only as the last segment: `/a/` ends with one.
    Literal(Box<str>),
    /// `{name}`: any one segment that is not empty.
    Param(Box<str>),
    /// `{*name}`: all that is left, which may be nothing. Always the last segment.
    Rest(Box<str>),
}

/// A pattern for normal paths ([`crate::path::normalize`]), compared segment by segment.
///
/// `/` is only `/`; `/a` and `/a/` are different; `/a/{*rest}` fits `/a`, `/a/` and all below.
/// [`Display`](fmt::Display) gives the text back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    text: Box<str>,
    segments: Box<[Segment]>,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// A literal may hold what a [`PathPolicy`](crate::path::PathPolicy) can keep (`%2F`, `;` ...),
    /// whether or not the policy in force does.
    ///
    /// # Errors
    /// The first mistake in the text: no leading slash; an empty segment inside; a literal that is
    /// not in normal form, or has a `?` or `#`; a brace that is not closed or stands beside other text
    /// in its segment; a capture without a name, with one that is no identifier, or named twice;
    /// `{*rest}` before the end; more than [`MAX_CAPTURES`] captures or [`MAX_SEGMENTS`] segments.
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        Ok(Pattern {
            text: text.into(),
            segments: parse::segments(text)?.into(),
        })
    }

    /// `/{*rest}`, which fits every path.
    pub fn catch_all() -> Pattern {
        Pattern {
            text: "/{*rest}".into(),
            segments: [Segment::Rest("rest".into())].into(),
        }
    }

    /// The segments from the left; at least one. `/` is one empty literal.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The names of the captures from the left.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Literal(_) => None,
            Segment::Param(name) | Segment::Rest(name) => Some(&**name),
        })
    }

    /// What this pattern captures in `path`, when it fits. For single uses: a [`PathRouter`] finds
    /// the pattern of many.
    ///
    /// [`PathRouter`]: super::PathRouter
    pub fn captures(&self, path: &str) -> Option<super::Captures> {
        super::PathRouter::build([self]).visit(path, |_, captures| {
            std::ops::ControlFlow::Break(captures.clone())
        })
    }

    /// Orders patterns from the most specific to the least, segment by segment from the left:
    /// the end of the pattern, then a literal, then `{name}`, then `{*name}`.
    ///
    /// Texts and names don't count, so `Equal` says that both have the same kinds of segments. Of two
    /// patterns that fit one path, that means the same literals as well.
    pub fn cmp_specificity(&self, other: &Pattern) -> Ordering {
        let rank = |segment: &Segment| match segment {
            Segment::Literal(_) => 0,
            Segment::Param(_) => 1,
            Segment::Rest(_) => 2,
        };
        let ours = self.segments.iter().map(rank);
        ours.cmp(other.segments.iter().map(rank))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
