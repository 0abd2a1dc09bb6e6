//! How many requests of a consistent hash an endpoint may have at a time (Mirrokni, Thorup and Zadimoghaddam, "Consistent
//! Hashing with Bounded Loads", 2016).

use super::Place;
use crate::config::LoadBound;

/// A bound for each endpoint, by its weight.
#[derive(Debug)]
pub(super) struct Bound {
    most: LoadBound,
    weights: u64,
}

impl Bound {
    pub(super) fn new(most: LoadBound, places: &[Place]) -> Self {
        let weights = places.iter().map(|place| u64::from(place.weight)).sum();
        Self { most, weights }
    }

    /// Requests that the endpoint may have when all have `total` together. Rounded up, so that there always is room
    /// somewhere.
    pub(super) fn most(&self, place: Place, total: usize) -> usize {
        let share = total as u128 * u128::from(place.weight) * u128::from(self.most.hundredths());
        let most = share.div_ceil(u128::from(self.weights.max(1)) * 100);
        usize::try_from(most).unwrap_or(usize::MAX)
    }
}
