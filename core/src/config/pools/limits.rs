//! `[pools.NAME.limits]`: how many requests a pool gets at a time, and how many may wait.

use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use crate::config::check::{Checks, POSITIVE};
use crate::config::units::{Count, NoneOrCount, Time};

/// The most requests that a limit can be.
const MOST: u64 = 1_000_000;

/// `[pools.NAME.limits]`, over all workers of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolLimits {
    /// `requests`: that the pool gets at a time, 1 to 1000000. Default no bound.
    pub requests: Option<usize>,
    /// `requests_per_target`: that one target gets at a time, 1 to 1000000. Default no bound.
    pub requests_per_target: Option<usize>,
    /// `queue`: requests that may wait for one of those places, 0 to 1000000. Default 0.
    pub queue: usize,
    /// `queue_timeout`: how long one waits. Default 1 s.
    pub queue_timeout: Duration,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self {
            requests: None,
            requests_per_target: None,
            queue: 0,
            queue_timeout: Duration::from_secs(1),
        }
    }
}

impl PoolLimits {
    /// Whether there is any bound.
    pub fn bounds(&self) -> bool {
        self.requests.is_some() || self.requests_per_target.is_some()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct Table {
    requests: Option<Spanned<NoneOrCount>>,
    requests_per_target: Option<Spanned<NoneOrCount>>,
    queue: Option<Spanned<Count>>,
    queue_timeout: Option<Spanned<Time>>,
}

/// Takes the table of the pool whose keys begin with `prefix`.
pub(super) fn take(checks: &mut Checks<'_>, prefix: &str, table: Table) -> PoolLimits {
    let mut limits = PoolLimits::default();
    let prefix = format!("{prefix}.limits");
    let waits = table.queue.as_ref().map(Spanned::span);
    for (slot, key, given) in [
        (&mut limits.requests, "requests", table.requests),
        (
            &mut limits.requests_per_target,
            "requests_per_target",
            table.requests_per_target,
        ),
    ] {
        let key = format!("{prefix}.{key}");
        checks.count_or_none(slot, &key, given, 1..=MOST);
    }
    let queue = format!("{prefix}.queue");
    checks.count(&mut limits.queue, &queue, table.queue, 0..=MOST);
    let time = format!("{prefix}.queue_timeout");
    checks.time(
        &mut limits.queue_timeout,
        &time,
        table.queue_timeout,
        POSITIVE,
    );
    if let Some(span) = waits
        && limits.queue > 0
        && !limits.bounds()
    {
        checks.error_with_help(
            &span,
            format!("nothing waits in `{queue}` without a bound"),
            format!("set `{prefix}.requests` or `{prefix}.requests_per_target`"),
        );
    }
    limits
}
