//! The retry budget of a pool: how many retries may be under way at a time.
//!
//! Retries multiply what a pool in trouble gets just when it can bear it least. So those that are under way
//! are counted, over all workers, and bounded by a share of the requests in flight, as Envoy
//! (`retry_budget`) and linkerd do it. The counter outlives reloads; the share is that of whoever asks.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::config::{BUDGET_WHOLE, Retries};
use crate::metrics::shard::Padded;

/// The retries of one pool that are under way.
#[derive(Debug, Default)]
pub struct Budget {
    active: Padded<AtomicUsize>,
}

/// A retry that is under way; dropping it says that its response header has come or that it has failed.
#[derive(Debug)]
pub struct Retry {
    budget: Arc<Budget>,
}

impl Budget {
    /// Begins a retry of a pool with these rules; `None` when the budget is spent. `in_flight` counts the
    /// pool's requests now, and is only asked where that decides.
    pub(super) fn begin(
        self: &Arc<Self>,
        rules: &Retries,
        in_flight: impl FnOnce() -> usize,
    ) -> Option<Retry> {
        let active = &self.active.0;
        let most = if active.load(Ordering::Relaxed) < rules.min_retries {
            rules.min_retries
        } else {
            rules.min_retries.max(share(in_flight(), rules.budget))
        };
        let begun = active.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
            (now < most).then_some(now + 1)
        });
        begun.ok().map(|_| Retry {
            budget: self.clone(),
        })
    }

    /// Retries that are under way now.
    pub fn active(&self) -> usize {
        self.active.0.load(Ordering::Relaxed)
    }
}

/// `millionths` of a number, rounded down.
fn share(of: usize, millionths: u32) -> usize {
    let share = of as u128 * u128::from(millionths) / u128::from(BUDGET_WHOLE);
    // Not more than `of`, since there are at most a million millionths.
    share as usize
}

impl Drop for Retry {
    fn drop(&mut self) {
        self.budget.active.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(budget: f64, min_retries: usize) -> Retries {
        Retries {
            budget: (budget * f64::from(BUDGET_WHOLE)) as u32,
            min_retries,
            ..Retries::default()
        }
    }

    fn begin_all(budget: &Arc<Budget>, rules: &Retries, in_flight: usize) -> Vec<Retry> {
        std::iter::from_fn(|| budget.begin(rules, || in_flight)).collect()
    }

    #[test]
    fn the_share_counts_and_a_few_always_may() {
        for (share, least, in_flight, most) in [
            (0.2, 3, 0, 3),
            (0.2, 3, 15, 3),
            (0.2, 3, 19, 3),
            (0.2, 3, 20, 4),
            (0.2, 3, 1000, 200),
            (0.0, 0, 1000, 0),
            (0.0, 2, 1000, 2),
            (1.0, 0, 7, 7),
        ] {
            let budget = Arc::default();
            let held = begin_all(&budget, &rules(share, least), in_flight);
            assert_eq!(held.len(), most, "{share} of {in_flight}, {least} at least");
            drop(held);
            assert_eq!(budget.active(), 0);
        }
    }

    #[test]
    fn other_rules_count_what_is_under_way() {
        let budget = Arc::default();
        let held = begin_all(&budget, &rules(0.5, 0), 20);
        assert_eq!(held.len(), 10);
        assert!(budget.begin(&rules(0.2, 3), || 20).is_none());
        assert_eq!(begin_all(&budget, &rules(0.6, 0), 20).len(), 2);
        drop(held);
        assert!(budget.begin(&rules(0.2, 3), || 20).is_some());
    }

    /// Whatever the interleaving: no more than the rules say are under way.
    #[test]
    fn threads_never_exceed_it() {
        const MOST: usize = 5;
        let budget: Arc<Budget> = Arc::default();
        let high = AtomicUsize::new(0);
        let holding = AtomicUsize::new(0);
        let refused = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let Some(retry) = budget.begin(&rules(0.25, 2), || 20) else {
                            refused.fetch_add(1, Ordering::Relaxed);
                            std::thread::yield_now();
                            continue;
                        };
                        let now = holding.fetch_add(1, Ordering::SeqCst) + 1;
                        high.fetch_max(now, Ordering::SeqCst);
                        std::thread::yield_now();
                        holding.fetch_sub(1, Ordering::SeqCst);
                        drop(retry);
                    }
                });
            }
        });
        let high = high.into_inner();
        assert!((1..=MOST).contains(&high), "{high} at a time");
        assert_eq!(budget.active(), 0);
    }
}
