//! `[pools.NAME]`: upstreams.

use std::time::Duration;

use serde::Deserialize;

use super::target::Target;

/// `[pools.NAME]`. An equal one after a reload keeps its connections and statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolConfig {
    /// `targets`: where requests go; at least one, each once.
    pub targets: Vec<Target>,
    /// `balance`: which target a request gets.
    pub balance: Balance,
    /// `[pools.NAME.timeouts]`.
    pub timeouts: Timeouts,
}

impl PoolConfig {
    /// A pool of these targets with defaults for the rest.
    #[must_use]
    pub fn new(targets: Vec<Target>) -> Self {
        Self {
            targets,
            balance: Balance::default(),
            timeouts: Timeouts::default(),
        }
    }
}

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

/// `[pools.NAME.timeouts]`; each 1 ms to 7 days. Pingora's own defaults are infinite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// `connect`: until a connection stands. Default 1 s: within a cluster it takes
    /// milliseconds, and one lost SYN is sent again after 1 s.
    pub connect: Duration,
    /// `read`: between two reads from the upstream. Default 60 s.
    pub read: Duration,
    /// `write`: for one write to the upstream. Default 60 s.
    pub write: Duration,
    /// `idle`: how long an unused pooled connection is kept. Default 60 s.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(1),
            read: Duration::from_secs(60),
            write: Duration::from_secs(60),
            idle: Duration::from_secs(60),
        }
    }
}

/// Checks a pool's name, which stands in metrics, logs and scripts.
///
/// # Errors
/// The text says why it can't be one: names are made of ASCII letters, digits, `_`, `-` and `.`,
/// and are not empty.
pub fn check_pool_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("a pool's name can't be empty".to_string());
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    match name.chars().find(|c| !fits(*c)) {
        None => Ok(()),
        Some(c) => Err(format!(
            "{c:?} can't stand in a pool's name, which is made of letters, digits, `_`, `-` and `.`"
        )),
    }
}
