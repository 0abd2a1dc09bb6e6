//! The task of one pool.

use std::collections::{HashMap, HashSet};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::probe::Prober;
use super::repeated::{self, Subject};
use crate::config::Target;
use crate::metrics::PoolMetrics;
use crate::pools::{EndpointId, Event, Pool};

/// The least time between two looks at a pool: while everything fails, alarms come all the time.
const LEAST: Duration = Duration::from_millis(20);

/// Tells the keeper that checks have another verdict.
#[derive(Debug)]
pub(super) struct Verdicts {
    changed: AtomicBool,
    alarm: Arc<Notify>,
}

impl Verdicts {
    pub(super) fn changed(&self) {
        self.changed.store(true, Relaxed);
        self.alarm.notify_one();
    }
}

/// Ends the task of an endpoint when it is dropped.
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Looks after a pool until it is gone. Holds it only while it looks at it.
pub(super) fn keep(
    pool: &Arc<Pool>,
    metrics: Arc<PoolMetrics>,
    prober: Arc<Prober>,
) -> impl Future<Output = ()> + Send + use<> {
    let alarm = pool.alarm().clone();
    let mut looking = Looking {
        metrics,
        prober,
        verdicts: Arc::new(Verdicts {
            changed: AtomicBool::new(false),
            alarm: alarm.clone(),
        }),
        tasks: HashMap::new(),
        panics: false,
        compared: Instant::now(),
    };
    let pool = Arc::downgrade(pool);
    async move {
        while let Some(next) = pool.upgrade().map(|pool| looking.look(&pool)) {
            tokio::time::sleep(LEAST).await;
            let due = async {
                match next {
                    Some(next) => tokio::time::sleep_until(next.into()).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = alarm.notified() => {}
                () = due => {}
            }
        }
    }
}

/// What the task of a pool knows between two looks.
struct Looking {
    metrics: Arc<PoolMetrics>,
    prober: Arc<Prober>,
    verdicts: Arc<Verdicts>,
    /// Those that check endpoints.
    tasks: HashMap<EndpointId, Task>,
    /// Whether the pool panicked when it was looked at last.
    panics: bool,
    /// When latencies were compared last.
    compared: Instant,
}

impl Looking {
    /// Looks at the pool once; when the next look is due without an alarm.
    fn look(&mut self, pool: &Pool) -> Option<Instant> {
        let now = Instant::now();
        let limits = &pool.config().ejection;
        let compares = pool.compares_latencies();
        let is_compared = compares && now >= self.compared + limits.latency_interval;
        if is_compared {
            self.compared = now;
        }
        let review = pool.review(now, is_compared);
        let mut changed = self.verdicts.changed.swap(false, Relaxed);
        for event in &review.events {
            changed |= tell(pool, &self.metrics, event);
        }
        if changed {
            pool.rebuild();
        }
        if pool.is_panicking() != self.panics {
            self.panics = !self.panics;
            tell_panic(pool, self.panics);
        }
        self.follow(pool);
        let next = compares.then(|| self.compared + limits.latency_interval);
        [review.next, next].into_iter().flatten().min()
    }

    /// Gives each endpoint that is to be checked a task, and ends those of endpoints that are gone.
    fn follow(&mut self, pool: &Pool) {
        let Some(check) = &pool.config().health else {
            return;
        };
        let endpoints = pool.endpoints();
        let present: HashSet<EndpointId> = endpoints.iter().map(|one| one.id()).collect();
        self.tasks.retain(|id, _| present.contains(id));
        for endpoint in endpoints.iter() {
            self.tasks.entry(endpoint.id()).or_insert_with(|| {
                let subject = Subject {
                    pool: pool.name().to_owned(),
                    host: host(pool),
                    endpoint: Arc::downgrade(endpoint),
                    metrics: self.metrics.clone(),
                    verdicts: self.verdicts.clone(),
                };
                let task = repeated::check(subject, check.clone(), self.prober.clone());
                Task(tokio::spawn(task).abort_handle())
            });
        }
    }
}

/// What a pool is called by: its first name, as it is configured.
fn host(pool: &Pool) -> Option<String> {
    let mut targets = pool.config().targets.iter();
    targets.find_map(|target| match &target.target {
        Target::Name { host, port } => Some(format!("{}:{port}", host.trim_end_matches('.'))),
        Target::Address(_) | Target::Srv { .. } | Target::Unix(_) => None,
    })
}

/// Whether another choice of endpoints follows from it.
fn tell(pool: &Pool, metrics: &PoolMetrics, event: &Event) -> bool {
    let pool = pool.name();
    match event {
        Event::Ejected(endpoint, reason, time) => {
            metrics.ejected(*reason);
            tracing::warn!(
                "upstream ejected pool={pool} endpoint={} reason={} for={:.3}s last={:?}",
                endpoint.address(),
                reason.name(),
                time.as_secs_f64(),
                endpoint.last_failure(),
            );
            true
        }
        Event::Spared(endpoint, reason) => {
            metrics.spared();
            tracing::debug!(
                "upstream not ejected pool={pool} endpoint={} reason={}: too many are",
                endpoint.address(),
                reason.name(),
            );
            false
        }
        Event::Returned(endpoint) => {
            let address = endpoint.address();
            tracing::info!("upstream used again pool={pool} endpoint={address}");
            true
        }
    }
}

fn tell_panic(pool: &Pool, panics: bool) {
    let pool = pool.name();
    if panics {
        tracing::warn!("upstream panic pool={pool}: too many targets are out, so all are used");
    } else {
        tracing::info!("upstream panic over pool={pool}");
    }
}
