//! One of several pools, by weight.

use super::{HashOn, PoolId};
use crate::{request::Request, stable_hash::remix};

/// Pools with weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// What of a request decides; without it, or where the request doesn't have it, chance does.
    by: Option<HashOn>,
    /// Each pool with the sum of the weights up to and with its own.
    cumulative: Vec<(PoolId, u64)>,
}

impl Split {
    /// A split over `weights`, of which at least one is above 0.
    ///
    /// # Errors
    /// When there is no weight above 0.
    pub fn new(weights: impl IntoIterator<Item = (PoolId, u32)>) -> Result<Self, String> {
        let mut sum = 0;
        let cumulative: Vec<_> = weights
            .into_iter()
            .filter(|(_, weight)| *weight > 0)
            .map(|(pool, weight)| {
                sum += u64::from(weight);
                (pool, sum)
            })
            .collect();
        if cumulative.is_empty() {
            return Err("at least one weight must be above 0".to_owned());
        }
        Ok(Self {
            by: None,
            cumulative,
        })
    }

    /// The same, decided by what a request has.
    #[must_use]
    pub fn by(self, by: HashOn) -> Self {
        Self {
            by: Some(by),
            ..self
        }
    }

    /// What of a request decides.
    pub fn decided_by(&self) -> Option<&HashOn> {
        self.by.as_ref()
    }

    /// The pool of this request. The same for equal ones when it is decided by what they have: on all routes and
    /// replicas with these weights, and nearly the same when weights change, since the shares keep their order.
    pub fn pool_for(&self, request: &dyn Request, random: impl FnOnce() -> u64) -> PoolId {
        let key = self.by.as_ref().and_then(|by| by.key(request));
        // The pool may hash the same; its choice must not follow from this one.
        self.pick(key.map_or_else(random, remix))
    }

    /// Whether this pool has a share.
    pub fn has(&self, pool: PoolId) -> bool {
        self.pools().any(|known| known == pool)
    }

    /// The pool for `random`, a number that is uniform over all of `u64`.
    pub fn pick(&self, random: u64) -> PoolId {
        let last = self.cumulative.len() - 1;
        let (fallback, sum) = self.cumulative[last];
        // Multiply-shift maps 0..2^64 evenly onto 0..sum.
        let point = ((u128::from(random) * u128::from(sum)) >> 64) as u64;
        self.cumulative
            .iter()
            .find_map(|&(pool, upper)| (point < upper).then_some(pool))
            .unwrap_or(fallback)
    }

    /// The pools, in the order written.
    pub fn pools(&self) -> impl Iterator<Item = PoolId> + '_ {
        self.cumulative.iter().map(|(pool, _)| *pool)
    }

    /// The pools with their own weights, in the order written.
    pub fn weights(&self) -> impl Iterator<Item = (PoolId, u64)> + '_ {
        let before = std::iter::once(0).chain(self.cumulative.iter().map(|(_, upper)| *upper));
        self.cumulative
            .iter()
            .zip(before)
            .map(|(&(pool, upper), before)| (pool, upper - before))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::memory::MemoryRequest;

    #[test]
    fn splits_by_weight() {
        let split = Split::new([(PoolId(0), 3), (PoolId(1), 0), (PoolId(2), 1)]).unwrap();
        assert_eq!(split.pick(0), PoolId(0));
        assert_eq!(split.pick(u64::MAX / 4 * 3 - 8), PoolId(0));
        assert_eq!(split.pick(u64::MAX / 4 * 3 + 8), PoolId(2));
        assert_eq!(split.pick(u64::MAX), PoolId(2));
        assert_eq!(
            split.weights().collect::<Vec<_>>(),
            [(PoolId(0), 3), (PoolId(2), 1)]
        );
        assert!(Split::new([(PoolId(0), 0)]).is_err());
        assert!(split.has(PoolId(2)) && !split.has(PoolId(1)));
    }

    #[test]
    fn equal_requests_have_the_same_pool() {
        let by = HashOn::parse("header x-user").unwrap();
        let split = Split::new([(PoolId(0), 70), (PoolId(1), 30)])
            .unwrap()
            .by(by);
        let mut second = 0;
        for user in 0_u32..2000 {
            let mut request = MemoryRequest::new("GET", "h", "/");
            request.set_header("x-user".parse().unwrap(), user.into());
            let pool = split.pool_for(&request, || unreachable!("it has a key"));
            assert_eq!(split.pool_for(&request, || 0), pool);
            second += usize::from(pool == PoolId(1));
        }
        // Mean 600, deviation 20.
        assert!(second.abs_diff(600) < 120, "{second}");
        let nobody = MemoryRequest::new("GET", "h", "/");
        assert_eq!(split.pool_for(&nobody, || 0), PoolId(0));
        assert_eq!(split.pool_for(&nobody, || u64::MAX), PoolId(1));
    }
}
