//! A table in which each endpoint has its share of the entries, nearly all of which stay with their endpoint when another
//! one comes or goes (Eisenbud and others, "Maglev: A Fast and Reliable Software Network Load Balancer", NSDI 2016,
//! section 3.4).

use edgewright_script::stable_hash::remix;

use super::{Place, scaled, walk};

/// Entries; a prime, so that every skip reaches all of them. It never changes, or every key would move. A hundred for
/// each of 650 endpoints: their shares are within one in a hundred.
const SIZE: usize = 65_537;

const NOBODY: u32 = u32::MAX;

/// A table of positions.
#[derive(Debug)]
pub(super) struct Maglev {
    count: usize,
    owners: Box<[u32]>,
}

/// The entries that an endpoint would like to have, in its own order.
struct Wishes {
    next: usize,
    skip: usize,
    /// What it has taken, in units of the heaviest weight.
    taken: u64,
}

impl Maglev {
    /// A table over `places`, of which there is one at least.
    pub(super) fn new(places: &[Place]) -> Self {
        let mut owners = vec![NOBODY; SIZE].into_boxed_slice();
        let heaviest = places.iter().map(|place| u64::from(place.weight)).max();
        let heaviest = heaviest.unwrap_or(1).max(1);
        let wishes = |place: &Place| Wishes {
            next: scaled(place.hash, SIZE),
            skip: scaled(remix(place.hash), SIZE - 1) + 1,
            taken: 0,
        };
        let mut wishes: Vec<Wishes> = places.iter().map(wishes).collect();
        let mut free = SIZE;
        let mut round = 0;
        while free > 0 && !places.is_empty() {
            round += 1;
            for (index, (place, wishes)) in places.iter().zip(&mut wishes).enumerate() {
                // The heaviest takes one in each round, one of half its weight in every other.
                if round * u64::from(place.weight) < wishes.taken || free == 0 {
                    continue;
                }
                wishes.taken += heaviest;
                while owners[wishes.next] != NOBODY {
                    wishes.next = (wishes.next + wishes.skip) % SIZE;
                }
                owners[wishes.next] = index as u32;
                free -= 1;
            }
        }
        Self {
            count: places.len(),
            owners,
        }
    }

    /// The key's own, or the next one in its order that may be taken.
    pub(super) fn choose(&self, key: u64, may: impl Fn(usize) -> bool) -> Option<usize> {
        walk(&self.owners, scaled(key, SIZE), self.count, may)
    }
}
