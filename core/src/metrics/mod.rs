//! Counters of the running proxy, and their text for Prometheus.
//!
//! Counting a request costs a few dozen instructions: three relaxed additions on cache lines that
//! only its own worker writes ([`shard`]). There is no lock, no hashing and no allocation on the
//! request path, but for one allocation (640 bytes) when a worker first serves a route. A route
//! asks for its [`RouteMetrics`] when it is loaded and keeps them.
//!
//! Sums are taken when somebody scrapes. Values that other parts own are handed over then, as a
//! [`ScrapeInput`].

mod auth;
mod connections;
mod exposition;
mod family;
mod health;
mod latency;
mod limit;
mod mirror;
mod outbound;
mod pool;
mod process;
mod refused;
mod registry;
mod route;
mod sample;
mod script;
pub mod shard;
mod status;
#[cfg(test)]
mod tests;
mod upstream;

pub use auth::{AuthFilter, AuthOutcome};
pub use connections::Connections;
pub(crate) use connections::Unsent;
pub use family::CONTENT_TYPE;
pub use health::{CheckResult, EjectionReason, EndpointSample};
pub use latency::{HistogramSample, Latency};
pub use limit::Limit;
pub use mirror::MirrorOutcome;
pub use pool::{ConnectFailure, PoolMetrics, Stickiness};
pub use refused::RefusedConnection;
pub use registry::RETENTION;
pub use route::RouteMetrics;
pub use sample::{
    DnsHostSample, DnsLookupSample, DnsSample, JwksSample, PoolSample, ReloadSample, ScrapeInput,
    ThrottlingSample,
};
pub use upstream::{Retried, UpstreamError};

use auth::AuthMetrics;
use edgewright_script::outbound::CallFailureKind;
use outbound::OutboundMetrics;
use registry::Registry;
use shard::{Padded, shards_for, thread_number};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The most route labels at one time; further routes are counted under [`OVERFLOW`]. With
/// histograms a route has about twenty series, and a monitoring system suffers from more than this
/// long before the proxy does.
pub const MAX_ROUTES: usize = 10_000;

/// The most pool names at one time; further pools are counted under [`OVERFLOW`].
pub const MAX_POOLS: usize = 10_000;

/// The label of routes and pools beyond the bound.
pub const OVERFLOW: &str = "overflow";

/// The route label of requests that no route matched. A route's own label has a `/` in it, so
/// neither this nor [`OVERFLOW`] can be one.
pub const NO_ROUTE: &str = "none";

/// What one worker counts beside routes and pools.
#[derive(Debug)]
struct Worker {
    limits: Padded<[AtomicU64; Limit::ALL.len()]>,
    accept_failures: AtomicU64,
    refused: [AtomicU64; RefusedConnection::ALL.len()],
    /// Handshakes of TLS: failed, done.
    handshakes: [AtomicU64; 2],
}

/// A request being served; dropping it says that the request is done, wherever that happens.
///
/// It is a reference to the counters of the worker that began the request, and the number of
/// references is the number of requests: beginning and ending cost one addition each, on a cache
/// line that no other worker writes unless the request ends on it.
#[derive(Debug)]
pub struct InFlight {
    _worker: Arc<Worker>,
}

/// All counters of the process.
#[derive(Debug)]
pub struct Metrics {
    shards: usize,
    /// The length is a power of two.
    workers: Box<[Arc<Worker>]>,
    routes: Registry<RouteMetrics>,
    no_route: Arc<RouteMetrics>,
    overflow: Arc<RouteMetrics>,
    pools: Registry<PoolMetrics>,
    overflow_pool: Arc<PoolMetrics>,
    outbound: OutboundMetrics,
    background: Background,
    auth: AuthMetrics,
    connections: Arc<Connections>,
    generations: AtomicU64,
}

/// Hooks that ran without a request. One worker counts.
#[derive(Debug, Default)]
struct Background {
    runs: AtomicU64,
    failures: AtomicU64,
}

impl Metrics {
    /// Counters for a proxy with this many worker threads. More threads may count; they share.
    pub fn new(workers: usize) -> Self {
        Self::bounded(workers, MAX_ROUTES, MAX_POOLS)
    }

    fn bounded(workers: usize, routes: usize, pools: usize) -> Self {
        let shards = shards_for(workers);
        let worker = || {
            Arc::new(Worker {
                limits: Padded([const { AtomicU64::new(0) }; Limit::ALL.len()]),
                accept_failures: Default::default(),
                refused: Default::default(),
                handshakes: Default::default(),
            })
        };
        Self {
            shards,
            workers: (0..shards).map(|_| worker()).collect(),
            routes: Registry::new(routes),
            no_route: Arc::new(RouteMetrics::new(NO_ROUTE, shards)),
            overflow: Arc::new(RouteMetrics::new(OVERFLOW, shards)),
            pools: Registry::new(pools),
            overflow_pool: Arc::new(PoolMetrics::new(OVERFLOW, shards)),
            outbound: OutboundMetrics::new(shards),
            background: Background::default(),
            auth: AuthMetrics::new(shards),
            connections: Arc::default(),
            generations: AtomicU64::new(0),
        }
    }

    /// A generation was made.
    pub(crate) fn generation_made(&self) {
        self.generations.fetch_add(1, Ordering::Relaxed);
    }

    /// A generation has lost its last user.
    pub(crate) fn generation_freed(&self) {
        self.generations.fetch_sub(1, Ordering::Relaxed);
    }

    /// Generations that are alive: the one in force, one that is being made, and those that requests still use.
    pub fn generations(&self) -> u64 {
        self.generations.load(Ordering::Relaxed)
    }

    #[inline]
    fn worker(&self) -> &Arc<Worker> {
        &self.workers[thread_number() & (self.workers.len() - 1)]
    }

    /// The counters of each route label, in the order given: those of an earlier generation where
    /// it had the label, so that counts go on over a reload.
    ///
    /// A generation keeps what it gets here as long as it lives. The series of labels that no
    /// generation keeps go after [`RETENTION`] (noticed at a scrape), or at once when room is
    /// needed. There are at most [`MAX_ROUTES`] labels; a route beyond gets the counters of
    /// [`OVERFLOW`], which counts as a hit of [`Limit::RouteLabels`].
    pub fn register_routes<'a>(
        &self,
        labels: impl IntoIterator<Item = &'a str>,
    ) -> Vec<Arc<RouteMetrics>> {
        let make = |label: &str| RouteMetrics::new(label, self.shards);
        let found = self.routes.get(labels, make).into_iter();
        let or_overflow = |route: Option<_>| {
            route.unwrap_or_else(|| {
                self.limit_hit(Limit::RouteLabels);
                self.overflow.clone()
            })
        };
        found.map(or_overflow).collect()
    }

    /// The counters of requests that no route matched.
    pub fn no_route(&self) -> &Arc<RouteMetrics> {
        &self.no_route
    }

    /// The counters of a pool, kept by name like those of a route; those of [`OVERFLOW`] beyond
    /// [`MAX_POOLS`].
    pub fn register_pool(&self, name: &str) -> Arc<PoolMetrics> {
        if name == OVERFLOW {
            // Two series of one name would make a monitoring system refuse the whole scrape.
            return self.overflow_pool.clone();
        }
        let make = |name: &str| PoolMetrics::new(name, self.shards);
        let found = self.pools.get([name], make).pop().flatten();
        found.unwrap_or_else(|| self.overflow_pool.clone())
    }

    /// Begins a request; it ends when the answer is dropped.
    #[inline]
    pub fn begin_request(&self) -> InFlight {
        InFlight {
            _worker: self.worker().clone(),
        }
    }

    /// Requests begun and not ended. Exact when nothing begins or ends at the same time.
    pub fn in_flight(&self) -> u64 {
        let references = self.workers.iter().map(Arc::strong_count);
        (references.sum::<usize>() - self.workers.len()) as u64
    }

    /// Connections of clients.
    pub fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    /// Counts one hit of a limit.
    #[inline]
    pub fn limit_hit(&self, limit: Limit) {
        self.worker().limits.0[limit as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How often a limit was hit so far.
    pub fn limit_hits(&self, limit: Limit) -> u64 {
        let counters = self.workers.iter().map(|w| &w.limits.0[limit as usize]);
        counters.map(|n| n.load(Ordering::Relaxed)).sum()
    }

    /// Counts that a connection had to wait because the process had run out of what it takes.
    pub(crate) fn accept_failed(&self) {
        self.worker()
            .accept_failures
            .fetch_add(1, Ordering::Relaxed);
    }

    fn accept_failures(&self) -> u64 {
        let counters = self.workers.iter().map(|w| &w.accept_failures);
        counters.map(|n| n.load(Ordering::Relaxed)).sum()
    }

    /// Counts one connection of a client that is closed before its first request.
    pub(crate) fn connection_refused(&self, reason: RefusedConnection) {
        self.worker().refused[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn connections_refused(&self, reason: RefusedConnection) -> u64 {
        let counters = self.workers.iter().map(|w| &w.refused[reason as usize]);
        counters.map(|n| n.load(Ordering::Relaxed)).sum()
    }

    /// Counts one handshake of TLS with a client that has begun to speak, or said nothing in time.
    pub(crate) fn tls_handshake(&self, done: bool) {
        self.worker().handshakes[usize::from(done)].fetch_add(1, Ordering::Relaxed);
    }

    fn tls_handshakes(&self, done: bool) -> u64 {
        let counters = self
            .workers
            .iter()
            .map(|w| &w.handshakes[usize::from(done)]);
        counters.map(|n| n.load(Ordering::Relaxed)).sum()
    }

    /// Counts one call that a hook has made: whether an answer came, and how long that took.
    pub(crate) fn outbound_call(&self, outcome: Result<(), CallFailureKind>, duration: Duration) {
        self.outbound.record(outcome, duration);
    }

    /// Counts a background hook that begins to run.
    pub(crate) fn background_run(&self) {
        self.background.runs.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a background hook that failed.
    pub(crate) fn background_failure(&self) {
        self.background.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one request that a filter of authentication did not let through.
    pub(crate) fn auth_denied(&self, filter: AuthFilter, outcome: AuthOutcome) {
        self.auth.denied(filter, outcome);
    }

    /// All metrics in the text format 0.0.4 of Prometheus, of type [`CONTENT_TYPE`]. A route
    /// appears with its first request. Takes milliseconds with thousands of routes: not for a
    /// proxy worker.
    pub fn render(&self, input: &ScrapeInput) -> Vec<u8> {
        exposition::render(self, input)
    }

    fn scrape_routes(&self, now: Instant) -> Vec<Arc<RouteMetrics>> {
        let mut routes = self.routes.scrape(now);
        routes.push(self.no_route.clone());
        routes.push(self.overflow.clone());
        routes
    }

    fn scrape_pools(&self, now: Instant) -> Vec<Arc<PoolMetrics>> {
        let mut pools = self.pools.scrape(now);
        let (fresh, reused) = self.overflow_pool.connections();
        let failed = self.overflow_pool.failures().any(|(_, n)| n > 0)
            || self.overflow_pool.errors().next().is_some();
        if fresh + reused > 0 || failed {
            pools.push(self.overflow_pool.clone());
        }
        pools
    }
}
