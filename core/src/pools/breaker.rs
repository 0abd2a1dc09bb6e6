//! The bounds of a pool on requests at a time, and the line before them.
//!
//! A request of a pool with `[limits]` holds a [`Place`] to its end. Where none is free, it waits in one line
//! over all workers, as long as there is room in that. Whoever stands first (it has the only permit of `turn`,
//! and tokio's semaphore is fair) waits until something is given back; nobody passes it meanwhile. A
//! semaphore with a permit for each place would not do: it can't shrink at a reload while places are taken, and
//! it knows nothing of the targets, of which one must have room too.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering, fence},
    },
};

use tokio::sync::{Notify, Semaphore};

use super::{
    endpoint::Picked,
    pool::{Pool, Unavailable},
};
use crate::config::PoolLimits;
use crate::metrics::shard::Padded;

/// How often a pool's way of balancing, which knows nothing of the bounds, is asked for a target before all
/// targets are looked at.
const CHOICES: usize = 3;

/// The places of one pool that are taken, and who waits for one. It outlives reloads; the bounds are those of
/// whoever asks.
#[derive(Debug)]
pub struct Breaker {
    taken: Padded<AtomicUsize>,
    waiting: AtomicUsize,
    turn: Semaphore,
    freed: Notify,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            taken: Padded::default(),
            waiting: AtomicUsize::new(0),
            turn: Semaphore::new(1),
            freed: Notify::new(),
        }
    }
}

/// A place in a pool that a request has got. Dropping it makes room for whoever waits first.
#[derive(Debug)]
pub struct Place {
    breaker: Arc<Breaker>,
}

/// Why a request gets no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    /// All places are taken, and nobody may wait.
    Full,
    /// As many wait as may.
    QueueFull,
    /// It has waited as long as one may.
    QueueTimeout,
}

impl Place {
    /// Whether it is one of this pool.
    pub fn is_of(&self, pool: &Pool) -> bool {
        Arc::ptr_eq(&self.breaker, pool.breaker())
    }

    /// Says that the request has left its target and keeps its place: somebody may wait for that target.
    pub fn left_target(&self) {
        self.breaker.wake();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.breaker.taken.0.fetch_sub(1, Ordering::Relaxed);
        self.breaker.wake();
    }
}

impl Breaker {
    /// Places that are taken now.
    pub fn taken(&self) -> usize {
        self.taken.0.load(Ordering::Relaxed)
    }

    /// Requests that wait for one now.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// A place, if fewer than `most` are taken.
    fn take(self: &Arc<Self>, most: Option<usize>) -> Option<Place> {
        let most = most.unwrap_or(usize::MAX);
        join(&self.taken.0, most).then(|| Place {
            breaker: self.clone(),
        })
    }

    /// Tells whoever waits first that something was given back.
    fn wake(&self) {
        // With the fence of who joins the line: either this sees that it waits, or it sees what was given back.
        fence(Ordering::SeqCst);
        if self.waiting() > 0 {
            self.freed.notify_one();
        }
    }

    /// Does `attempt`, which gives `None` while there is no room, now or when the turn has come.
    async fn admit<T>(
        &self,
        limits: &PoolLimits,
        may_wait: bool,
        mut attempt: impl FnMut() -> Option<T>,
    ) -> Result<T, Busy> {
        let may_wait = may_wait && limits.queue > 0;
        if !may_wait || self.waiting() == 0 {
            let done = attempt();
            // What it held for a moment may have been missed by somebody who has joined the line since.
            self.wake();
            match done {
                Some(done) => return Ok(done),
                None if !may_wait => return Err(Busy::Full),
                None => {}
            }
        }
        let _waiting = Waiting::begin(&self.waiting, limits.queue).ok_or(Busy::QueueFull)?;
        let in_turn = async {
            let _turn = self.turn.acquire().await;
            loop {
                let mut freed = pin!(self.freed.notified());
                // From here on nothing that is given back is missed.
                freed.as_mut().enable();
                if let Some(done) = attempt() {
                    return done;
                }
                freed.await;
            }
        };
        let done = tokio::time::timeout(limits.queue_timeout, in_turn).await;
        done.map_err(|_| Busy::QueueTimeout)
    }
}

/// Adds one to what is less than `most`.
fn join(count: &AtomicUsize, most: usize) -> bool {
    let add = |now| (now < most).then_some(now + 1);
    count
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
        .is_ok()
}

/// One who stands in the line; dropping it leaves the line.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(waiting: &'a AtomicUsize, most: usize) -> Option<Self> {
        let joined = join(waiting, most).then(|| Self(waiting));
        fence(Ordering::SeqCst);
        joined
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a request gets of a pool with bounds.
#[derive(Debug)]
pub struct Admitted {
    /// The target.
    pub picked: Picked,
    /// The place, unless the request had one. To be dropped after the target, since it says that both are free.
    pub place: Option<Place>,
}

impl Pool {
    /// Picks an endpoint within the bounds of `[limits]`, with `select` as often as that takes; waits for its turn
    /// where there is none and the pool has a queue. A request that `has_place` only needs a target; it doesn't
    /// wait, since those before it in the line may wait for its place. With `only`, nobody is taken whom `select` has not
    /// picked.
    ///
    /// # Errors
    /// When the pool is busy.
    pub async fn enter(
        &self,
        has_place: bool,
        only: bool,
        mut select: impl FnMut(&Pool) -> Result<Picked, Unavailable>,
    ) -> Result<Result<Admitted, Unavailable>, Busy> {
        let limits = &self.config().limits;
        let attempt = || {
            let picked = match self.with_room(limits.requests_per_target, only, &mut select) {
                Ok(picked) => picked?,
                // There is nothing to wait for.
                Err(unavailable) => return Some(Err(unavailable)),
            };
            // Last, since giving a place back wakes whoever waits, which may be this one.
            let place = match has_place {
                true => None,
                false => Some(self.breaker().take(limits.requests)?),
            };
            Some(Ok(Admitted { picked, place }))
        };
        self.breaker().admit(limits, !has_place, attempt).await
    }

    /// Picks an endpoint that fewer than `most` requests hold; `None` when there is none.
    fn with_room(
        &self,
        most: Option<usize>,
        only: bool,
        select: &mut impl FnMut(&Pool) -> Result<Picked, Unavailable>,
    ) -> Result<Option<Picked>, Unavailable> {
        let Some(most) = most else {
            return select(self).map(Some);
        };
        for _ in 0..CHOICES {
            let picked = select(self)?;
            if picked.in_flight() <= most {
                return Ok(Some(picked));
            }
        }
        match only {
            true => Ok(None),
            false => Ok(self.any_with_room(most)),
        }
    }
}
