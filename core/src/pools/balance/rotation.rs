//! One after the other, those with more weight more often.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Place, first_from, walk};

/// The most turns of one round. Weights whose round would be longer are scaled down.
const MOST_TURNS: u64 = 65_536;

/// Steps that making a round may take: turns times endpoints. Some 20 ms.
const MOST_WORK: u64 = 16 << 20;

/// A round of turns.
#[derive(Debug)]
pub(super) struct Rotation {
    count: usize,
    /// Whose turn it is; `None` when all are equal, so that it is just one after the other.
    turns: Option<Box<[u32]>>,
}

impl Rotation {
    pub(super) fn new(places: &[Place]) -> Self {
        let equal = places.windows(2).all(|two| two[0].weight == two[1].weight);
        let turns = (!equal).then(|| smooth(&scaled_down(places)).into());
        Self {
            count: places.len(),
            turns,
        }
    }

    /// The next one in turn that may be taken.
    pub(super) fn next(&self, turn: &AtomicUsize, may: impl Fn(usize) -> bool) -> Option<usize> {
        let turn = turn.fetch_add(1, Ordering::Relaxed);
        match &self.turns {
            Some(turns) => walk(turns, turn % turns.len(), self.count, may),
            None => first_from(turn.checked_rem(self.count)?, self.count, may),
        }
    }
}

/// The smallest weights in the same ratio, or nearly so where a round would be too long.
fn scaled_down(places: &[Place]) -> Vec<i64> {
    let weights = || places.iter().map(|place| u64::from(place.weight));
    let divisor = weights().fold(0, greatest_common_divisor).max(1);
    let sum = weights().sum::<u64>() / divisor;
    let count = places.len() as u64;
    let most = (MOST_WORK / count.max(1)).clamp(count, MOST_TURNS.max(count));
    let scale = |weight: u64| match weight / divisor {
        weight if sum <= most => weight,
        weight => (weight * most / sum).max(1),
    };
    // At most 65,535.
    weights().map(|weight| scale(weight) as i64).collect()
}

fn greatest_common_divisor(one: u64, two: u64) -> u64 {
    let (mut one, mut two) = (one, two);
    while two != 0 {
        (one, two) = (two, one % two);
    }
    one
}

/// Each position as often as its weight says, spread out: each turn everybody gains his weight, the richest one
/// goes, and pays the sum (nginx's smooth weighted round robin).
fn smooth(weights: &[i64]) -> Vec<u32> {
    let sum: i64 = weights.iter().sum();
    let mut credit = vec![0; weights.len()];
    let turn = |_| {
        let mut richest = 0;
        for (index, weight) in weights.iter().enumerate() {
            credit[index] += weight;
            if credit[index] > credit[richest] {
                richest = index;
            }
        }
        credit[richest] -= sum;
        richest as u32
    };
    (0..sum).map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_spread_out() {
        assert_eq!(smooth(&[5, 1, 1]), [0, 0, 1, 0, 2, 0, 0]);
        assert_eq!(smooth(&[1, 2]), [1, 0, 1]);
    }

    #[test]
    fn a_round_is_as_short_as_it_can_be_and_bounded() {
        let places = |weights: &[u16]| -> Vec<Place> {
            let place = |&weight| Place { hash: 0, weight };
            weights.iter().map(place).collect()
        };
        assert_eq!(scaled_down(&places(&[10, 20, 30])), [1, 2, 3]);
        assert_eq!(scaled_down(&places(&[7, 1000])), [7, 1000]);
        let mut many = vec![1000; 2000];
        many[0] = 1;
        let scaled: Vec<i64> = scaled_down(&places(&many));
        assert_eq!(scaled[0], 1);
        assert!(scaled[1] > 1 && scaled.iter().sum::<i64>() as u64 * 2000 <= MOST_WORK);
    }
}
