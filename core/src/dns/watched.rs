//! One name in use: the answer that everybody reads, and who is told when it changes.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde::Serialize;
use tokio::task::AbortHandle;

use super::family::Families;
use super::kind::Kind;
use super::listeners::{Listener, Listeners};
use super::outcome::Outcome;
use super::resolver::Registry;
use super::snapshot::NameSnapshot;
use super::statistics::Statistics;

/// Whether a name has been answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Not yet, or only with failures.
    Unresolved,
    /// It has addresses; perhaps kept ones from before a failure.
    Resolved,
    /// The servers say, and keep saying, that there is no such name or that it has no address.
    Empty,
}

/// Who has named a name. A later one counts for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Origin {
    /// A program, while it ran.
    Program,
    /// A service that the configuration names, in its SRV records.
    Service,
    /// The configuration.
    Configuration,
}

impl Origin {
    const ALL: [Origin; 3] = [Origin::Program, Origin::Service, Origin::Configuration];
}

/// What is known about a name at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Whether the name has been answered.
    pub state: State,
    /// Sorted, without duplicates, IPv4 first; empty unless the state is [`State::Resolved`].
    pub addresses: Arc<[IpAddr]>,
}

impl Answer {
    pub(super) fn unresolved() -> Self {
        Self {
            state: State::Unresolved,
            addresses: Arc::new([]),
        }
    }
}

/// A name in use. Everybody who uses the same name has the same one; when the last user drops it,
/// the name isn't asked any more.
pub struct Watched {
    name: Arc<NameState>,
    registry: Weak<Registry>,
    /// None for IP literals, which need no task.
    task: Option<AbortHandle>,
}

impl Watched {
    pub(super) fn new(
        name: Arc<NameState>,
        registry: Weak<Registry>,
        task: Option<AbortHandle>,
    ) -> Self {
        Self {
            name,
            registry,
            task,
        }
    }

    /// The name as it is asked for: as written, in lower case.
    pub fn host(&self) -> &str {
        &self.name.host
    }

    /// The current answer. Takes no lock.
    pub fn answer(&self) -> Arc<Answer> {
        self.name.current.load_full()
    }

    /// Whether the name has been answered. Takes no lock.
    pub fn state(&self) -> State {
        self.name.current.load().state
    }

    /// Reads the current answer where it lies, without taking part in it.
    pub fn read<R>(&self, read: impl FnOnce(&Answer) -> R) -> R {
        read(&self.name.current.load())
    }

    /// Why there is no answer yet, once there was a try: the last failure. Takes a lock: for when
    /// the state is [`State::Unresolved`].
    pub fn failure(&self) -> Option<String> {
        let statistics = lock(&self.name.statistics);
        let error = statistics.last_error.as_ref();
        error.filter(|_| statistics.unanswered).cloned()
    }

    /// Addresses that the last answers had and that are not used, a few at the most. Takes a lock.
    pub fn refused(&self) -> Vec<IpAddr> {
        self.name.refused()
    }

    /// Has `listener` called at each change from now on, for as long as it lives. Read
    /// [`Watched::answer`] after this call, not before, so that no change is missed.
    pub fn subscribe(&self, listener: Weak<dyn Listener>) {
        self.name.listeners.add(listener);
    }

    pub(super) fn snapshot(&self) -> NameSnapshot {
        self.name.snapshot()
    }

    /// Somebody else has named it too.
    pub(super) fn named_by(&self, origin: Origin) {
        self.name.origin.fetch_max(origin as u8, Ordering::Relaxed);
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
        if let Some(registry) = self.registry.upgrade() {
            registry.forget(&self.name.host);
        }
    }
}

/// The part that the name's task shares with its users.
pub(super) struct NameState {
    pub(super) host: String,
    current: ArcSwap<Answer>,
    listeners: Listeners,
    statistics: Mutex<Statistics>,
    origin: AtomicU8,
}

impl NameState {
    pub(super) fn new(host: &str, answer: Answer, origin: Origin) -> Self {
        Self {
            host: host.to_owned(),
            current: ArcSwap::from_pointee(answer),
            listeners: Listeners::default(),
            statistics: Mutex::default(),
            origin: AtomicU8::new(origin as u8),
        }
    }

    /// Who has named it; of several, who counts for most.
    pub(super) fn origin(&self) -> Origin {
        Origin::ALL[usize::from(self.origin.load(Ordering::Relaxed))]
    }

    /// Makes `answer` the current one. Returns the one before when it differs.
    pub(super) fn publish(&self, answer: Answer) -> Option<Arc<Answer>> {
        let before = self.current.load_full();
        if *before == answer {
            return None;
        }
        self.current.store(Arc::new(answer));
        self.listeners.tell(|listener| listener.answer_changed());
        Some(before)
    }

    /// Tells that a lookup failed and there is no answer.
    pub(super) fn tell_failure(&self) {
        self.listeners.tell(|listener| listener.lookup_failed());
    }

    /// Counts a refresh.
    pub(super) fn count(&self, kind: Kind, outcome: &Outcome<IpAddr>) {
        lock(&self.statistics).count(kind, outcome);
    }

    /// Notes what of the last answer is not used. True when somebody should be told.
    pub(super) fn refuse(&self, kind: Kind, refused: Vec<IpAddr>) -> bool {
        lock(&self.statistics).refuse(kind, refused)
    }

    pub(super) fn refused(&self) -> Vec<IpAddr> {
        lock(&self.statistics).refused()
    }

    /// Notes when records of this type are asked for next.
    pub(super) fn schedule(&self, kind: Kind, next: Option<Duration>) {
        lock(&self.statistics).schedule(kind, next);
    }

    pub(super) fn note(&self, families: &Families) {
        let mut statistics = lock(&self.statistics);
        statistics.stale = families.stale();
        statistics.ttl = families.ttl();
        statistics.unanswered = families.unanswered();
    }

    fn snapshot(&self) -> NameSnapshot {
        let answer = self.current.load_full();
        let statistics = lock(&self.statistics);
        NameSnapshot {
            name: self.host.clone(),
            origin: self.origin(),
            state: answer.state,
            addresses: answer.addresses.to_vec(),
            refused: statistics.refused(),
            refused_total: statistics.refused_total(),
            stale: statistics.stale,
            ttl_seconds: statistics.ttl.map(|ttl| ttl.as_secs()),
            next_refresh_seconds: statistics.next_refresh(),
            last_success: statistics.last_success(),
            last_error: statistics.last_error.clone(),
            lookups: statistics.lookups(),
        }
    }
}

/// What these mutexes guard is consistent at every moment, so a panic elsewhere spoils nothing.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
