//! Which of several endpoints a request gets. Positions only: nothing here knows what they are.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Random tries for one that may be taken, before all are looked at.
const TRIES: usize = 8;

/// The less loaded of two random ones among `count` that may be taken. `None` when none of them may.
///
/// Looking at two spreads almost as well as looking at all, and unlike "the least loaded of all" it
/// doesn't send every request of a burst to the same endpoint (Mitzenmacher, "The Power of Two
/// Choices in Randomized Load Balancing", 2001).
pub(super) fn least_requests(
    count: usize,
    may: impl Fn(usize) -> bool,
    load: impl Fn(usize) -> usize,
) -> Option<usize> {
    let one = random(count, &may)?;
    let Some(two) = random(count, |index| index != one && may(index)) else {
        return Some(one);
    };
    // `one` is random, so on a tie neither place in the list is preferred.
    Some(if load(two) < load(one) { two } else { one })
}

/// A random one among `count` that may be taken.
fn random(count: usize, may: impl Fn(usize) -> bool) -> Option<usize> {
    if count == 0 {
        return None;
    }
    let tries = (0..TRIES).map(|_| fastrand::usize(..count));
    let found = { tries }.find(|&index| may(index));
    found.or_else(|| first_from(fastrand::usize(..count), count, may))
}

/// The next one in turn among `count` that may be taken.
pub(super) fn round_robin(
    count: usize,
    may: impl Fn(usize) -> bool,
    turn: &AtomicUsize,
) -> Option<usize> {
    if count == 0 {
        return None;
    }
    first_from(turn.fetch_add(1, Ordering::Relaxed) % count, count, may)
}

/// The first one from `start` on, going round once, that may be taken.
fn first_from(start: usize, count: usize, may: impl Fn(usize) -> bool) -> Option<usize> {
    (start..count).chain(0..start).find(|&index| may(index))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn any(_: usize) -> bool {
        true
    }

    #[test]
    fn the_less_loaded_of_two_wins() {
        for _ in 0..200 {
            assert_eq!(least_requests(2, any, |i| [3, 2][i]), Some(1));
        }
        // The most loaded of three loses every comparison.
        for _ in 0..200 {
            assert_ne!(least_requests(3, any, |i| [1, 9, 2][i]), Some(1));
        }
    }

    #[test]
    fn equal_loads_are_spread_over_all() {
        let mut counts = [0; 4];
        for _ in 0..4000 {
            counts[least_requests(4, any, |_| 0).unwrap()] += 1;
        }
        // Binomial with mean 1000 and deviation 27: 300 is beyond chance.
        assert!(
            counts.iter().all(|n: &i32| (n - 1000).abs() < 300),
            "{counts:?}"
        );
    }

    #[test]
    fn only_what_may_be_taken_is() {
        for avoided in 0..3 {
            let mut seen = [false; 3];
            for _ in 0..200 {
                seen[least_requests(3, |i| i != avoided, |_| 0).unwrap()] = true;
            }
            assert_eq!(
                seen.map(|seen| !seen).iter().position(|not| *not),
                Some(avoided)
            );
            assert_eq!(seen.iter().filter(|seen| **seen).count(), 2);
        }
        assert_eq!(least_requests(2, |i| i == 1, |i| [0, 100][i]), Some(1));
        assert_eq!(least_requests(1000, |i| i == 999, |_| 0), Some(999));
        assert_eq!(least_requests(3, |_| false, |_| 0), None);
        assert_eq!(least_requests(0, any, |_| 0), None);

        let turn = AtomicUsize::new(0);
        assert_eq!(round_robin(3, |i| i != 0, &turn), Some(1));
        assert_eq!(round_robin(3, |_| false, &turn), None);
        assert_eq!(round_robin(0, any, &turn), None);
    }

    #[test]
    fn round_robin_goes_round_and_survives_the_end_of_the_counter() {
        let turn = AtomicUsize::new(0);
        let order: Vec<_> = (0..6).map(|_| round_robin(3, any, &turn)).collect();
        assert_eq!(order, [0, 1, 2, 0, 1, 2].map(Some));
        let turn = AtomicUsize::new(usize::MAX);
        assert!(round_robin(3, any, &turn).unwrap() < 3);
        assert_eq!(round_robin(3, any, &turn), Some(0));
    }
}
