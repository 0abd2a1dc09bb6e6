//! The generation in force, as the reload pipeline and the admin listener see it.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use edgewright_script::{diagnostic::Diagnostic, engine::suspended_hooks, state::StateStore};
use serde_json::json;

use crate::{
    admin::{Operations, ReloadAnswer},
    config::Config,
    dns::Resolver,
    files::Folder,
    generation::Generation,
    health::Health,
    jwks::KeySets,
    last_good::LastGood,
    lifecycle::Lifecycle,
    metrics::{ReloadSample, ScrapeInput, ThrottlingSample},
    pools::Readiness,
    proxy::Shared,
    reload::{Outcome, ReloadHandle, ReloadStatus, Reloadable},
    resources::cpu::Cpu,
    server::ConnectionLimit,
    source::{LastRead, Refused, Source},
};

/// The generation in force, replaced by what the files say.
pub struct Live {
    source: Source,
    shared: Arc<Shared>,
    /// Looks after the pools of the generation in force.
    health: Health,
    /// What the last attempt read; `None` when it got no consistent reading.
    last: Option<LastRead>,
    /// The configuration at the start: what only a restart changes is in force as it says.
    started_with: Config,
}

impl Live {
    /// `last` is what the load at the start read, `started_with` the configuration that was loaded.
    pub(crate) fn new(
        source: Source,
        shared: Arc<Shared>,
        health: Health,
        last: Option<LastRead>,
        started_with: Config,
    ) -> Self {
        Self {
            source,
            shared,
            health,
            last,
            started_with,
        }
    }

    /// Has the key sets of `generation` fetched, waiting for them at most for `wait`, and its targets checked, and
    /// those of no other.
    fn look_after(&self, generation: &Arc<Generation>, wait: Duration) -> Result<(), String> {
        let sets = self.source.key_sets.serve(generation, wait);
        sets.map_err(|error| format!("key sets can't be fetched: {error}"))?;
        let health = self.health.serve(generation);
        health.map_err(|error| format!("targets can't be checked: {error}"))
    }

    /// Keeps the files as the last good ones, unless a certificate among them is not: a process can't start with that.
    fn keep(&self, folder: &Folder, generation: &Generation) {
        if generation.tls.problems().is_empty() {
            self.source.keep(folder, &generation.revision);
        }
    }
}

impl Reloadable for Live {
    fn changed(&mut self) -> bool {
        self.last.as_ref().is_none_or(|last| !last.is_current())
    }

    fn reload(&mut self) -> Outcome {
        let serving = self.shared.generation.load_full();
        let compiled = match self.source.compile() {
            Ok(compiled) => compiled,
            Err(Refused { diagnostics, last }) => {
                self.last = last;
                return Outcome::Failed {
                    errors: diagnostics.0,
                };
            }
        };
        self.last = Some(LastRead::of(&compiled.folder));
        let folder = compiled.folder.clone();
        if folder.fingerprint() == serving.fingerprint {
            self.keep(&folder, &serving);
            return Outcome::Unchanged {
                revision: serving.revision.clone(),
            };
        }
        if compiled.program.routes.is_empty() && !serving.program.routes.is_empty() {
            // What an interrupted or slow writer leaves behind for a moment.
            let error = "the program has no routes; the one that serves has some";
            return Outcome::Failed {
                errors: vec![Diagnostic::error(error).at(&compiled.config.routes, 1, 1)],
            };
        }
        for warning in &compiled.warnings {
            tracing::warn!("{}", warning.summary());
        }
        let startup_timeout = compiled.config.dns.startup_timeout;
        match self.source.generation(compiled, Some(&serving)) {
            Err(errors) => Outcome::Failed { errors: errors.0 },
            Ok(generation) => {
                // A pool that is new gets its first answer before it gets requests.
                generation.pools.wait_ready(startup_timeout);
                let waiting = restart_required(&self.started_with, &serving.config);
                for key in restart_required(&self.started_with, &generation.config) {
                    if !waiting.contains(&key) {
                        tracing::warn!("{key} has changed: it takes effect at the next start");
                    }
                }
                for problem in generation.tls.problems() {
                    tracing::error!("{problem}");
                }
                let outcome = Outcome::Loaded {
                    revision: generation.revision.clone(),
                    summary: generation.summary(),
                    changes: Box::new(generation.changes_since(&serving)),
                };
                let generation = Arc::new(generation);
                if let Err(error) = self.look_after(&generation, startup_timeout) {
                    // No thread could be made. What serves is looked after again, as far as that goes.
                    self.source.resolver.configure(&serving.config.dns);
                    let _ = self.look_after(&serving, Duration::ZERO);
                    return Outcome::Failed {
                        errors: vec![Diagnostic::error(error)],
                    };
                }
                self.keep(&folder, &generation);
                self.shared.generation.store(generation);
                self.shared.swapped.send_replace(());
                outcome
            }
        }
    }

    fn watched_dirs(&self) -> Vec<PathBuf> {
        let known = self.last.as_ref().map(|last| last.watched.clone());
        known.unwrap_or_else(|| vec![self.source.folder_path()])
    }
}

/// What differs and can't be changed while the process runs.
fn restart_required(started: &Config, new: &Config) -> Vec<&'static str> {
    // Of HTTP/2, Pingora is told once.
    let http2 = started.listeners.iter().any(|listener| listener.http2);
    let (limits, now) = (&started.limits, &new.limits);
    let differs = [
        (
            "[server] threads",
            started.server.threads != new.server.threads,
        ),
        (
            "[server] upstream_keepalive",
            started.server.upstream_keepalive != new.server.upstream_keepalive,
        ),
        ("[[listeners]]", sockets(started) != sockets(new)),
        ("[admin] address", started.admin != new.admin),
        ("[health] address", started.health != new.health),
        ("[log]", started.log != new.log),
        (
            "[limits] connections",
            limits.connections != now.connections,
        ),
        (
            "[limits] keepalive_requests",
            limits.keepalive_requests != now.keepalive_requests,
        ),
        (
            "[limits] keepalive_timeout (for HTTP/2)",
            http2 && limits.keepalive_timeout != now.keepalive_timeout,
        ),
        (
            "[limits] request_header (for HTTP/2)",
            http2 && limits.request_header != now.request_header,
        ),
        (
            "[limits] request_headers (for HTTP/2)",
            http2 && limits.request_headers != now.request_headers,
        ),
    ];
    differs
        .into_iter()
        .filter_map(|(key, differs)| differs.then_some(key))
        .collect()
}

/// What is fixed of the listeners: where they are, and what connections begin with. Certificates and the like are
/// looked up at each handshake.
fn sockets(config: &Config) -> Vec<(SocketAddr, bool, bool, bool)> {
    let sockets = config.listeners.iter().map(|listener| {
        let has_tls = listener.tls.is_some();
        let prior_knowledge = listener.http2 && !has_tls;
        (
            listener.address,
            listener.proxy_protocol,
            has_tls,
            prior_knowledge,
        )
    });
    sockets.collect()
}

/// What the admin and health listeners ask.
pub struct Desk {
    /// What all requests share.
    pub shared: Arc<Shared>,
    /// The reload pipeline.
    pub reload: ReloadHandle,
    /// Starting, serving or ending.
    pub lifecycle: Arc<Lifecycle>,
    /// Resolves the names of pools.
    pub resolver: Arc<Resolver>,
    /// What the process may use.
    pub cpu: Cpu,
    /// Worker threads.
    pub threads: usize,
    /// The limit on open files.
    pub open_files: u64,
    /// How many connections of clients there may be.
    pub connections: Arc<ConnectionLimit>,
    /// What programs count and cache.
    pub state: StateStore,
    /// Key sets.
    pub key_sets: Arc<KeySets>,
    /// Where files that were loaded are kept, if they are.
    pub last_good: Option<Arc<LastGood>>,
    /// The configuration at the start: what only a restart changes is in force as it says.
    pub started_with: Config,
}

/// How long `POST /reload` waits for its outcome.
const RELOAD_WAIT: Duration = Duration::from_secs(60);

impl Operations for Desk {
    fn readiness(&self) -> Result<(), String> {
        self.lifecycle.readiness()?;
        let generation = self.shared.generation.load();
        if generation.can_serve() {
            return Ok(());
        }
        let waiting: Vec<String> = generation
            .pools
            .iter()
            .filter_map(|pool| match pool.readiness() {
                Readiness::Ready => None,
                Readiness::Waiting(names) => Some(names.join(", ")),
            })
            .collect();
        Err(if waiting.is_empty() {
            "no pool has an address".to_owned()
        } else {
            format!(
                "no pool has an address yet; waiting for {}",
                waiting.join(", ")
            )
        })
    }

    fn metrics(&self) -> Vec<u8> {
        let generation = self.shared.generation.load();
        let status = self.reload.status();
        let input = ScrapeInput {
            reload: ReloadSample {
                degraded: self
                    .last_good
                    .as_ref()
                    .is_some_and(|kept| kept.is_degraded()),
                keep_failures: self.last_good.as_ref().map(|kept| kept.failures()),
                ..reload_sample(&status)
            },
            dns: self.resolver.snapshot().into(),
            pools: generation
                .pools
                .iter()
                .map(|pool| pool.snapshot().into())
                .collect(),
            throttling: self.cpu.throttling().map(|throttling| ThrottlingSample {
                periods: throttling.periods,
                throttled_periods: throttling.throttled_periods,
                throttled_micros: throttling.throttled_micros,
            }),
            waiting: suspended_hooks(),
            bodies: crate::proxy::kept_bytes(),
            mirrors: crate::proxy::mirrors_in_flight(),
            threads: self.threads,
            open_files_limit: self.open_files,
            connections_limit: self.connections.most(),
            state: self.state.samples(),
            script: self.state.metric_samples(),
            jwks: self.key_sets.samples(),
            certificates: generation.tls.samples(),
        };
        self.shared.metrics.render(&input)
    }

    fn status(&self) -> serde_json::Value {
        let generation = self.shared.generation.load();
        let reload = self.reload.status();
        let pools: Vec<_> = generation
            .pools
            .iter()
            .map(|pool| pool.snapshot())
            .collect();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "revision": reload.revision,
            "degraded": self.last_good.as_ref().is_some_and(|kept| kept.is_degraded()),
            "loaded_at": reload.loaded_at,
            "last_attempt": reload.last_attempt,
            "last_error": reload.last_error,
            "reloads": reload.counts,
            "watching": reload.watching,
            "polling": reload.polling,
            "generations": self.shared.metrics.generations(),
            "restart_required": restart_required(&self.started_with, &generation.config),
            "uptime": self.lifecycle.uptime().as_secs_f64(),
            "ready": self.readiness().err().map_or_else(|| json!(true), |reason| json!(reason)),
            "threads": self.threads,
            "cpu": self.cpu.to_string(),
            "open_files_limit": self.open_files,
            "connections": self.shared.metrics.connections().open(),
            "connections_limit": self.connections.most(),
            "requests_in_flight": self.shared.metrics.in_flight(),
            "routes": generation.program.routes.len(),
            "pools": pools,
            "dns": self.resolver.snapshot(),
            "certificates": generation.tls.status(),
        })
    }

    fn reload(&self) -> ReloadAnswer {
        let failed = |errors: &[Diagnostic]| ReloadAnswer::Failed {
            errors: errors.iter().map(Diagnostic::summary).collect(),
        };
        match self.reload.request(RELOAD_WAIT) {
            Ok(Outcome::Loaded { revision, .. }) => ReloadAnswer::Loaded { revision },
            Ok(Outcome::Unchanged { revision }) => ReloadAnswer::Unchanged { revision },
            Ok(Outcome::Failed { errors }) => failed(&errors),
            Err(error) => ReloadAnswer::Failed {
                errors: vec![error.to_string()],
            },
        }
    }
}

fn reload_sample(status: &ReloadStatus) -> ReloadSample {
    ReloadSample {
        loaded: status.counts.loaded,
        unchanged: status.counts.unchanged,
        failed: status.counts.failed,
        last_successful: status.last_error.is_none(),
        last_success: Some(status.loaded_at),
        last_duration: status.last_attempt.as_ref().map(|attempt| attempt.duration),
        watch_errors: status.watch_errors,
        revision: status.revision.clone(),
        ..ReloadSample::default()
    }
}
