//! One pool: its targets, its current endpoints, and the choice among them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, UNIX_EPOCH};

use arc_swap::ArcSwap;
use tokio::sync::Notify;
use tracing::error;

use super::breaker::Breaker;
use super::budget::{Budget, Retry};
use super::endpoint::{Address, Endpoint, Picked};
use super::outlier;
use super::peer;
use super::source::Source;
use super::standing::{Outcome, Standing};
use super::status::{EndpointStatus, PoolStatus};
use super::tiers::{Member, Members};
use super::wish::Wish;
use crate::config::{Balance, PoolConfig, TargetTraits, Thousandths};
use crate::dns::{Listener, Resolver};
use crate::metrics::shard::Padded;

/// Why a pool has no endpoint. The text is for the answer to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unavailable {
    /// No name of the pool has been answered yet, or some have not and the others are empty.
    Unresolved,
    /// All names are answered, and there is no address behind any of them.
    Empty,
    /// There are addresses, and none that may be used.
    Unhealthy,
    /// All targets that there are have the weight 0.
    Drained,
    /// The one that a script wants is not there, or not usable.
    NotThere,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unavailable::Unresolved => "the upstream's name is not resolved yet",
            Unavailable::Empty => "the upstream's name has no addresses",
            Unavailable::Unhealthy => "all targets are ejected or unhealthy",
            Unavailable::Drained => "all targets have the weight 0",
            Unavailable::NotThere => "the chosen target is not usable",
        })
    }
}

impl std::error::Error for Unavailable {}

/// Whether a pool keeps the proxy from being ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It has endpoints, or the answer is that there are none.
    Ready,
    /// It has no endpoint, and these names wait for their first answer.
    Waiting(Vec<String>),
}

/// A pool of upstreams.
pub struct Pool {
    name: String,
    config: PoolConfig,
    /// Where its endpoints come from, in the order of its targets.
    sources: Vec<(Source, TargetTraits)>,
    current: ArcSwap<Members>,
    /// Whose turn it is in a round robin; written by every request.
    turn: Padded<AtomicUsize>,
    /// Retries under way.
    budget: Arc<Budget>,
    /// Requests that hold or wait for a place, where there are bounds.
    breaker: Arc<Breaker>,
    /// Guards the making of `current`.
    rebuilding: Mutex<()>,
    rebuilt: Condvar,
    /// Tells the thread `health` to look at the pool.
    alarm: Arc<Notify>,
}

impl Pool {
    /// Builds a pool. Endpoints of `previous`, a pool of the same name with another configuration,
    /// are carried over where nothing in them changes.
    pub(super) fn new(
        name: &str,
        config: &PoolConfig,
        resolver: &Resolver,
        previous: Option<&Pool>,
    ) -> Arc<Pool> {
        let sources = config.targets.iter();
        let sources = sources.map(|target| {
            let source = Source::new(&target.target, resolver);
            (source, target.traits.clone())
        });
        let known = previous.map(Pool::endpoints).unwrap_or_default();
        let carried = previous
            .filter(|previous| peer::same(&previous.config, config))
            .map(|previous| previous.current.load().list.clone());
        let pool = Arc::new(Pool {
            name: name.to_owned(),
            config: config.clone(),
            sources: sources.collect(),
            current: ArcSwap::from_pointee(Members::carried(carried.unwrap_or_default())),
            turn: Padded::default(),
            budget: previous.map_or_else(Arc::default, |pool| pool.budget.clone()),
            breaker: previous.map_or_else(Arc::default, |pool| pool.breaker.clone()),
            rebuilding: Mutex::new(()),
            rebuilt: Condvar::new(),
            alarm: Arc::default(),
        });
        let listener: Arc<dyn Listener> = pool.clone();
        for (source, _) in &pool.sources {
            source.subscribe(Arc::downgrade(&listener) as Weak<dyn Listener>);
        }
        // After subscribing, so that no change falls between.
        pool.rebuild_knowing(&known);
        pool
    }

    /// The pool's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it was built from.
    pub fn config(&self) -> &PoolConfig {
        &self.config
    }

    /// Picks an endpoint: what the request wishes where it can be had, else by the pool's way of balancing.
    /// Takes no lock and allocates nothing.
    ///
    /// # Errors
    /// When there is no endpoint, with the reason.
    #[inline]
    pub fn select(&self, wish: &Wish<'_>) -> Result<Picked, Unavailable> {
        self.current.load().select(wish, &self.turn.0)
    }

    /// Whether requests that wish for nothing in particular get an endpoint now. Takes no lock.
    pub fn can_balance(&self) -> bool {
        self.current.load().can_balance()
    }

    /// Picks an endpoint that fewer than `most` requests hold, of those that are preferred now.
    pub(super) fn any_with_room(&self, most: usize) -> Option<Picked> {
        self.current.load().any_with_room(most)
    }

    /// Requests that hold one of its endpoints now.
    pub fn in_flight(&self) -> usize {
        let current = self.current.load();
        let list = current.list.iter();
        list.map(|member| member.endpoint.in_flight()).sum()
    }

    /// Whether a request can go elsewhere when one endpoint fails.
    pub fn has_several(&self) -> bool {
        self.current.load().list.len() > 1
    }

    /// Begins a retry; `None` when the budget is spent.
    pub fn begin_retry(&self) -> Option<Retry> {
        self.budget.begin(&self.config.retries, || self.in_flight())
    }

    /// Who holds or waits for a place in it.
    pub(super) fn breaker(&self) -> &Arc<Breaker> {
        &self.breaker
    }

    /// Takes in what a request that got this endpoint has come to, and how long that took, should the pool
    /// [want to know it](Pool::wants_latencies). Takes no lock; without latencies it is one relaxed load on success.
    #[inline]
    pub(crate) fn report(&self, picked: &Picked, outcome: Outcome, latency: Option<Duration>) {
        self.report_on(picked.standing(), outcome, latency);
    }

    /// The same for who has given the endpoint back already.
    #[inline]
    pub(crate) fn report_on(
        &self,
        standing: &Standing,
        outcome: Outcome,
        latency: Option<Duration>,
    ) {
        if let Some(latency) = latency {
            standing.took(latency, outcome, &self.config);
        }
        if standing.note(outcome, &self.config.ejection) {
            self.alarm.notify_one();
        }
    }

    /// Whether it matters how long answers take.
    #[inline]
    pub(crate) fn wants_latencies(&self) -> bool {
        self.config.balance == Balance::PeakEwma || self.compares_latencies()
    }

    /// Whether those are ejected that take far longer than others.
    pub(crate) fn compares_latencies(&self) -> bool {
        self.config.ejection.latency_factor != Thousandths::ZERO
    }

    /// Tells when the pool should be looked at: it has other endpoints, requests have failed, or it is gone.
    pub(crate) fn alarm(&self) -> &Arc<Notify> {
        &self.alarm
    }

    /// All endpoints, those too that may not be used now.
    pub(crate) fn endpoints(&self) -> Vec<Arc<Endpoint>> {
        let current = self.current.load();
        let list = current.list.iter();
        list.map(|member| member.endpoint.clone()).collect()
    }

    /// Whether so many endpoints are out that all are used.
    pub(crate) fn is_panicking(&self) -> bool {
        self.current.load().panic
    }

    /// Whether there is an endpoint, well or not: what is wrong with upstreams is no reason to take the
    /// proxy out. Takes no lock.
    pub fn has_endpoints(&self) -> bool {
        !self.current.load().list.is_empty()
    }

    /// Whether this pool keeps the proxy from being ready.
    pub fn readiness(&self) -> Readiness {
        if self.has_endpoints() {
            return Readiness::Ready;
        }
        let waiting = self.waiting();
        if waiting.is_empty() {
            Readiness::Ready
        } else {
            Readiness::Waiting(waiting.into_iter().collect())
        }
    }

    /// The names that have not been answered yet.
    fn waiting(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for (source, _) in &self.sources {
            source.waiting(&mut names);
        }
        names
    }

    /// Blocks until the pool is ready, at the longest until `deadline`; false when the deadline came
    /// first. For the start and for reloads, not for proxy workers.
    pub fn wait_ready(&self, deadline: Instant) -> bool {
        let mut guard = self.lock();
        while self.readiness() != Readiness::Ready {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.rebuilt.wait_timeout(guard, left);
            guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// What there is now, for `/status` and the metrics.
    pub fn snapshot(&self) -> PoolStatus {
        let current = self.current.load();
        let is_checked = self.config.health.is_some();
        let by_latency = self.config.balance == Balance::PeakEwma;
        let endpoint = |member: &Member| EndpointStatus::of(member, is_checked, by_latency);
        let targets = self.config.targets.iter();
        let expires = self.config.tls.as_ref().and_then(|tls| tls.expires());
        let expires = expires.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        PoolStatus {
            name: self.name.clone(),
            targets: targets.map(|target| target.target.to_string()).collect(),
            endpoints: current.list.iter().map(endpoint).collect(),
            panic: current.panic,
            places_taken: self.config.limits.bounds().then(|| self.breaker.taken()),
            requests_waiting: self.breaker.waiting(),
            retries_in_flight: self.budget.active(),
            waiting_for: match self.readiness() {
                Readiness::Ready => Vec::new(),
                Readiness::Waiting(names) => names,
            },
            certificate_not_after: expires.map(|since| since.as_secs()),
        }
    }

    /// Makes the endpoints that the targets, the names' answers and the state of the endpoints amount to. From any
    /// thread but a worker's: tables are made here, so that requests only look.
    pub(crate) fn rebuild(&self) {
        self.rebuild_knowing(&[]);
    }

    /// The same; how the endpoints of `earlier` stand is handed on by address.
    fn rebuild_knowing(&self, earlier: &[Arc<Endpoint>]) {
        let _guard = self.lock();
        let (wanted, answered) = self.wanted();
        let reason = match answered {
            true => Unavailable::Empty,
            false => Unavailable::Unresolved,
        };
        let current = self.current.load();
        let settled = current.settled || answered;
        // Whoever comes to others begins slowly, and so does who was away.
        let joins = current.settled && current.list.iter().any(|member| member.usable);
        let now = Instant::now();
        let member = |(address, traits): (Address, TargetTraits)| {
            let mut list = current.list.iter();
            let known = list.find(|member| member.endpoint.location() == &address);
            let endpoint = match known {
                Some(known) => known.endpoint.clone(),
                None => self.make(address, earlier)?,
            };
            let since = match known {
                Some(known) if known.usable => known.since,
                _ => joins.then_some(now),
            };
            Some(Member {
                usable: false,
                endpoint,
                traits,
                // Who has all of its share needs no clock.
                since: since.filter(|&since| match self.config.slow_start {
                    Some(length) => now < since + length,
                    None => false,
                }),
            })
        };
        let mut list: Box<[Member]> = wanted.into_iter().filter_map(member).collect();
        let panic = outlier::judge(&mut list, &self.config, now);
        let ids = |list: &[Member]| -> Vec<_> {
            let list = list.iter();
            list.map(|member| member.endpoint.id()).collect()
        };
        let has_changed = ids(&list) != ids(&current.list);
        let members = Members::new(&self.config, list, reason, settled, panic);
        self.current.store(Arc::new(members));
        self.rebuilt.notify_all();
        if has_changed {
            // Others are to be checked.
            self.alarm.notify_one();
        }
    }

    /// The addresses that there are to be, and whether all names have been answered. An address that several targets
    /// lead to is what the first of them says.
    fn wanted(&self) -> (BTreeMap<Address, TargetTraits>, bool) {
        let mut wanted = BTreeMap::new();
        for (source, traits) in &self.sources {
            for (address, traits) in source.addresses(traits) {
                wanted.entry(address).or_insert(traits);
            }
        }
        (wanted, self.waiting().is_empty())
    }

    fn make(&self, address: Address, earlier: &[Arc<Endpoint>]) -> Option<Arc<Endpoint>> {
        let before = earlier.iter().find(|e| e.location() == &address);
        let standing = before.map(|e| e.standing().clone()).unwrap_or_default();
        match Endpoint::new(address, &self.config, standing) {
            Ok(endpoint) => Some(Arc::new(endpoint)),
            Err(reason) => {
                error!(pool = self.name, reason, "a target can't be connected to");
                None
            }
        }
    }

    /// Guards nothing that a panic could leave half done.
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.rebuilding
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Pool {
    fn answer_changed(&self) {
        self.rebuild();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Whoever looks after it has nothing to do any more.
        self.alarm.notify_one();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
