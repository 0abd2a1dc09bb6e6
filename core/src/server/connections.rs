//! How many connections of clients there may be, and which of them give way.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

use super::spoken::{Carrier, Spoken};
use crate::metrics::{Limit, Metrics};

/// Memory that a connection is reckoned with, in bytes: its own state while a request is served, and that of the connection
/// to the upstream, 64 KiB of read buffer included. `make bench-pod` shows what it is.
const EACH: u64 = 96 * 1024;

/// Open files that are kept back for everything else.
const RESERVED: u64 = 256;

/// How long a request is looked for on a connection that is closed because the process ends.
const LAST_LOOK: Duration = Duration::from_millis(100);

/// How long a connection has for what comes before its first request, until it gives way: nobody is slower who means it.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often those are looked at that had something to do when a place was wanted.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// With fewer than these nothing could be served.
const LEAST: u64 = 64;

/// Connections that the process may have when nothing is configured: half of what the memory limit holds, and half of what is left of the open
/// files, as each request may take a client's connection and an upstream's.
#[must_use]
pub fn auto(open_files: u64, memory: Option<u64>) -> usize {
    let by_files = open_files.saturating_sub(RESERVED) / 2;
    let by_memory = memory.map_or(u64::MAX, |bytes| bytes / 2 / EACH);
    let most = by_files.min(by_memory).max(LEAST);
    usize::try_from(most)
        .unwrap_or(usize::MAX)
        .min(Semaphore::MAX_PERMITS)
}

/// The bound on the connections of clients of all workers.
#[derive(Debug)]
pub struct ConnectionLimit {
    most: usize,
    places: Arc<Semaphore>,
    pressure: Mutex<Pressure>,
    /// Of each worker.
    idle: Box<[Idle]>,
}

/// Connections that wait for a place, and those that have given way to them.
#[derive(Debug, Default)]
struct Pressure {
    waiting: usize,
    giving: usize,
}

/// One that waits; dropping it says that it does no more.
struct Waiting<'a>(&'a Mutex<Pressure>);

impl<'a> Waiting<'a> {
    fn begin(pressure: &'a Mutex<Pressure>) -> Self {
        lock(pressure).waiting += 1;
        Self(pressure)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut pressure = lock(self.0);
        pressure.waiting -= 1;
        pressure.giving = pressure.giving.saturating_sub(1);
    }
}

/// Two numbers: a panic elsewhere leaves nothing half done.
fn lock(pressure: &Mutex<Pressure>) -> MutexGuard<'_, Pressure> {
    pressure.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connections of one worker that wait for a request.
#[derive(Debug, Default)]
struct Idle {
    /// Wakes the one that has waited longest, to see whether it has to give way; or all of them, to end.
    end: Notify,
    /// Wakes those that wait for something else, to see whether one of them has to give way.
    wanted: Notify,
    /// Whether all of them are to end.
    closing: AtomicBool,
}

/// What a connection waits for between two requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// There is something to read, or the client has left.
    Readable,
    /// It is closed.
    Over,
}

impl ConnectionLimit {
    /// At most `most`, for this many workers.
    #[must_use]
    pub fn new(most: usize, workers: usize) -> Self {
        Self {
            most,
            places: Arc::new(Semaphore::new(most)),
            pressure: Mutex::default(),
            idle: (0..workers).map(|_| Idle::default()).collect(),
        }
    }

    /// The most that there may be.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most
    }

    /// A place for a connection that has been taken, if there is one.
    pub(super) fn free_place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }

    /// A place where there is none: a connection that has no request gives way, of its worker the one of HTTP/1 that has waited
    /// longest, or any of those in [`give_way`](Self::give_way); where there is none of these, this waits for a connection to end.
    pub(super) async fn place(&self, metrics: &Metrics) -> Option<OwnedSemaphorePermit> {
        metrics.limit_hit(Limit::Connections);
        let _waiting = Waiting::begin(&self.pressure);
        self.look_for_one();
        // It is never closed.
        self.places.clone().acquire_owned().await.ok()
    }

    /// Waits until a request comes, `limit` at the longest, on a worker's connection that has none. `timer` is the
    /// connection's own, for all its waits.
    pub(super) async fn idle<C: Carrier>(
        &self,
        worker: usize,
        stream: &mut Spoken<C>,
        limit: Duration,
        timer: Pin<&mut Sleep>,
    ) -> Wait {
        let Some(idle) = self.idle.get(worker) else {
            return Wait::Over;
        };
        let is_closing = || idle.closing.load(Ordering::Acquire);
        let ended = async {
            loop {
                let mut end = std::pin::pin!(idle.end.notified());
                // Before the look, so that an end that comes between is not missed.
                end.as_mut().enable();
                if is_closing() {
                    // Whoever has just been taken may have sent its request already.
                    tokio::time::sleep(LAST_LOOK).await;
                    return;
                }
                end.await;
                // A wake-up may be an old one, for somebody who has a place by now.
                if is_closing() || self.gives_way() {
                    return;
                }
            }
        };
        let deadline = Instant::now() + limit;
        tokio::select! {
            biased;
            () = stream.readable() => Wait::Readable,
            () = ended => Wait::Over,
            () = until(deadline, timer) => Wait::Over,
        }
    }

    /// Waits until a worker's connection that is no idle one of HTTP/1 has to give way, which it does while it is `free`.
    pub(super) async fn give_way(&self, worker: usize, free: impl Fn() -> bool) {
        let Some(idle) = self.idle.get(worker) else {
            return;
        };
        loop {
            let mut wanted = std::pin::pin!(idle.wanted.notified());
            // Before the look, so that a wish that comes between is not missed.
            wanted.as_mut().enable();
            while self.one_is_wanted() {
                if free() && self.gives_way() {
                    return;
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            wanted.await;
        }
    }

    /// The same for one that has not come to its first request yet.
    pub(super) async fn give_way_when_slow(&self, worker: usize) {
        tokio::time::sleep(PATIENCE).await;
        self.give_way(worker, || true).await;
    }

    /// A connection that has given way goes on nevertheless: another one has to.
    pub(super) fn stays(&self) {
        let mut pressure = lock(&self.pressure);
        pressure.giving = pressure.giving.saturating_sub(1);
        drop(pressure);
        self.look_for_one();
    }

    fn look_for_one(&self) {
        for idle in &self.idle {
            idle.end.notify_one();
            idle.wanted.notify_waiters();
        }
    }

    fn one_is_wanted(&self) -> bool {
        let pressure = lock(&self.pressure);
        pressure.giving < pressure.waiting
    }

    /// Whether a connection that has nothing to do gives way: one for each that waits.
    fn gives_way(&self) -> bool {
        let mut pressure = lock(&self.pressure);
        let wanted = pressure.giving < pressure.waiting;
        pressure.giving += usize::from(wanted);
        let another = pressure.giving < pressure.waiting;
        drop(pressure);
        if another {
            // Whoever was woken for it may have been this one.
            self.look_for_one();
        }
        wanted
    }

    /// Ends a worker's connections that wait for a request, now and from now on.
    pub(super) fn close_idle(&self, worker: usize) {
        if let Some(idle) = self.idle.get(worker) {
            idle.closing.store(true, Ordering::Release);
            idle.end.notify_waiters();
        }
    }
}

/// Waits until `deadline`. The timer is only set when it would come too late: to set it for each request, and take it back,
/// costs more than to have it go off now and then before its time.
async fn until(deadline: Instant, mut timer: Pin<&mut Sleep>) {
    if deadline < timer.deadline() {
        timer.as_mut().reset(deadline);
    }
    loop {
        timer.as_mut().await;
        if Instant::now() >= deadline {
            return;
        }
        timer.as_mut().reset(deadline);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scarcer_of_files_and_memory_decides() {
        const MIB: u64 = 1024 * 1024;
        assert_eq!(auto(20_000, None), 9_872);
        assert_eq!(auto(20_000, Some(256 * MIB)), 1_365);
        assert_eq!(auto(1_024, Some(256 * MIB)), 384);
        assert_eq!(auto(u64::MAX, Some(1024 * 1024 * MIB)), 5_592_405);
        assert_eq!(auto(0, Some(0)), 64);
        assert!(auto(u64::MAX, None) <= Semaphore::MAX_PERMITS);
    }

    #[tokio::test]
    async fn places_are_counted_and_come_back() {
        let limit = ConnectionLimit::new(2, 1);
        let metrics = Metrics::new(1);
        let (one, two) = (limit.free_place(), limit.free_place());
        assert!(one.is_some() && two.is_some() && limit.free_place().is_none());
        assert_eq!(limit.places.available_permits(), 0);
        assert_eq!(metrics.limit_hits(Limit::Connections), 0);
        {
            let third = limit.place(&metrics);
            tokio::pin!(third);
            assert!(futures_util::poll!(&mut third).is_pending());
            assert_eq!(metrics.limit_hits(Limit::Connections), 1);
            assert!(limit.gives_way() && !limit.gives_way());
            drop(one);
            assert!(third.await.is_some());
        }
        // Who has a place needs nobody to give way.
        assert!(!limit.gives_way());
        drop(two);
        assert_eq!(limit.places.available_permits(), 2);
    }

    #[tokio::test]
    async fn a_timer_that_goes_off_early_is_set_again_and_one_that_is_late_is_brought_forward() {
        const SHORT: Duration = Duration::from_millis(20);
        async fn in_time(deadline: Instant, timer: Pin<&mut Sleep>) {
            let waited = tokio::time::timeout(Duration::from_secs(30), until(deadline, timer));
            assert!(waited.await.is_ok());
            assert!(Instant::now() >= deadline);
        }
        let mut timer = std::pin::pin!(tokio::time::sleep(Duration::from_secs(3600)));
        in_time(Instant::now() + SHORT, timer.as_mut()).await;
        // It is over already, as it is when a request has taken longer than it.
        in_time(Instant::now() + SHORT, timer.as_mut()).await;
        timer.as_mut().reset(Instant::now() + SHORT);
        in_time(Instant::now() + 2 * SHORT, timer.as_mut()).await;
    }
}
