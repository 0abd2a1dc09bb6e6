//! Which routes fit a request: the host first, then the path.
//!
//! [`HostRouter`] finds the most specific site for a Host header, [`PathRouter`] walks the routes
//! of that site whose [`Pattern`] fits a normal path ([`crate::path::normalize`]), from the most
//! specific to the least. What a pattern captures can be pasted into a [`Template`]. All of it is
//! built while loading; looking something up costs a hash per segment, however many routes there are.

mod captures;
mod error;
mod host;
mod pattern;
mod substitution;
mod template;
mod trie;

pub use captures::Captures;
pub use error::PatternError;
pub use host::{DuplicateHost, HostPattern, HostRouter};
pub use pattern::{MAX_CAPTURES, MAX_SEGMENTS, Pattern, Segment};
pub use substitution::{Substituted, Substitution};
pub use template::Template;
pub use trie::PathRouter;
