//! What runs at a constant rate have in common in their reports.

use serde::Serialize;

/// How long and how fast such a run went.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Pace {
    /// Rounds.
    pub(crate) rounds: usize,
    /// Seconds of a turn.
    pub(crate) seconds: u64,
    /// Requests in a second, whether they are answered or not (open loop).
    pub(crate) rate: u64,
    /// Worker threads of a proxy.
    pub(crate) threads: usize,
}
