//! What a rate is made of.

use std::time::Duration;

use crate::state::clock::nanoseconds;

/// How hits are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// In a window that begins with the key's first hit.
    Fixed,
    /// In the window that ends now; of the window before only a total is known, which is taken as
    /// spread evenly over it.
    Sliding,
    /// In a bucket that fills up steadily and holds `burst`.
    TokenBucket,
}

impl Algorithm {
    /// The names that a program can give: `fixed` is the default and has none.
    pub const NAMES: [&'static str; 2] = ["sliding", "token_bucket"];

    /// The algorithm called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "sliding" => Some(Self::Sliding),
            "token_bucket" => Some(Self::TokenBucket),
            _ => None,
        }
    }
}

/// A rate as a program says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateRule {
    /// Hits in a window, at least 1.
    pub(super) limit: u64,
    /// Nanoseconds, at least 1.
    pub(super) window: u64,
    pub(super) algorithm: Algorithm,
    /// Hits that a full bucket holds, at least 1.
    pub(super) burst: u64,
    /// Keys that are known at a time, at least 1.
    pub(super) max_keys: usize,
}

/// Keys that a rate knows at a time, unless it says otherwise: some 20 MB when all are in use.
const MAX_KEYS: usize = 100_000;

impl RateRule {
    /// `limit` hits in `window`, each at least 1 (of nanoseconds).
    pub fn new(limit: u32, window: Duration, algorithm: Algorithm) -> Self {
        let limit = u64::from(limit.max(1));
        Self {
            limit,
            window: nanoseconds(window).max(1),
            algorithm,
            burst: limit,
            max_keys: MAX_KEYS,
        }
    }

    /// Hits in a window.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The window.
    pub fn window(&self) -> Duration {
        Duration::from_nanos(self.window)
    }

    /// Hits that a full bucket holds, at least 1; without this as many as the limit.
    #[must_use]
    pub fn burst(self, burst: u32) -> Self {
        Self {
            burst: u64::from(burst.max(1)),
            ..self
        }
    }

    /// Keys that are known at a time, at least 1. Default 100,000.
    #[must_use]
    pub fn max_keys(self, max_keys: usize) -> Self {
        Self {
            max_keys: max_keys.max(1),
            ..self
        }
    }
}
