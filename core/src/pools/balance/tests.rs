//! What each policy promises, over random weights and endpoints.

#![allow(clippy::unwrap_used)]

use edgewright_script::stable_hash::stable_hash;
use proptest::prelude::*;

use super::*;

const ALL: [Balance; 6] = [
    Balance::LeastRequests,
    Balance::PeakEwma,
    Balance::Random,
    Balance::RoundRobin,
    Balance::Hash,
    Balance::RingHash,
];

const HASHES: [Balance; 2] = [Balance::Hash, Balance::RingHash];

fn place(number: usize, weight: u16) -> Place {
    Place {
        hash: stable_hash(format!("10.0.{}.{}:8080", number / 250, number % 250).as_bytes()),
        weight,
    }
}

fn places(weights: &[u16]) -> Vec<Place> {
    let numbered = weights.iter().enumerate();
    numbered
        .map(|(number, &weight)| place(number, weight))
        .collect()
}

fn order(balance: Balance, weights: &[u16]) -> Order {
    Order::new(balance, None, places(weights))
}

fn key(number: usize) -> u64 {
    stable_hash(&number.to_le_bytes())
}

/// The choice for a key where nobody is busy.
fn owner(order: &Order, key: u64) -> usize {
    let turn = AtomicUsize::new(0);
    let ask = Ask {
        key: Some(key),
        turn: &turn,
        may: |_| true,
        load: |_| 0,
        cost: |_| 0.0,
    };
    order.choose(&ask).unwrap()
}

/// How often each is chosen, of `times`, without a key.
fn counts(order: &Order, count: usize, times: usize, may: impl Fn(usize) -> bool) -> Vec<usize> {
    let turn = AtomicUsize::new(0);
    let ask = Ask {
        key: None,
        turn: &turn,
        may,
        load: |_| 0,
        cost: |_| 0.0,
    };
    let mut counts = vec![0; count];
    for _ in 0..times {
        counts[order.choose(&ask).unwrap()] += 1;
    }
    counts
}

/// Whether counts are as weights say: six deviations of a binomial, and `slack` of the mean for what a table rounds.
fn assert_shares(counts: &[usize], weights: &[u16], slack: f64, what: &str) {
    let times: usize = counts.iter().sum();
    let sum: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
    for (count, &weight) in counts.iter().zip(weights) {
        let share = f64::from(weight) / sum;
        let mean = share * times as f64;
        let deviation = (mean * (1.0 - share)).sqrt();
        let off = (*count as f64 - mean).abs();
        assert!(
            off <= 6.0 * deviation + slack * mean + 1.0,
            "{what}: {counts:?} of {weights:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn shares_are_as_weights_say(weights in prop::collection::vec(1_u16..=20, 1..12)) {
        for balance in ALL {
            let order = order(balance, &weights);
            let slack = if balance == Balance::RingHash { 0.35 } else { 0.02 };
            let counts = counts(&order, weights.len(), 6000, |_| true);
            assert_shares(&counts, &weights, slack, &format!("{balance:?}"));
        }
    }

    /// Exactly, over whole rounds.
    #[test]
    fn a_round_robin_is_exact(weights in prop::collection::vec(1_u16..=1000, 1..8)) {
        let order = order(Balance::RoundRobin, &weights);
        let sum: usize = weights.iter().map(|&weight| usize::from(weight)).sum();
        let counts = counts(&order, weights.len(), sum, |_| true);
        let wanted: Vec<usize> = weights.iter().map(|&weight| weight.into()).collect();
        prop_assert_eq!(counts, wanted);
    }

    #[test]
    fn nobody_is_chosen_who_may_not_be(
        weights in prop::collection::vec(1_u16..=1000, 1..40),
        allowed in prop::collection::vec(any::<bool>(), 40),
        key in any::<Option<u64>>(),
        busy in 0_usize..1000,
    ) {
        let turn = AtomicUsize::new(busy);
        let somebody = allowed[..weights.len()].contains(&true);
        for balance in ALL {
            for bound in [None, Some(LoadBound::from_hundredths(125))] {
                let order = Order::new(balance, bound, places(&weights));
                let ask = Ask {
                    key,
                    turn: &turn,
                    may: |index: usize| allowed[index],
                    load: |index| index * busy,
                    cost: |index| (index * busy) as f64,
                };
                let chosen = order.choose(&ask);
                prop_assert_eq!(chosen.is_some(), somebody);
                prop_assert!(chosen.is_none_or(|index| allowed[index]));
            }
        }
    }

    /// When one of n leaves, its own keys move and hardly any others; when it comes back, all is as it was.
    #[test]
    fn keys_stay_when_others_leave(count in 2_usize..40, gone in 0_usize..40, weight in 1_u16..=4) {
        let gone = gone % count;
        let all: Vec<Place> = (0..count).map(|number| place(number, weight)).collect();
        let left = all.iter().enumerate().filter(|(index, _)| *index != gone);
        let left: Vec<Place> = left.map(|(_, place)| *place).collect();
        for balance in HASHES {
            let before = Order::new(balance, None, all.clone());
            let after = Order::new(balance, None, left.clone());
            let keys = 4000;
            let mut own = 0;
            let mut moved = 0;
            for number in 0..keys {
                let (one, two) = (owner(&before, key(number)), owner(&after, key(number)));
                if one == gone {
                    own += 1;
                } else if one != two + usize::from(two >= gone) {
                    moved += 1;
                }
            }
            // A ring moves nothing else; the Maglev paper measures some percent (section 5.3).
            let most = if balance == Balance::RingHash { 0 } else { keys / 20 };
            prop_assert!(moved <= most, "{:?}: {} of {} moved without need", balance, moved, keys);
            let fair = keys as f64 / count as f64;
            let slack = if balance == Balance::RingHash { 0.5 } else { 0.1 };
            prop_assert!((own as f64 - fair).abs() <= slack * fair + 6.0 * fair.sqrt());
        }
    }

    /// No endpoint has more than the bound times the mean, and keys that find room stay where they belong.
    #[test]
    fn the_load_is_bounded(
        weights in prop::collection::vec(1_u16..=5, 2..20),
        hundredths in 100_u32..300,
        requests in 1_usize..200,
        keys in 1_usize..5,
    ) {
        let turn = AtomicUsize::new(0);
        let sum: usize = weights.iter().map(|&weight| usize::from(weight)).sum();
        for balance in HASHES {
            let bound = LoadBound::from_hundredths(hundredths);
            let order = Order::new(balance, Some(bound), places(&weights));
            let mut loads = vec![0_usize; weights.len()];
            for number in 0..requests {
                // Few keys, so that without a bound few endpoints would get all.
                let key = key(number % keys);
                let chosen = order.choose(&Ask {
                    key: Some(key),
                    turn: &turn,
                    may: |_| true,
                    load: |index: usize| loads[index],
                    cost: |_| 0.0,
                });
                let chosen = chosen.unwrap();
                let own = owner(&order, key);
                loads[chosen] += 1;
                let most = |index: usize| {
                    let share = (number + 1) * usize::from(weights[index]) * hundredths as usize;
                    share.div_ceil(sum * 100)
                };
                prop_assert!(loads[chosen] <= most(chosen), "{:?}: {:?}", balance, loads);
                prop_assert!(chosen == own || loads[own] + 1 > most(own));
            }
        }
    }

    #[test]
    fn a_scripts_key_is_consistent_in_any_pool(weights in prop::collection::vec(1_u16..=20, 2..12)) {
        let all = order(Balance::LeastRequests, &weights);
        let mut counts = vec![0; weights.len()];
        let turn = AtomicUsize::new(0);
        for number in 0..4000 {
            let first = owner(&all, key(number));
            counts[first] += 1;
            prop_assert_eq!(owner(&all, key(number)), first);
            // Without another one it stays.
            let gone = (first + 1) % weights.len();
            let without = all.choose(&Ask {
                key: Some(key(number)),
                turn: &turn,
                may: |index| index != gone,
                load: |_| 0,
                cost: |_| 0.0,
            });
            prop_assert_eq!(without, Some(first));
        }
        assert_shares(&counts, &weights, 0.02, "rendezvous");
    }
}

#[test]
fn the_less_loaded_of_two_wins() {
    let turn = AtomicUsize::new(0);
    let choose = |weights: &[u16], loads: &[usize]| {
        let ask = Ask {
            key: None,
            turn: &turn,
            may: |_| true,
            load: |index: usize| loads[index],
            cost: |_| 0.0,
        };
        order(Balance::LeastRequests, weights).choose(&ask).unwrap()
    };
    for _ in 0..200 {
        assert_eq!(choose(&[1, 1], &[3, 2]), 1);
        // The most loaded of three loses every comparison.
        assert_ne!(choose(&[1, 1, 1], &[1, 9, 2]), 1);
        // Three times the weight may have three times the load.
        assert_eq!(choose(&[3, 1], &[2, 1]), 0);
        assert_eq!(choose(&[3, 1], &[4, 0]), 1);
    }
}

/// With as many requests in flight as there are, each has its share of them.
#[test]
fn least_requests_keeps_the_ratio_under_load() {
    let weights = [6, 3, 1];
    let order = order(Balance::LeastRequests, &weights);
    let turn = AtomicUsize::new(0);
    let mut loads = [0_usize; 3];
    for _ in 0..1000 {
        let ask = Ask {
            key: None,
            turn: &turn,
            may: |_| true,
            load: |index: usize| loads[index],
            cost: |_| 0.0,
        };
        let chosen = order.choose(&ask).unwrap();
        loads[chosen] += 1;
    }
    for (load, wanted) in loads.iter().zip([600_usize, 300, 100]) {
        assert!(load.abs_diff(wanted) <= 40, "{loads:?}");
    }
}

/// Who is dearest is never the cheaper of two; the others share what he would have.
#[test]
fn the_dearest_gets_nothing() {
    let weights = [1, 1, 1, 1];
    let choose = |costs: [f64; 4]| {
        let order = order(Balance::PeakEwma, &weights);
        let turn = AtomicUsize::new(0);
        let ask = Ask {
            key: None,
            turn: &turn,
            may: |_| true,
            load: |_| 0,
            cost: |index: usize| costs[index],
        };
        let mut counts = [0; 4];
        for _ in 0..6000 {
            counts[order.choose(&ask).unwrap()] += 1;
        }
        counts
    };
    let counts = choose([5.0, 100.0, 5.0, 5.0]);
    assert_eq!(counts[1], 0);
    assert!(
        counts.iter().filter(|&&count| count > 1700).count() == 3,
        "{counts:?}"
    );
    // In three of six pairs there is the cheapest one, in two of the others the second.
    assert_shares(
        &choose([1.0, 2.0, 3.0, 4.0])[..3],
        &[3, 2, 1],
        0.02,
        "by cost",
    );
}

#[test]
fn a_weight_makes_cheaper() {
    let order = order(Balance::PeakEwma, &[3, 1]);
    let turn = AtomicUsize::new(0);
    for (costs, wanted) in [([20.0, 10.0], 0), ([40.0, 10.0], 1)] {
        let ask = Ask {
            key: None,
            turn: &turn,
            may: |_| true,
            load: |_| 0,
            cost: |index: usize| costs[index],
        };
        assert!((0..100).all(|_| order.choose(&ask) == Some(wanted)));
    }
}

#[test]
fn the_one_that_may_be_taken_is_found_among_many() {
    let weights = vec![1; 1000];
    for balance in ALL {
        let order = order(balance, &weights);
        assert_eq!(
            counts(&order, 1000, 1, |index| index == 999)[999],
            1,
            "{balance:?}"
        );
    }
}

#[test]
fn no_endpoint_is_no_choice() {
    let turn = AtomicUsize::new(0);
    for balance in ALL {
        let ask = Ask {
            key: None,
            turn: &turn,
            may: |_| true,
            load: |_| 0,
            cost: |_| 0.0,
        };
        assert_eq!(order(balance, &[]).choose(&ask), None);
    }
}

#[test]
fn round_robin_goes_round_and_survives_the_end_of_the_counter() {
    let order = order(Balance::RoundRobin, &[1, 1, 1]);
    let turn = AtomicUsize::new(usize::MAX);
    let next = || {
        let ask = Ask {
            key: None,
            turn: &turn,
            may: |_| true,
            load: |_| 0,
            cost: |_| 0.0,
        };
        order.choose(&ask).unwrap()
    };
    assert!(next() < 3);
    let turns: Vec<usize> = (0..6).map(|_| next()).collect();
    assert_eq!(turns, [0, 1, 2, 0, 1, 2]);
}

/// Replicas have nothing in common but the addresses and weights; keys go where they went in earlier versions.
#[test]
fn hashes_depend_on_addresses_and_weights_only() {
    let owners = |balance| {
        let order = order(balance, &[1, 2, 1, 1]);
        (0..12)
            .map(|number| owner(&order, key(number)))
            .collect::<Vec<_>>()
    };
    assert_eq!(owners(Balance::Hash), MAGLEV_OWNERS);
    assert_eq!(owners(Balance::RingHash), RING_OWNERS);
}

/// What a second implementation gives, written for this.
const MAGLEV_OWNERS: [usize; 12] = [1, 1, 3, 3, 1, 3, 1, 3, 0, 1, 0, 1];
const RING_OWNERS: [usize; 12] = [1, 3, 1, 1, 1, 1, 1, 2, 0, 1, 3, 2];
