//! A ring on which each endpoint has points: a key belongs to the next one (Karger and others, "Consistent Hashing and
//! Random Trees", STOC 1997; the number of points is ketama's and nginx's).

use edgewright_script::stable_hash::remix;

use super::{Place, walk};

/// Points for each unit of weight.
const POINTS: u64 = 160;

/// The most points of a ring. Where weights ask for more, all endpoints get fewer: the first ones of those that they
/// would have.
const MOST_POINTS: u64 = 1 << 17;

/// A ring of positions.
#[derive(Debug)]
pub(super) struct Ring {
    count: usize,
    /// Sorted.
    points: Box<[u64]>,
    /// Whose points they are.
    owners: Box<[u32]>,
}

impl Ring {
    /// A ring over `places`, of which there is one at least.
    pub(super) fn new(places: &[Place]) -> Self {
        let sum: u64 = places.iter().map(|place| u64::from(place.weight)).sum();
        let wanted = (sum * POINTS).max(1);
        let points = |place: &Place| {
            let own = u64::from(place.weight) * POINTS;
            match own {
                own if wanted <= MOST_POINTS => own,
                own => (own * MOST_POINTS / wanted).max(1),
            }
        };
        let mut ring: Vec<(u64, u32)> = Vec::new();
        for (index, place) in places.iter().enumerate() {
            let point = |number| remix(place.hash.wrapping_add(remix(number)));
            ring.extend((0..points(place)).map(|number| (point(number), index as u32)));
        }
        ring.sort_unstable();
        let (points, owners): (Vec<u64>, Vec<u32>) = ring.into_iter().unzip();
        Self {
            count: places.len(),
            points: points.into(),
            owners: owners.into(),
        }
    }

    /// The key's own, or the next one on the ring that may be taken.
    pub(super) fn choose(&self, key: u64, may: impl Fn(usize) -> bool) -> Option<usize> {
        let next = self.points.partition_point(|&point| point < key);
        // Behind the last point comes the first one.
        let start = next.checked_rem(self.points.len())?;
        walk(&self.owners, start, self.count, may)
    }
}
