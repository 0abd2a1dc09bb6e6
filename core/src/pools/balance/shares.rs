//! Random choices, as often as weights say.

use super::{Place, first_from};

/// Random tries for one that may be taken, before all are looked at.
const TRIES: usize = 8;

/// How often each position is to be chosen.
#[derive(Debug)]
pub(super) struct Shares {
    count: usize,
    /// Each weight, and the sum of all up to and with it; `None` when all are equal.
    weights: Option<Box<[(u64, u64)]>>,
}

impl Shares {
    pub(super) fn new(places: &[Place]) -> Self {
        let equal = places.windows(2).all(|two| two[0].weight == two[1].weight);
        let mut sum = 0;
        let weights = places.iter().map(|place| {
            let weight = u64::from(place.weight);
            sum += weight;
            (weight, sum)
        });
        Self {
            count: places.len(),
            weights: (!equal).then(|| weights.collect()),
        }
    }

    /// A random one, by weight.
    pub(super) fn random(&self, may: impl Fn(usize) -> bool) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        let mut tries = (0..TRIES).map(|_| self.any());
        let found = tries.find(|&index| may(index));
        found.or_else(|| first_from(fastrand::usize(..self.count), self.count, may))
    }

    /// The less loaded of two random ones, for its weight.
    ///
    /// Looking at two spreads almost as well as looking at all, and unlike "the least loaded of all" it
    /// doesn't send every request of a burst to the same endpoint (Mitzenmacher, "The Power of Two
    /// Choices in Randomized Load Balancing", 2001).
    pub(super) fn least_loaded(
        &self,
        may: impl Fn(usize) -> bool,
        load: impl Fn(usize) -> usize,
    ) -> Option<usize> {
        let one = self.random(&may)?;
        let Some(two) = self.random(|index| index != one && may(index)) else {
            return Some(one);
        };
        // The second one takes it when with one request more it would still not be busier than the first one is.
        // `one` came by weight, so where nobody is busy the weights decide.
        let busy = |index: usize, more: u64| load(index) as u64 + more;
        let one_is_busier = busy(two, 1) * self.weight(one) <= busy(one, 0) * self.weight(two);
        Some(if one_is_busier { two } else { one })
    }

    /// The cheaper of two random ones, for its weight.
    pub(super) fn cheapest(
        &self,
        may: impl Fn(usize) -> bool,
        cost: impl Fn(usize) -> f64,
    ) -> Option<usize> {
        let one = self.random(&may)?;
        let Some(two) = self.random(|index| index != one && may(index)) else {
            return Some(one);
        };
        let price = |index: usize, other: usize| cost(index) * self.weight(other) as f64;
        let two_is_cheaper = price(two, one) < price(one, two);
        Some(if two_is_cheaper { two } else { one })
    }

    /// A random one.
    fn any(&self) -> usize {
        let Some(weights) = &self.weights else {
            return fastrand::usize(..self.count);
        };
        let sum = weights.last().map_or(1, |&(_, sum)| sum);
        let point = fastrand::u64(..sum);
        weights.partition_point(|&(_, upper)| upper <= point)
    }

    fn weight(&self, index: usize) -> u64 {
        self.weights.as_ref().map_or(1, |weights| weights[index].0)
    }
}
