//! One pool: its targets, its current endpoints, and the choice among them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use arc_swap::ArcSwap;
use tracing::error;

use super::balance;
use super::breaker::Breaker;
use super::budget::{Budget, Retry};
use super::endpoint::{Address, Endpoint, Picked};
use super::peer;
use super::source::{Found, Source};
use super::status::{EndpointStatus, PoolStatus};
use super::wish::Wish;
use crate::config::{Balance, PoolConfig, Target};
use crate::dns::{Listener, Resolver};
use crate::metrics::shard::Padded;

/// Why a pool has no endpoint. The text is for the answer to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unavailable {
    /// No name of the pool has been answered yet, or some have not and the others are empty.
    Unresolved,
    /// All names are answered, and there is no address behind any of them.
    Empty,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unavailable::Unresolved => "the upstream's name is not resolved yet",
            Unavailable::Empty => "the upstream's name has no addresses",
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
}

struct Endpoints {
    /// Sorted by address.
    list: Box<[Arc<Endpoint>]>,
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
        let carried = previous
            .filter(|previous| peer::same(&previous.config, config))
            .map(|previous| previous.current.load().list.clone());
        let pool = Arc::new(Pool {
            name: name.to_owned(),
            config: config.clone(),
            fixed,
            sources,
            current: ArcSwap::from_pointee(Endpoints {
                list: carried.unwrap_or_default(),
                reason: Unavailable::Unresolved,
            }),
            turn: Padded::default(),
            budget: previous.map_or_else(Arc::default, |pool| pool.budget.clone()),
            breaker: previous.map_or_else(Arc::default, |pool| pool.breaker.clone()),
            rebuilding: Mutex::new(()),
            rebuilt: Condvar::new(),
        });
        let listener: Arc<dyn Listener> = pool.clone();
        for source in &pool.sources {
            source.subscribe(Arc::downgrade(&listener) as Weak<dyn Listener>);
        }
        // After subscribing, so that no change falls between.
        pool.rebuild();
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
        current.list.iter().map(|e| e.in_flight()).sum()
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

    /// Whether [`Pool::select`] would give an endpoint now. Takes no lock.
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
        let endpoint = |endpoint: &Arc<Endpoint>| EndpointStatus {
            id: endpoint.id(),
            address: endpoint.address().to_owned(),
            in_flight: endpoint.in_flight(),
        };
        PoolStatus {
            name: self.name.clone(),
            targets: self.config.targets.iter().map(Target::to_string).collect(),
            endpoints: current.list.iter().map(endpoint).collect(),
            places_taken: self.config.limits.bounds().then(|| self.breaker.taken()),
            requests_waiting: self.breaker.waiting(),
            retries_in_flight: self.budget.active(),
            waiting_for: match self.readiness() {
                Readiness::Ready => Vec::new(),
                Readiness::Waiting(names) => names,
            },
        }
    }

    /// Makes the endpoints that the targets and the names' answers amount to.
    fn rebuild(&self) {
        let _guard = self.lock();
        let mut addresses: BTreeSet<Address> = self.fixed.iter().cloned().collect();
        let found: Vec<Found> = self.sources.iter().flat_map(Source::addresses).collect();
        // Who stands in for others is there when nobody else is.
        let anybody = !addresses.is_empty() || found.iter().any(|one| !one.backup);
        let found = found.iter().filter(|one| !(one.backup && anybody));
        addresses.extend(found.map(|one| Address::Tcp(one.address)));
        let reason = if self.waiting().is_empty() {
            Unavailable::Empty
        } else {
            Unavailable::Unresolved
        };
        let current = self.current.load();
        let known = |address: &Address| {
            let found = current.list.iter().find(|e| e.location() == address);
            found.cloned()
        };
        let list = addresses
            .into_iter()
            .filter_map(|address| known(&address).or_else(|| self.make(address)))
            .collect();
        self.current.store(Arc::new(Endpoints { list, reason }));
        self.rebuilt.notify_all();
    }

    fn make(&self, address: Address) -> Option<Arc<Endpoint>> {
        match Endpoint::new(address, &self.config) {
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

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
