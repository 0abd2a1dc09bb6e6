//! One pool: its targets, its current endpoints, and the choice among them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::sync::Notify;
use tracing::error;

use super::balance;
use super::breaker::Breaker;
use super::budget::{Budget, Retry};
use super::endpoint::{Address, Endpoint, Picked};
use super::outlier;
use super::peer;
use super::source::{Found, Source};
use super::standing::{Outcome, Standing};
use super::status::{EndpointStatus, PoolStatus};
use super::wish::Wish;
use crate::config::{Balance, PoolConfig, Target, Thousandths};
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
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unavailable::Unresolved => "the upstream's name is not resolved yet",
            Unavailable::Empty => "the upstream's name has no addresses",
            Unavailable::Unhealthy => "all targets are ejected or unhealthy",
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
    /// The targets that are addresses.
    fixed: Vec<Address>,
    /// The targets whose addresses come from DNS.
    sources: Vec<Source>,
    current: ArcSwap<Endpoints>,
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

struct Endpoints {
    /// All, sorted by address.
    all: Arc<[Arc<Endpoint>]>,
    /// Those that may be used.
    list: Box<[Arc<Endpoint>]>,
    /// So many are out that all are used.
    panic: bool,
    /// What it means when the list is empty.
    reason: Unavailable,
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
        let mut fixed = Vec::new();
        let mut sources = Vec::new();
        for target in &config.targets {
            match target {
                Target::Address(address) => fixed.push(Address::Tcp(*address)),
                Target::Unix(path) => fixed.push(Address::Unix(path.clone())),
                Target::Name { host, port } => sources.push(Source::name(resolver, host, *port)),
                Target::Srv { name } => sources.push(Source::service(resolver, name)),
            }
        }
        let known = previous.map(Pool::endpoints).unwrap_or_default();
        let carried = previous.filter(|previous| peer::same(&previous.config, config));
        let pool = Arc::new(Pool {
            name: name.to_owned(),
            config: config.clone(),
            fixed,
            sources,
            current: ArcSwap::from_pointee(Endpoints {
                all: carried.map(|_| known.clone()).unwrap_or_default(),
                list: Box::default(),
                panic: false,
                reason: Unavailable::Unresolved,
            }),
            turn: Padded::default(),
            budget: previous.map_or_else(Arc::default, |pool| pool.budget.clone()),
            breaker: previous.map_or_else(Arc::default, |pool| pool.breaker.clone()),
            rebuilding: Mutex::new(()),
            rebuilt: Condvar::new(),
            alarm: Arc::default(),
        });
        let listener: Arc<dyn Listener> = pool.clone();
        for source in &pool.sources {
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
        let current = self.current.load();
        let list = &current.list;
        if let Some(address) = wish.target
            && let Some(wanted) = list.iter().find(|endpoint| endpoint.address() == address)
            && !wish.avoids(wanted)
        {
            return Ok(Picked::new(wanted));
        }
        let chosen = self.balance(list, |index| !wish.avoids(&list[index]));
        // One that failed is better than none.
        let chosen = chosen.or_else(|| self.balance(list, |_| true));
        chosen
            .map(|index| Picked::new(&list[index]))
            .ok_or(current.reason)
    }

    #[inline]
    fn balance(&self, list: &[Arc<Endpoint>], may: impl Fn(usize) -> bool) -> Option<usize> {
        match self.config.balance {
            Balance::LeastRequests => {
                balance::least_requests(list.len(), may, |index| list[index].in_flight())
            }
            Balance::RoundRobin => balance::round_robin(list.len(), may, &self.turn.0),
        }
    }

    /// Picks an endpoint that fewer than `most` requests hold, whichever it is.
    pub(super) fn any_with_room(&self, most: usize) -> Option<Picked> {
        let current = self.current.load();
        let (before, from) = current
            .list
            .split_at(fastrand::usize(..=current.list.len()));
        let mut all = from.iter().chain(before);
        all.find_map(|endpoint| Picked::within(endpoint, most))
    }

    /// Requests that hold one of its endpoints now.
    pub fn in_flight(&self) -> usize {
        let current = self.current.load();
        current.all.iter().map(|e| e.in_flight()).sum()
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

    /// Takes in what a request that got this endpoint has come to, and how long it took, should
    /// [`Pool::compares_latencies`]. On success two relaxed additions at most, without them one
    /// relaxed load.
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
            standing.took(latency);
        }
        if standing.note(outcome, &self.config.ejection) {
            self.alarm.notify_one();
        }
    }

    /// Whether it matters how long answers take.
    #[inline]
    pub(crate) fn compares_latencies(&self) -> bool {
        self.config.ejection.latency_factor != Thousandths::ZERO
    }

    /// Tells when the pool should be looked at: it has other endpoints, requests have failed, or it is gone.
    pub(crate) fn alarm(&self) -> &Arc<Notify> {
        &self.alarm
    }

    /// All endpoints, those too that may not be used now.
    pub(crate) fn endpoints(&self) -> Arc<[Arc<Endpoint>]> {
        self.current.load().all.clone()
    }

    /// Whether so many endpoints are out that all are used.
    pub(crate) fn is_panicking(&self) -> bool {
        self.current.load().panic
    }

    /// Whether there is an endpoint, well or not: what is wrong with upstreams is no reason to take the
    /// proxy out. Takes no lock.
    pub fn has_endpoints(&self) -> bool {
        !self.current.load().all.is_empty()
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
        for source in &self.sources {
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
        let endpoint = |endpoint: &Arc<Endpoint>| EndpointStatus::of(endpoint, is_checked);
        PoolStatus {
            name: self.name.clone(),
            targets: self.config.targets.iter().map(Target::to_string).collect(),
            endpoints: current.all.iter().map(endpoint).collect(),
            panic: current.panic,
            places_taken: self.config.limits.bounds().then(|| self.breaker.taken()),
            requests_waiting: self.breaker.waiting(),
            retries_in_flight: self.budget.active(),
            waiting_for: match self.readiness() {
                Readiness::Ready => Vec::new(),
                Readiness::Waiting(names) => names,
            },
        }
    }

    /// Makes the endpoints that the targets and the names' answers amount to, and chooses those that may be
    /// used. From any thread but a worker.
    pub(crate) fn rebuild(&self) {
        self.rebuild_knowing(&[]);
    }

    /// The same; how the endpoints of `earlier` stand is handed on by address.
    fn rebuild_knowing(&self, earlier: &[Arc<Endpoint>]) {
        let _guard = self.lock();
        let mut addresses: BTreeSet<Address> = self.fixed.iter().cloned().collect();
        let found: Vec<Found> = self.sources.iter().flat_map(Source::addresses).collect();
        // Who stands in for others is there when nobody else is.
        let anybody = !addresses.is_empty() || found.iter().any(|one| !one.backup);
        let found = found.iter().filter(|one| !(one.backup && anybody));
        addresses.extend(found.map(|one| Address::Tcp(one.address)));
        let mut reason = if self.waiting().is_empty() {
            Unavailable::Empty
        } else {
            Unavailable::Unresolved
        };
        let current = self.current.load();
        let known = |address: &Address| {
            let found = current.all.iter().find(|e| e.location() == address);
            found.cloned()
        };
        let all: Arc<[Arc<Endpoint>]> = addresses
            .into_iter()
            .filter_map(|address| known(&address).or_else(|| self.make(address, earlier)))
            .collect();
        let panic = outlier::judge(&all, &self.config, Instant::now());
        let list: Box<[_]> = all.iter().filter(|e| e.is_usable()).cloned().collect();
        if !all.is_empty() && list.is_empty() {
            reason = Unavailable::Unhealthy;
        }
        let has_changed = all.len() != current.all.len()
            || !all
                .iter()
                .zip(current.all.iter())
                .all(|(a, b)| Arc::ptr_eq(a, b));
        let made = Endpoints {
            all,
            list,
            panic,
            reason,
        };
        self.current.store(Arc::new(made));
        self.rebuilt.notify_all();
        if has_changed {
            // Others are to be checked.
            self.alarm.notify_one();
        }
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
