//! The pools of one generation.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::pool::Pool;
use crate::config::PoolConfig;
use crate::dns::Resolver;

/// All pools of one generation. Positions are those of the names in their order, and stay for the
/// life of the generation, so that routes can refer to a pool by position.
#[derive(Debug, Default)]
pub struct Pools {
    /// Sorted by name.
    list: Vec<Arc<Pool>>,
}

impl Pools {
    /// Builds the pools. One that `previous` has with the same configuration is carried over as it
    /// is; names that are new begin to be resolved. Doesn't wait for them: see
    /// [`Pools::wait_ready`].
    pub fn build(
        configs: &BTreeMap<String, PoolConfig>,
        resolver: &Resolver,
        previous: Option<&Pools>,
    ) -> Pools {
        let build = |(name, config): (&String, &PoolConfig)| match previous
            .and_then(|pools| pools.get(name))
        {
            Some(pool) if pool.config() == config => pool.clone(),
            changed => Pool::new(name, config, resolver, changed.map(Arc::as_ref)),
        };
        Pools {
            list: configs.iter().map(build).collect(),
        }
    }

    /// The pool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Pool>> {
        self.index_of(name).and_then(|index| self.at(index))
    }

    /// The position of the pool of this name.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.list
            .binary_search_by(|pool| pool.name().cmp(name))
            .ok()
    }

    /// The pool at a position.
    #[inline]
    pub fn at(&self, index: usize) -> Option<&Arc<Pool>> {
        self.list.get(index)
    }

    /// All pools, sorted by name.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<Pool>> {
        self.list.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Blocks until all pools are ready, `limit` at the longest; false when the time was up first.
    /// For the start and for reloads, not for proxy workers.
    pub fn wait_ready(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        self.list.iter().all(|pool| pool.wait_ready(deadline))
    }
}

impl<'a> IntoIterator for &'a Pools {
    type Item = &'a Arc<Pool>;
    type IntoIter = std::slice::Iter<'a, Arc<Pool>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
