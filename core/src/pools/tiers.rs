//! The endpoints of a pool at one moment, in the order in which they are preferred. Immutable: made by
//! [`Pool::rebuild`](super::Pool::rebuild), only looked at by requests.

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use super::balance::{Ask, Order, Place};
use super::endpoint::{Endpoint, Picked};
use super::pool::Unavailable;
use super::wish::{Wanted, Wish};
use crate::config::{PoolConfig, TargetTraits};

/// The least share of a target that begins slowly: with less, nothing would ever warm it up.
const LEAST_SHARE: f64 = 0.1;

/// An endpoint, and what it is in this pool at this moment.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) traits: TargetTraits,
    /// Whether requests may have it.
    pub(super) usable: bool,
    /// Since when it gets a growing share.
    pub(super) since: Option<Instant>,
}

/// What a pool has now.
#[derive(Debug)]
pub(super) struct Members {
    /// Sorted by address.
    pub(super) list: Box<[Member]>,
    /// The most wanted one first.
    tiers: Box<[Tier]>,
    /// Whether there is a tier that is not of backups.
    has_primaries: bool,
    /// What it means when no endpoint can be had.
    pub(super) reason: Unavailable,
    /// Whether all names had been answered once, so that whoever comes from now on comes later than the others.
    pub(super) settled: bool,
    /// So many are out that all are used.
    pub(super) panic: bool,
}

/// Endpoints of which none is preferred to the others.
#[derive(Debug)]
struct Tier {
    slots: Box<[Slot]>,
    order: Order,
    ramp: Option<Ramp>,
}

#[derive(Debug)]
struct Slot {
    endpoint: Arc<Endpoint>,
    since: Option<Instant>,
}

/// Some endpoints of a tier get a growing share, until `end`.
#[derive(Debug, Clone, Copy)]
struct Ramp {
    length: Duration,
    end: Instant,
}

impl Members {
    /// Members that nobody can have yet, so that their state is there for the first rebuild.
    pub(super) fn carried(list: Box<[Member]>) -> Self {
        let settled = !list.is_empty();
        Self {
            list,
            tiers: Box::default(),
            has_primaries: false,
            reason: Unavailable::Unresolved,
            settled,
            panic: false,
        }
    }

    pub(super) fn new(
        config: &PoolConfig,
        list: Box<[Member]>,
        reason: Unavailable,
        settled: bool,
        panic: bool,
    ) -> Self {
        let usable = || list.iter().filter(|member| member.usable);
        // A weight of 0 gets nothing new.
        let active = || usable().filter(|member| member.traits.weight > 0);
        let rank = |member: &Member| config.rank(&member.traits);
        let mut ranks: Vec<u8> = active().map(rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let tier = |wanted| Tier::new(config, active().filter(|member| rank(member) == wanted));
        let has_primaries = active().any(|member| !member.traits.backup);
        let tiers = ranks.into_iter().map(tier).collect();
        let reason = match usable().next() {
            Some(_) => Unavailable::Drained,
            None if !list.is_empty() => Unavailable::Unhealthy,
            None => reason,
        };
        Self {
            tiers,
            has_primaries,
            reason,
            settled,
            panic,
            list,
        }
    }

    /// Whether requests that wish for nothing get an endpoint.
    pub(super) fn can_balance(&self) -> bool {
        !self.tiers.is_empty()
    }

    #[inline]
    pub(super) fn select(
        &self,
        wish: &Wish<'_>,
        turn: &AtomicUsize,
    ) -> Result<Picked, Unavailable> {
        if let Some(wanted) = &wish.target {
            let found = self.list.iter().find(|member| wanted.is(&member.endpoint));
            if let Some(member) = found
                && self.grants(member, wanted)
                && (wish.only || !wish.avoids(&member.endpoint))
            {
                return Ok(Picked::new(&member.endpoint));
            }
            if wish.only {
                return Err(Unavailable::NotThere);
            }
        }
        let first = self.tiers.first().ok_or(self.reason)?;
        let slot = if wish.avoid.is_empty() {
            first.choose(wish.key, turn, |_| true)
        } else {
            let untried = |slot: &Slot| !wish.avoids(&slot.endpoint);
            let mut tiers = self.tiers.iter();
            let other = tiers.find_map(|tier| tier.choose(wish.key, turn, untried));
            // One that failed is better than none.
            other.or_else(|| first.choose(wish.key, turn, |_| true))
        };
        let slot = slot.ok_or(self.reason)?;
        Ok(Picked::new(&slot.endpoint))
    }
}

impl Members {
    /// An endpoint that fewer than `most` requests hold, of the tier that is preferred: a target that is busy is no
    /// reason to leave the zone, or for a backup.
    pub(super) fn any_with_room(&self, most: usize) -> Option<Picked> {
        let slots = &self.tiers.first()?.slots;
        let (before, from) = slots.split_at(fastrand::usize(..=slots.len()));
        let mut all = from.iter().chain(before);
        all.find_map(|slot| Picked::within(&slot.endpoint, most))
    }

    /// Whether a request that wants this member may have it. Whoever was sent to a backup by a cookie goes back when it
    /// isn't needed any more; a script that names one means it.
    fn grants(&self, member: &Member, wanted: &Wanted<'_>) -> bool {
        let spare = member.traits.backup && self.has_primaries;
        member.usable && (!spare || matches!(wanted, Wanted::Address(_)))
    }
}

impl Tier {
    fn new<'a>(config: &PoolConfig, members: impl Iterator<Item = &'a Member> + Clone) -> Self {
        let slot = |member: &Member| Slot {
            endpoint: member.endpoint.clone(),
            since: member.since,
        };
        let place = |member: &Member| Place {
            hash: member.endpoint.hash(),
            weight: member.traits.weight,
        };
        let last = members.clone().filter_map(|member| member.since).max();
        let ramp = last.zip(config.slow_start).map(|(last, length)| Ramp {
            length,
            end: last + length,
        });
        Self {
            order: Order::new(
                config.balance,
                config.load_bound,
                members.clone().map(place),
            ),
            slots: members.map(slot).collect(),
            ramp,
        }
    }

    #[inline]
    fn choose(
        &self,
        key: Option<u64>,
        turn: &AtomicUsize,
        may: impl Fn(&Slot) -> bool,
    ) -> Option<&Slot> {
        let slots = &self.slots;
        let load = |index: usize| slots[index].endpoint.in_flight();
        // Most policies don't ask for the time.
        let asked = OnceCell::new();
        let cost = |index: usize| {
            let now = *asked.get_or_init(Instant::now);
            slots[index].endpoint.cost(now)
        };
        let chosen = self.order.choose(&Ask {
            key,
            turn,
            may: |index: usize| may(&slots[index]),
            load,
            cost,
        })?;
        let Some(ramp) = &self.ramp else {
            return slots.get(chosen);
        };
        let now = Instant::now();
        if now >= ramp.end || fastrand::f64() < ramp.share(&slots[chosen], now) {
            return slots.get(chosen);
        }
        // It goes to one of those that have their full share. Not to the next in turn: whose turn is left out must
        // not come again with the next request.
        let turn = AtomicUsize::new(fastrand::usize(..));
        let other = self.order.choose(&Ask {
            key,
            turn: &turn,
            may: |index: usize| may(&slots[index]) && ramp.share(&slots[index], now) >= 1.0,
            load,
            cost,
        });
        slots.get(other.unwrap_or(chosen))
    }
}

impl Ramp {
    /// Which part of its share an endpoint gets; 1 is all of it.
    fn share(&self, slot: &Slot, now: Instant) -> f64 {
        let Some(since) = slot.since else {
            return 1.0;
        };
        let passed = now.saturating_duration_since(since).as_secs_f64();
        (passed / self.length.as_secs_f64()).clamp(LEAST_SHARE, 1.0)
    }
}
