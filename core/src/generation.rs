//! One generation: everything that requests are served with, immutable, behind one pointer.
//!
//! A request uses one generation to its last byte. A reload builds a new one beside it; what did
//! not change (pools with their connections and counters, route counters) is carried over.

use std::{
    collections::HashMap,
    mem,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use edgewright_script::{
    engine::{Failure, ScriptLimit},
    program::{HookId, PoolId, Program, Route, RouteId},
};

use crate::{
    config::Config,
    discard::discard,
    files::Fingerprint,
    metrics::{AuthFilter, AuthOutcome, Limit, Metrics, PoolMetrics, RouteMetrics},
    parcel::Parcel,
    pools::{Pool, Pools},
    proxy::ForwardAnswers,
    reload::{Changes, Counted},
    tls::TlsListeners,
};

/// Everything that requests are served with.
pub struct Generation {
    /// Its number in this process, for finding what belongs to it.
    pub(crate) number: u64,
    /// A short hash over all files that it was made of.
    pub revision: String,
    /// When it was made.
    pub loaded_at: SystemTime,
    /// The process's configuration as these files say it; what only a restart can change may
    /// differ from what is in force.
    pub config: Config,
    /// The program.
    pub program: Arc<Program>,
    /// The files that it was made of.
    pub fingerprint: Fingerprint,
    /// All pools by name.
    pub pools: Pools,
    /// What listeners with TLS show.
    pub tls: TlsListeners,
    by_pool: Vec<(Arc<Pool>, Arc<PoolMetrics>)>,
    by_route: Vec<Arc<RouteMetrics>>,
    metrics: Arc<Metrics>,
    /// Answers of services that `.forward_auth` asks, of the routes that keep them.
    forward_answers: HashMap<usize, Arc<ForwardAnswers>>,
    /// Interpreters that no worker has taken yet. Each worker takes one, once: the lock is not on
    /// the way of requests.
    interpreters: Mutex<Vec<Parcel>>,
}

/// What a generation is made of.
pub(crate) struct Parts {
    pub(crate) config: Config,
    pub(crate) program: Arc<Program>,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) pools: Pools,
    pub(crate) tls: TlsListeners,
    pub(crate) interpreters: Vec<Parcel>,
}

static NUMBER: AtomicU64 = AtomicU64::new(1);

impl Generation {
    /// Puts the parts together; counters of pools and routes go on under their names.
    ///
    /// `None` when the program names a pool that is not among the pools, which the loader rules
    /// out.
    pub(crate) fn new(parts: Parts, metrics: &Arc<Metrics>) -> Option<Self> {
        let by_pool = parts
            .program
            .pools
            .iter()
            .map(|declared| {
                let pool = parts.pools.get(&declared.name)?;
                Some((pool.clone(), metrics.register_pool(&declared.name)))
            })
            .collect::<Option<Vec<_>>>()?;
        let routes = parts.program.routes.iter().enumerate();
        let keeping = routes.filter(|(_, route)| {
            let auth = route.auth.as_ref().and_then(|auth| auth.forward.as_ref());
            auth.is_some_and(|forward| forward.rules.cache.is_some())
        });
        let forward_answers = keeping.map(|(index, _)| (index, Arc::default())).collect();
        let labels = parts.program.routes.iter().map(|route| &*route.label);
        metrics.generation_made();
        Some(Self {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            revision: parts.fingerprint.revision(),
            loaded_at: SystemTime::now(),
            by_route: metrics.register_routes(labels),
            metrics: metrics.clone(),
            by_pool,
            config: parts.config,
            program: parts.program,
            fingerprint: parts.fingerprint,
            pools: parts.pools,
            tls: parts.tls,
            forward_answers,
            interpreters: Mutex::new(parts.interpreters),
        })
    }

    /// The route with this number.
    pub fn route(&self, id: RouteId) -> &Route {
        self.program.route(id)
    }

    /// The counters of a route, or of requests that fit none.
    pub fn metrics_of(&self, route: Option<RouteId>) -> &RouteMetrics {
        match route {
            Some(route) => &self.by_route[route.index()],
            None => self.metrics.no_route(),
        }
    }

    /// Counts a hit of a limit.
    pub(crate) fn limit_passed(&self, limit: Limit) {
        self.metrics.limit_hit(limit);
    }

    /// Tells of a hook that failed: one log line and one metric.
    pub(crate) fn script_failure(&self, route: Option<RouteId>, hook: HookId, failure: &Failure) {
        let hook = self.program.hook(hook).kind.name();
        let metrics = self.metrics_of(route);
        metrics.script_failure(hook, failure.kind);
        if let Some(limit) = failure.limit {
            self.limit_hit(limit);
        }
        tracing::error!(
            "script failure route={} hook={hook} at={} kind={} error={}",
            metrics.label(),
            failure.place,
            failure.kind.name(),
            failure.message,
        );
    }

    /// The counters of the process.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Counts a hit of one of the script's limits.
    pub(crate) fn limit_hit(&self, limit: ScriptLimit) {
        self.metrics.limit_hit(match limit {
            ScriptLimit::Operations => Limit::ScriptOperations,
            ScriptLimit::Time => Limit::ScriptTime,
            ScriptLimit::Memory => Limit::ScriptMemory,
            ScriptLimit::CallDepth => Limit::ScriptCallDepth,
            ScriptLimit::String => Limit::ScriptString,
            ScriptLimit::Items => Limit::ScriptItems,
            ScriptLimit::Fetches => Limit::ScriptFetches,
            ScriptLimit::Waiting => Limit::ScriptWaiting,
        });
    }

    /// The pools that the program names, with their counters.
    pub(crate) fn counted_pools(&self) -> &[(Arc<Pool>, Arc<PoolMetrics>)] {
        &self.by_pool
    }

    /// The pools that the program names, in the order of their numbers.
    pub fn pools(&self) -> impl Iterator<Item = &Pool> {
        self.by_pool.iter().map(|(pool, _)| &**pool)
    }

    /// Counts a request that a filter of authentication did not let through.
    pub(crate) fn auth_denied(&self, filter: AuthFilter, outcome: AuthOutcome) {
        self.metrics.auth_denied(filter, outcome);
    }

    /// The answers that a route with `.forward_auth` keeps.
    pub(crate) fn forward_answers(&self, route: RouteId) -> Option<&Arc<ForwardAnswers>> {
        self.forward_answers.get(&route.index())
    }

    /// A pool and its counters.
    pub fn pool(&self, id: PoolId) -> &(Arc<Pool>, Arc<PoolMetrics>) {
        &self.by_pool[id.index()]
    }

    /// Takes one of the interpreters that were made with it.
    pub(crate) fn take_interpreter(&self) -> Option<Parcel> {
        let mut ready = self
            .interpreters
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        ready.pop()
    }

    /// How long ago it was made.
    pub fn age(&self) -> Duration {
        self.loaded_at.elapsed().unwrap_or_default()
    }

    /// What it holds, for log lines.
    pub fn summary(&self) -> String {
        format!(
            "routes={} pools={}",
            self.program.routes.len(),
            self.pools.len()
        )
    }

    /// What is different from `old`.
    pub fn changes_since(&self, old: &Self) -> Changes {
        let routes = |generation: &Self| {
            let outlines = generation.program.outlines().into_iter();
            outlines.map(|route| (route.identity, route.content))
        };
        // A pool whose settings are the same is the same one.
        let pools = |generation: &Self| -> Vec<(String, usize)> {
            let pools = generation.pools.iter();
            pools
                .map(|pool| (pool.name().to_owned(), Arc::as_ptr(pool).addr()))
                .collect()
        };
        let changes = Changes {
            routes: Counted::between(routes(old), routes(self)),
            pools: Counted::between(pools(old), pools(self)),
            unused: self.tls.unused(),
            ..Changes::default()
        };
        self.fingerprint.tell_changes(&old.fingerprint, changes)
    }

    /// Whether any pool has somebody to send requests to; also when there is no pool at all.
    pub fn can_serve(&self) -> bool {
        self.by_pool.is_empty() || self.by_pool.iter().any(|(pool, _)| pool.has_endpoints())
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        let ready = self.interpreters.get_mut();
        let ready = mem::take(ready.unwrap_or_else(PoisonError::into_inner));
        if !ready.is_empty() {
            // Their syntax trees need more stack than some threads have.
            discard(Box::new(ready));
        }
        self.metrics.generation_freed();
    }
}
