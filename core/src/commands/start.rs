//! From files that are good to a process that serves, and to its end.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use edgewright_script::{diagnostic::Diagnostic, state::StateStore};
use tokio::sync::watch;

use super::listeners::{bind_admin, cant_listen, check_free, sort, start_admin, wait_for_turn};
use crate::{
    background,
    config::{Overrides, Threads},
    dns::Resolver,
    health::Health,
    in_force::InForce,
    jwks::KeySets,
    last_good::LastGood,
    lifecycle::Lifecycle,
    live::{Desk, Live},
    metrics::Metrics,
    outbound::{Client, Roots},
    proxy::{Edge, Shared},
    reload,
    resources::{cgroup, cpu::Cpu, keepalive, nofile, throttling},
    server::{self, ConnectionLimit, Sockets, Workers},
    shutdown::{Endings, Served},
    source::{Compiled, LastRead, Source},
    upgrade::{Heir, Waiting},
    worker,
};

/// How a process is to start.
pub(super) struct Start {
    /// What the user named.
    pub(super) path: PathBuf,
    /// What else the command line says.
    pub(super) overrides: Overrides,
    /// Where the last good files are kept, if they are.
    pub(super) last_good: Option<Arc<LastGood>>,
    /// Takes the listeners over from another process.
    pub(super) upgrade: bool,
}

/// What it starts with.
pub(super) struct Loaded {
    /// Good files.
    pub(super) compiled: Compiled,
    /// What was read of the files that the user named.
    pub(super) last: Option<LastRead>,
    /// Why those were refused, when `compiled` is something else.
    pub(super) refused: Vec<Diagnostic>,
}

/// Serves until the process is told to end. `add` may start workers of its own.
pub(super) fn start(
    start: Start,
    loaded: Loaded,
    state: StateStore,
    add: impl FnOnce(&Workers) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let Loaded {
        compiled,
        last,
        refused,
    } = loaded;
    let config = compiled.config.clone();
    let lifecycle = Arc::new(Lifecycle::default());
    let endings = Endings::listen()?;
    let open_files = nofile::raise().context("the limit on open files can't be read")?;
    tracing::info!("{open_files}");
    let cpu = Cpu::read();
    let threads = match config.server.threads {
        Threads::Auto => cpu.threads(),
        Threads::Count(count) => count,
    };
    tracing::info!("{}", cpu.line(threads));
    if !start.upgrade {
        check_free(&config, &Sockets::default())?;
    }

    let metrics = Arc::new(Metrics::new(threads));
    let resolver = Arc::new(Resolver::start(&config.dns)?);
    let roots = Arc::new(Roots::default());
    let key_sets = Arc::new(KeySets::new(
        resolver.clone(),
        metrics.clone(),
        roots.clone(),
    ));
    let source = Source {
        path: start.path,
        overrides: start.overrides,
        resolver: resolver.clone(),
        metrics: metrics.clone(),
        workers: threads,
        state: state.clone(),
        key_sets: key_sets.clone(),
        last_good: start.last_good.clone(),
    };
    for warning in &compiled.warnings {
        tracing::warn!("{}", warning.summary());
    }
    let folder = compiled.folder.clone();
    let generation = source.generation(compiled, None)?;
    tracing::info!(
        "loaded revision={} {}",
        generation.revision,
        generation.summary()
    );
    if refused.is_empty() {
        source.keep(&folder, &generation.revision);
    }
    drop(folder);
    let initial = reload::Initial {
        revision: generation.revision.clone(),
        loaded_at: generation.loaded_at,
        refused,
    };
    let shared = Arc::new(Shared {
        generation: InForce::new(generation),
        swapped: watch::Sender::new(()),
        metrics: metrics.clone(),
        lifecycle: lifecycle.clone(),
    });
    let health = Health::default();
    health
        .serve(&shared.generation.load())
        .context("targets can't be checked")?;
    let live = Live::new(source, shared.clone(), health, last, config.clone());
    let reload = reload::spawn(live, initial, reload::Options::default())?;
    let _hangup = reload::reload_on_hangup(&reload)?;
    let _throttling = throttling::watch(cpu.clone(), threads)?;
    let memory = cgroup::memory_limit(Path::new("/"));
    let most = config.limits.connections;
    let most = most.unwrap_or_else(|| server::auto(open_files.after, memory));
    tracing::info!("connections of clients: limit={most}");
    let limit = Arc::new(ConnectionLimit::new(most, threads));
    let desk = Arc::new(Desk {
        shared: shared.clone(),
        reload,
        lifecycle: lifecycle.clone(),
        resolver,
        cpu,
        threads,
        open_files: open_files.after,
        connections: limit.clone(),
        state,
        key_sets: key_sets.clone(),
        last_good: start.last_good,
        started_with: config.clone(),
    });
    let mut admin = match start.upgrade {
        true => None,
        false => start_admin(bind_admin(&config, Vec::new())?, &desk)?,
    };

    // A name that no resolver answers must not keep the proxy from starting.
    let pools_ready = shared
        .generation
        .load()
        .pools
        .wait_ready(config.dns.startup_timeout);
    if !pools_ready {
        tracing::warn!("some names are not resolved yet: their pools answer 503 until they are");
    }
    let serving = shared.generation.load_full();
    key_sets.serve(&serving, config.dns.startup_timeout)?;
    drop(serving);

    let mut heir = None;
    if let Some(path) = config
        .server
        .upgrade_socket
        .as_ref()
        .filter(|_| start.upgrade)
    {
        let waiting = Waiting::at(path)?;
        tracing::info!("upgrade: ready, waiting at {}", path.display());
        heir = waiting.heir(|| endings.came())?;
        if heir.is_none() {
            tracing::info!("shutting down: at once");
            return Ok(());
        }
    }
    let inherited = heir
        .as_mut()
        .map(|heir: &mut Heir| std::mem::take(&mut heir.sockets));
    let (listening, admin_sockets) = sort(inherited.unwrap_or_default());
    let starting = wait_for_turn()?;
    let mut sockets = Sockets::inherited(listening);
    check_free(&config, &sockets)?;
    let addresses = config.listeners.iter().map(|listener| listener.address);
    sockets
        .open(addresses, threads)
        .map_err(|(address, error)| cant_listen(address, error))?;
    drop(starting);

    let kept = config.server.upstream_keepalive;
    let kept = kept.unwrap_or_else(|| keepalive::auto(open_files.after));
    let workers = Workers::default();
    add(&workers)?;
    for number in 0..threads {
        let client = Client::new(
            desk.resolver.clone(),
            metrics.clone(),
            roots.clone(),
            kept.div_ceil(threads),
        );
        let edge = Edge::new(shared.clone(), client);
        let (client, shared) = (edge.client().clone(), shared.clone());
        let server = server::proxy(&config, edge, &sockets, &limit, (number, threads), kept);
        let server = server.context("the listeners can't be shared out")?;
        workers.serve(
            &format!("worker-{number}"),
            server,
            move |closing| async move {
                let background = async {
                    if number == 0 {
                        background::run(shared.clone(), client.clone(), closing).await;
                    }
                };
                tokio::join!(background, worker::follow(shared.clone(), client.clone()));
            },
        )?;
    }
    workers.wait_running()?;
    if let Some(heir) = heir {
        let bound = bind_admin(&config, admin_sockets)?;
        heir.take_over()
            .context("upgrade: the other process has given up, and goes on")?;
        admin = start_admin(bound, &desk)?;
    }
    workers.open();
    for listener in &config.listeners {
        tracing::info!("listening on {}", listener.address);
    }
    lifecycle.serving();
    let served = Served {
        lifecycle: &lifecycle,
        workers: &workers,
        metrics: &metrics,
        sockets,
        admin,
    };
    endings.serve_until_end(served, || {
        let generation = shared.generation.load();
        let server = &generation.config.server;
        (server.shutdown, server.upgrade_socket.clone())
    });
    Ok(())
}
