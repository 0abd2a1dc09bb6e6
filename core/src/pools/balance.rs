//! Which of several endpoints a request gets. Positions only: nothing here knows what they are.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The less loaded of two random ones among `count`, without the one at `avoid` when there is
/// another. `count` is not 0.
///
/// Looking at two spreads almost as well as looking at all, and unlike "the least loaded of all" it
/// doesn't send every request of a burst to the same endpoint (Mitzenmacher, "The Power of Two
/// Choices in Randomized Load Balancing", 2001).
pub(super) fn least_requests(
    count: usize,
    avoid: Option<usize>,
    load: impl Fn(usize) -> usize,
) -> usize {
    let avoid = avoid.filter(|_| count > 1);
    let choices = count - usize::from(avoid.is_some());
    let real = |choice: usize| match avoid {
        Some(avoided) if choice >= avoided => choice + 1,
        _ => choice,
    };
    if choices == 1 {
        return real(0);
    }
    let one = fastrand::usize(..choices);
    let two = fastrand::usize(..choices - 1);
    let (one, two) = (real(one), real(two + usize::from(two >= one)));
    // `one` is random, so on a tie neither place in the list is preferred.
    if load(two) < load(one) { two } else { one }
}

/// The next one in turn among `count`; the one after it when that is the one at `avoid`. `count`
/// is not 0.
pub(super) fn round_robin(count: usize, avoid: Option<usize>, turn: &AtomicUsize) -> usize {
    let next = turn.fetch_add(1, Ordering::Relaxed) % count;
    if avoid == Some(next) {
        (next + 1) % count
    } else {
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_less_loaded_of_two_wins() {
        for _ in 0..200 {
            assert_eq!(least_requests(2, None, |i| [3, 2][i]), 1);
        }
        // The most loaded of three loses every comparison.
        for _ in 0..200 {
            assert_ne!(least_requests(3, None, |i| [1, 9, 2][i]), 1);
        }
    }

    #[test]
    fn equal_loads_are_spread_over_all() {
        let mut counts = [0; 4];
        for _ in 0..4000 {
            counts[least_requests(4, None, |_| 0)] += 1;
        }
        // Binomial with mean 1000 and deviation 27: 300 is beyond chance.
        assert!(
            counts.iter().all(|n: &i32| (n - 1000).abs() < 300),
            "{counts:?}"
        );
    }

    #[test]
    fn the_avoided_one_is_avoided_unless_it_is_alone() {
        for avoided in 0..3 {
            let mut seen = [false; 3];
            for _ in 0..200 {
                seen[least_requests(3, Some(avoided), |_| 0)] = true;
            }
            assert_eq!(
                seen.map(|seen| !seen).iter().position(|not| *not),
                Some(avoided)
            );
            assert_eq!(seen.iter().filter(|seen| **seen).count(), 2);
        }
        assert_eq!(least_requests(2, Some(0), |i| [0, 100][i]), 1);
        assert_eq!(least_requests(1, Some(0), |_| 0), 0);

        let turn = AtomicUsize::new(0);
        assert_eq!(round_robin(3, Some(0), &turn), 1);
        assert_eq!(round_robin(1, Some(0), &turn), 0);
    }

    #[test]
    fn round_robin_goes_round_and_survives_the_end_of_the_counter() {
        let turn = AtomicUsize::new(0);
        let order: Vec<_> = (0..6).map(|_| round_robin(3, None, &turn)).collect();
        assert_eq!(order, [0, 1, 2, 0, 1, 2]);
        let turn = AtomicUsize::new(usize::MAX);
        assert!(round_robin(3, None, &turn) < 3);
        assert_eq!(round_robin(3, None, &turn), 0);
    }
}
