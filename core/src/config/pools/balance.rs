//! `balance`: which target a request gets.

use serde::Deserialize;

/// Which target a request gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Balance {
    /// The one with the fewest requests in flight. The default: a slow target gets less.
    #[default]
    LeastRequests,
    /// One after the other.
    RoundRobin,
}
