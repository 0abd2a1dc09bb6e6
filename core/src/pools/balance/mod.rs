//! Which of several endpoints a request gets. Positions only: nothing here knows what they are.
//!
//! An [`Order`] is made off the request path whenever the endpoints change. Choosing only looks at it: no lock, no
//! allocation, and one atomic number for the turn of a round robin.

mod bound;
mod maglev;
mod rendezvous;
mod ring;
mod rotation;
mod shares;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::sync::atomic::AtomicUsize;

use crate::config::{Balance, LoadBound};
use bound::Bound;
use maglev::Maglev;
use ring::Ring;
use rotation::Rotation;
use shares::Shares;

/// Steps through a table that holds each place many times, before all places are looked at one by one.
const MOST_STEPS: usize = 256;

/// What an order knows of an endpoint.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// A stable hash of its address.
    pub(super) hash: u64,
    /// Its share; above 0.
    pub(super) weight: u16,
}

/// How requests are spread over endpoints.
#[derive(Debug)]
pub(super) struct Order {
    places: Box<[Place]>,
    policy: Policy,
    bound: Option<Bound>,
}

#[derive(Debug)]
enum Policy {
    LeastRequests(Shares),
    PeakEwma(Shares),
    Random(Shares),
    RoundRobin(Rotation),
    Hash(Maglev),
    RingHash(Ring),
}

/// What is asked of an order.
pub(super) struct Ask<'a, M, L, C> {
    /// Whose endpoint it is to be; without one, a hash is random.
    pub(super) key: Option<u64>,
    /// Whose turn it is.
    pub(super) turn: &'a AtomicUsize,
    /// Whether the endpoint at this position may be taken.
    pub(super) may: M,
    /// The requests in flight of the endpoint at this position.
    pub(super) load: L,
    /// What one more request costs at the endpoint at this position.
    pub(super) cost: C,
}

impl Order {
    /// An order for endpoints, which have the positions that they have in `places`.
    pub(super) fn new(
        balance: Balance,
        load_bound: Option<LoadBound>,
        places: impl IntoIterator<Item = Place>,
    ) -> Self {
        let places: Box<[Place]> = places.into_iter().collect();
        let policy = match balance {
            // Nothing to choose from: no table is worth its memory.
            _ if places.len() < 2 => Policy::Random(Shares::new(&places)),
            Balance::LeastRequests => Policy::LeastRequests(Shares::new(&places)),
            Balance::PeakEwma => Policy::PeakEwma(Shares::new(&places)),
            Balance::Random => Policy::Random(Shares::new(&places)),
            Balance::RoundRobin => Policy::RoundRobin(Rotation::new(&places)),
            Balance::Hash => Policy::Hash(Maglev::new(&places)),
            Balance::RingHash => Policy::RingHash(Ring::new(&places)),
        };
        let bound = load_bound.map(|most| Bound::new(most, &places));
        Self {
            places,
            policy,
            bound,
        }
    }

    /// The position of an endpoint that may be taken; `None` when none may.
    pub(super) fn choose<M, L, C>(&self, ask: &Ask<'_, M, L, C>) -> Option<usize>
    where
        M: Fn(usize) -> bool,
        L: Fn(usize) -> usize,
        C: Fn(usize) -> f64,
    {
        match &self.policy {
            Policy::Hash(table) => self.by_hash(ask, |key, may| table.choose(key, may)),
            Policy::RingHash(ring) => self.by_hash(ask, |key, may| ring.choose(key, may)),
            _ if let Some(key) = ask.key => rendezvous::choose(&self.places, key, &ask.may),
            Policy::LeastRequests(shares) => shares.least_loaded(&ask.may, &ask.load),
            Policy::PeakEwma(shares) => shares.cheapest(&ask.may, &ask.cost),
            Policy::Random(shares) => shares.random(&ask.may),
            Policy::RoundRobin(rotation) => rotation.next(ask.turn, &ask.may),
        }
    }

    /// The first in the key's own order that has room; when none has, the first.
    fn by_hash<M, L, C>(
        &self,
        ask: &Ask<'_, M, L, C>,
        choose: impl Fn(u64, &dyn Fn(usize) -> bool) -> Option<usize>,
    ) -> Option<usize>
    where
        M: Fn(usize) -> bool,
        L: Fn(usize) -> usize,
    {
        let key = ask.key.unwrap_or_else(|| fastrand::u64(..));
        if let Some(bound) = &self.bound {
            let total = OnceCell::new();
            let sum = || (0..self.places.len()).map(&ask.load).sum::<usize>();
            let has_room = |index: usize| {
                let load = (ask.load)(index);
                // Nobody has less than one, so most requests need not add up all.
                load == 0 || load < bound.most(self.places[index], *total.get_or_init(sum) + 1)
            };
            let found = choose(key, &|index| (ask.may)(index) && has_room(index));
            if found.is_some() {
                return found;
            }
        }
        choose(key, &ask.may)
    }
}

/// The first position from `start` on, going round once, that may be taken.
fn first_from(start: usize, count: usize, may: impl Fn(usize) -> bool) -> Option<usize> {
    (start..count).chain(0..start).find(|&index| may(index))
}

/// Walks through a table of positions, from `start` on, to the first one that may be taken.
fn walk(table: &[u32], start: usize, count: usize, may: impl Fn(usize) -> bool) -> Option<usize> {
    let own = *table.get(start)? as usize;
    if may(own) {
        return Some(own);
    }
    let next = table[start..].iter().chain(&table[..start]);
    let mut next = next.map(|&index| index as usize).take(MOST_STEPS);
    next.find(|&index| index != own && may(index))
        .or_else(|| first_from(own, count, may))
}

/// The place in `0..count` of a hash that is uniform over all of `u64` (multiply and shift).
fn scaled(hash: u64, count: usize) -> usize {
    ((u128::from(hash) * count as u128) >> 64) as usize
}
