//! One name in use: the answer that everybody reads, and who is told when it changes.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use serde::Serialize;
use tokio::task::AbortHandle;

use super::family::Families;
use super::outcome::{LookupResult, Outcome};
use super::resolver::Registry;
use super::snapshot::{LookupCount, NameSnapshot};

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

/// Somebody who is told when the answer to a name changes.
pub trait Listener: Send + Sync {
    /// The answer differs from the one before as a set, or in its state. Called on the resolver's
    /// thread, after [`Watched::answer`] gives the new one: it may compute, but not block.
    fn answer_changed(&self);

    /// A lookup failed while there is no answer yet; [`Watched::failure`] tells why. Called under
    /// the same rule.
    fn lookup_failed(&self) {}
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

    /// Has `listener` called at each change from now on, for as long as it lives. Read
    /// [`Watched::answer`] after this call, not before, so that no change is missed.
    pub fn subscribe(&self, listener: Weak<dyn Listener>) {
        let mut listeners = lock(&self.name.listeners);
        listeners.retain(|known| known.strong_count() > 0);
        listeners.push(listener);
    }

    pub(super) fn snapshot(&self) -> NameSnapshot {
        self.name.snapshot()
    }

    /// From now on it is a name of the configuration.
    pub(super) fn list(&self) {
        self.name.listed.store(true, Ordering::Relaxed);
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
    listeners: Mutex<Vec<Weak<dyn Listener>>>,
    statistics: Mutex<Statistics>,
    /// It stands in the configuration; otherwise a program has named it while it ran.
    listed: AtomicBool,
}

#[derive(Default)]
struct Statistics {
    /// By record type (A, AAAA) and result.
    lookups: [[u64; LookupResult::ALL.len()]; 2],
    last_success: Option<SystemTime>,
    last_error: Option<String>,
    stale: bool,
    ttl: Option<Duration>,
    /// Everything was tried, something failed, and there is no answer.
    unanswered: bool,
}

impl NameState {
    pub(super) fn new(host: &str, answer: Answer, listed: bool) -> Self {
        Self {
            host: host.to_owned(),
            current: ArcSwap::from_pointee(answer),
            listeners: Mutex::default(),
            statistics: Mutex::default(),
            listed: AtomicBool::new(listed),
        }
    }

    /// Whether it stands in the configuration.
    pub(super) fn is_listed(&self) -> bool {
        self.listed.load(Ordering::Relaxed)
    }

    /// Makes `answer` the current one. Returns the one before when it differs.
    pub(super) fn publish(&self, answer: Answer) -> Option<Arc<Answer>> {
        let before = self.current.load_full();
        if *before == answer {
            return None;
        }
        self.current.store(Arc::new(answer));
        self.tell(|listener| listener.answer_changed());
        Some(before)
    }

    /// Tells that a lookup failed and there is no answer.
    pub(super) fn tell_failure(&self) {
        self.tell(|listener| listener.lookup_failed());
    }

    fn tell(&self, what: impl Fn(&dyn Listener)) {
        let listeners = lock(&self.listeners).clone();
        for listener in listeners.iter().filter_map(Weak::upgrade) {
            what(&*listener);
        }
    }

    /// Counts a refresh. `record_type` is 0 for A, 1 for AAAA.
    pub(super) fn count(&self, record_type: usize, outcome: &Outcome) {
        let mut statistics = lock(&self.statistics);
        statistics.lookups[record_type][outcome.result() as usize] += 1;
        match outcome {
            Outcome::Records { .. } => statistics.last_success = Some(SystemTime::now()),
            Outcome::Failed(failure) => statistics.last_error = Some(failure.detail.clone()),
            Outcome::Empty { .. } => {}
        }
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
        let mut lookups = Vec::new();
        for (record_type, counts) in ["A", "AAAA"].into_iter().zip(statistics.lookups) {
            for (result, count) in LookupResult::ALL.into_iter().zip(counts) {
                if count > 0 {
                    lookups.push(LookupCount {
                        record_type,
                        result: result.label(),
                        count,
                    });
                }
            }
        }
        let since_epoch = |time: SystemTime| time.duration_since(UNIX_EPOCH).ok();
        NameSnapshot {
            name: self.host.clone(),
            listed: self.is_listed(),
            state: answer.state,
            addresses: answer.addresses.to_vec(),
            stale: statistics.stale,
            ttl_seconds: statistics.ttl.map(|ttl| ttl.as_secs()),
            last_success: statistics
                .last_success
                .and_then(since_epoch)
                .map(|time| time.as_secs_f64()),
            last_error: statistics.last_error.clone(),
            lookups,
        }
    }
}

/// What these mutexes guard is consistent at every moment, so a panic elsewhere spoils nothing.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
