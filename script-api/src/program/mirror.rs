//! `.mirror`: which requests of a route are copied, and where to.

use std::time::Duration;

use super::PoolId;

/// Copies a share of a route's requests to another pool, whose answers nobody sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// The pool that gets the copies.
    pub pool: PoolId,
    /// Which requests, and how.
    pub rules: MirrorRules,
}

/// What `.mirror` was given beside the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MirrorRules {
    /// The share of the requests in millionths.
    millionths: u32,
    /// A request with a longer body is not copied; in bytes, [`MirrorRules::MOST_BODY`] at the most.
    pub body: usize,
    /// Until the answer to a copy is there whole.
    pub timeout: Duration,
}

const ALL: u32 = 1_000_000;

impl MirrorRules {
    /// The longest body that can be copied, in bytes.
    pub const MOST_BODY: u64 = 16 * 1024 * 1024;

    /// All requests, with bodies of up to 64 KiB.
    pub const DEFAULT: Self = Self {
        millionths: ALL,
        body: 64 * 1024,
        timeout: Duration::from_secs(5),
    };

    /// The same for a share of the requests.
    ///
    /// # Errors
    /// When it is not between 0 and 100.
    pub fn with_percent(self, percent: f64) -> Result<Self, String> {
        if !(0.0..=100.0).contains(&percent) {
            return Err(format!(
                "the percentage of `.mirror` must be between 0 and 100, not {percent}"
            ));
        }
        // Within the bounds of u32, since it was looked at above.
        let millionths = (percent * f64::from(ALL) / 100.0).round() as u32;
        Ok(Self { millionths, ..self })
    }

    /// Whether the request is copied to which `random` belongs, a number that is uniform over all of
    /// `u64`.
    pub fn picks(&self, random: u64) -> bool {
        // Multiply-shift maps 0..2^64 evenly onto 0..ALL.
        let point = (u128::from(random) * u128::from(ALL)) >> 64;
        point < u128::from(self.millionths)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn share(percent: f64) -> MirrorRules {
        MirrorRules::DEFAULT.with_percent(percent).unwrap()
    }

    #[test]
    fn picks_the_share_and_nothing_else() {
        for (percent, below) in [(10.0, 0.1), (0.0001, 0.000_001), (62.5, 0.625)] {
            let rules = share(percent);
            let edge = (below * 2f64.powi(64)) as u64;
            assert!(
                rules.picks(0) && rules.picks(edge - (edge >> 20)),
                "{percent}"
            );
            assert!(
                !rules.picks(edge + (edge >> 20)) && !rules.picks(u64::MAX),
                "{percent}"
            );
        }
        assert!(!share(0.0).picks(0));
        assert!(share(100.0).picks(u64::MAX));
        assert!(MirrorRules::DEFAULT.picks(u64::MAX));
        for wrong in [-1.0, 100.1, f64::NAN, f64::INFINITY] {
            assert!(MirrorRules::DEFAULT.with_percent(wrong).is_err(), "{wrong}");
        }
    }
}
