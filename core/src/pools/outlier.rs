//! Passive ejection: endpoints on which requests fail, or which are far slower than the others, are left
//! out for a while. Requests only count ([`Standing::note`]); what follows from the counts is decided here, on
//! the thread `health`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::endpoint::Endpoint;
use super::pool::Pool;
use super::tiers;
use super::usable::{Member, cap, plan};
use crate::config::{Initial, PoolConfig, Thousandths};
use crate::metrics::EjectionReason;

/// The fewest endpoints whose latencies are compared, as in Envoy: of fewer there is no telling which is odd.
const LEAST_COMPARED: usize = 5;

/// The fewest answers of an endpoint that make a mean.
const LEAST_ANSWERS: u64 = 100;

/// What a look at a pool has led to.
#[derive(Debug, Default)]
pub(crate) struct Review {
    /// What has changed, in words.
    pub(crate) events: Vec<Event>,
    /// When the next ejection ends.
    pub(crate) next: Option<Instant>,
}

/// Something that happened to an endpoint.
#[derive(Debug)]
pub(crate) enum Event {
    /// It gets no requests for this time.
    Ejected(Arc<Endpoint>, EjectionReason, Duration),
    /// It should be ejected, and too many are already.
    Spared(Arc<Endpoint>, EjectionReason),
    /// Its time is over.
    Returned(Arc<Endpoint>),
}

impl Pool {
    /// Ejects what has asked for it and brings back whose time is over. `compare_latencies`: an interval is
    /// over. For the thread `health`: one call at a time.
    pub(crate) fn review(&self, now: Instant, compare_latencies: bool) -> Review {
        let limits = &self.config().ejection;
        let all = self.endpoints();
        if compare_latencies {
            trip_slow_ones(&all, limits.latency_factor);
        }
        let mut review = Review::default();
        for endpoint in all.iter() {
            let standing = endpoint.standing();
            if standing.ejected_until().is_some_and(|until| until <= now) {
                standing.readmit(now);
                review.events.push(Event::Returned(endpoint.clone()));
            }
        }
        let is_ejected = |endpoint: &&Arc<Endpoint>| endpoint.standing().ejected_until().is_some();
        let mut room =
            cap(all.len(), limits.max_share).saturating_sub(all.iter().filter(is_ejected).count());
        for endpoint in all.iter() {
            let standing = endpoint.standing();
            let Some(reason) = standing.take_tripped() else {
                continue;
            };
            if is_ejected(&endpoint) {
                // Of requests that were under way.
                continue;
            }
            if room == 0 {
                review.events.push(Event::Spared(endpoint.clone(), reason));
                continue;
            }
            room -= 1;
            let time = standing.eject(reason, limits, now);
            review
                .events
                .push(Event::Ejected(endpoint.clone(), reason, time));
        }
        review.next = all
            .iter()
            .filter_map(|endpoint| endpoint.standing().ejected_until())
            .min();
        review
    }
}

/// Says of each endpoint whether it is used from now on; true when that is so of all, although too many
/// are out. Ejections beyond the cap end.
pub(super) fn judge(all: &mut [tiers::Member], config: &PoolConfig, now: Instant) -> bool {
    let is_checked = config.health.is_some();
    let waits = config
        .health
        .as_ref()
        .is_some_and(|check| check.initial == Initial::Unhealthy);
    let members: Vec<Member> = all
        .iter()
        .map(|member| {
            let standing = member.endpoint.standing();
            // What an earlier configuration's checks have said doesn't count without checks.
            let verdict = standing.verdict().filter(|_| is_checked);
            Member {
                backup: member.traits.backup,
                pending: waits && verdict.is_none(),
                unhealthy: verdict == Some(false),
                ejected_until: standing.ejected_until(),
            }
        })
        .collect();
    let plan = plan(&members, config.ejection.max_share);
    for index in plan.released {
        all[index].endpoint.standing().readmit(now);
    }
    for (member, usable) in all.iter_mut().zip(plan.usable) {
        member.usable = usable;
        member.endpoint.set_usable(usable);
    }
    plan.panic
}

fn trip_slow_ones(all: &[Arc<Endpoint>], factor: Thousandths) {
    let means: Vec<Option<f64>> = all
        .iter()
        .map(|endpoint| {
            let (micros, answers) = endpoint.standing().take_latency();
            (answers >= LEAST_ANSWERS).then(|| micros as f64 / answers as f64)
        })
        .collect();
    for index in slow_ones(&means, factor) {
        all[index].standing().trip(EjectionReason::Latency);
    }
}

/// The positions of those whose mean is more than `factor` times the median of all that have one.
fn slow_ones(means: &[Option<f64>], factor: Thousandths) -> Vec<usize> {
    let mut sorted: Vec<f64> = means.iter().flatten().copied().collect();
    if factor == Thousandths::ZERO || sorted.len() < LEAST_COMPARED {
        return Vec::new();
    }
    sorted.sort_unstable_by(f64::total_cmp);
    let (lower, upper) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    let most = (lower + upper) / 2.0 * factor.factor();
    let all = means.iter().enumerate();
    all.filter(|(_, mean)| mean.is_some_and(|mean| mean > most))
        .map(|(index, _)| index)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_is_what_is_far_above_the_median_of_enough() {
        let triple = Thousandths(3000);
        let means = |values: &[f64]| values.iter().map(|v| Some(*v)).collect::<Vec<_>>();
        let five = means(&[10.0, 11.0, 9.0, 33.1, 12.0]);
        assert_eq!(slow_ones(&five, triple), [3]);
        assert_eq!(slow_ones(&five, Thousandths(3100)), [0; 0]);
        assert_eq!(slow_ones(&five, Thousandths::ZERO), [0; 0]);
        // Four are too few; one without enough answers doesn't count as one of them.
        assert_eq!(slow_ones(&five[..4], triple), [0; 0]);
        let mut quiet = five.clone();
        quiet[0] = None;
        assert_eq!(slow_ones(&quiet, triple), [0; 0]);
        // The median of an even number lies between two.
        let six = means(&[10.0, 10.0, 10.0, 30.0, 30.0, 61.0]);
        assert_eq!(slow_ones(&six, triple), [5]);
        // All equally slow: nobody is odd.
        assert_eq!(slow_ones(&means(&[500.0; 8]), Thousandths(1100)), [0; 0]);
    }
}
