//! `edgewright run`: from files to a serving process, and to its end.

use std::{
    io::ErrorKind,
    net::{SocketAddr, TcpListener, TcpStream},
    os::{
        linux::net::SocketAddrExt as _,
        unix::{self, net::UnixListener},
    },
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use arc_swap::ArcSwap;
use edgewright_script::state::StateStore;
use tokio::sync::watch;

use super::{WRONG, WRONG_USE, report};
use crate::{
    admin, background,
    config::{Config, Listener, Overrides, Threads, check_zone},
    dns::Resolver,
    health::Health,
    jwks::KeySets,
    lifecycle::Lifecycle,
    live::{Desk, Live},
    logging,
    metrics::Metrics,
    outbound::{Client, Roots},
    proxy::{Edge, Shared},
    reload,
    resources::{cgroup, cpu::Cpu, keepalive, nofile},
    server::{self, Connections, Workers},
    shutdown::Endings,
    source::{self, Compiled, LastRead, Source},
    worker,
};

/// How long a listener may take to answer after the start.
const LISTEN_WAIT: Duration = Duration::from_secs(30);

pub(super) fn run(path: PathBuf, listen: Vec<SocketAddr>) -> ExitCode {
    let from_environment = |name: &str| {
        let Some(text) = std::env::var_os(name) else {
            return Ok(None);
        };
        let address = text.to_str().and_then(|text| text.parse().ok());
        address.map(Some).ok_or_else(|| {
            eprintln!("error: {name} is no address: write it as 0.0.0.0:8080");
            ExitCode::from(WRONG_USE)
        })
    };
    let defaults = from_environment("EDGEWRIGHT_LISTEN")
        .and_then(|listen| Ok((listen, from_environment("EDGEWRIGHT_HEALTH")?)));
    let (default_listen, default_health) = match defaults {
        Ok(defaults) => defaults,
        Err(code) => return code,
    };
    let default_zone = match zone() {
        Ok(zone) => zone,
        Err(message) => {
            eprintln!("error: {ZONE}: {message}");
            return ExitCode::from(WRONG_USE);
        }
    };
    let overrides = Overrides {
        listen,
        default_listen,
        default_health,
        default_zone,
    };
    serve(path, overrides, |_| Ok(()))
}

/// The variable that names the zone of the replica, which the files that all replicas share can't know.
const ZONE: &str = "EDGEWRIGHT_ZONE";

/// An empty one is none: a label that a node doesn't have comes out so.
fn zone() -> Result<Option<String>, String> {
    let Some(zone) = std::env::var_os(ZONE).filter(|zone| !zone.is_empty()) else {
        return Ok(None);
    };
    let zone = zone.to_string_lossy().into_owned();
    check_zone(&zone).map(|()| Some(zone))
}

/// Serves until the process is told to end. `add` may start workers of its own.
pub(super) fn serve(
    path: PathBuf,
    overrides: Overrides,
    add: impl FnOnce(&Workers) -> anyhow::Result<()>,
) -> ExitCode {
    let state = StateStore::default();
    let compiled = source::compile_with(&path, &overrides, &state);
    let compiled = match compiled.and_then(Compiled::whole) {
        Ok(compiled) => compiled,
        Err(refused) => {
            report::refused(&refused);
            return ExitCode::from(WRONG);
        }
    };
    logging::start(&compiled.config.log);
    let ended = start(path, overrides, compiled, state, add);
    if let Err(error) = &ended {
        tracing::error!("{error:#}");
    }
    logging::finish();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(WRONG),
    }
}

fn start(
    path: PathBuf,
    overrides: Overrides,
    compiled: Compiled,
    state: StateStore,
    add: impl FnOnce(&Workers) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
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
    check_free(&config)?;

    let metrics = Arc::new(Metrics::new(threads));
    let resolver = Arc::new(Resolver::start(&config.dns)?);
    let roots = Arc::new(Roots::default());
    let key_sets = Arc::new(KeySets::new(
        resolver.clone(),
        metrics.clone(),
        roots.clone(),
    ));
    let source = Source {
        path,
        overrides,
        resolver: resolver.clone(),
        metrics: metrics.clone(),
        workers: threads,
        state: state.clone(),
        key_sets: key_sets.clone(),
    };
    let last = LastRead::of(&compiled.folder);
    for warning in &compiled.warnings {
        tracing::warn!("{}", warning.summary());
    }
    let generation = source.generation(compiled, None)?;
    tracing::info!(
        "loaded revision={} {}",
        generation.revision,
        generation.summary()
    );
    let initial = reload::Initial {
        revision: generation.revision.clone(),
        loaded_at: generation.loaded_at,
    };
    let shared = Arc::new(Shared {
        generation: ArcSwap::from_pointee(generation),
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
    let memory = cgroup::memory_limit(Path::new("/"));
    let most = config.limits.connections;
    let most = most.unwrap_or_else(|| server::auto(open_files.after, memory));
    tracing::info!("connections of clients: limit={most}");
    let connections = Arc::new(Connections::new(most, threads));
    let desk = Arc::new(Desk {
        shared: shared.clone(),
        reload,
        lifecycle: lifecycle.clone(),
        resolver,
        cpu,
        threads,
        open_files: open_files.after,
        connections: connections.clone(),
        state,
        key_sets: key_sets.clone(),
        started_with: config.clone(),
    });
    let _admin = start_admin(&config, desk.clone())?;

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
    let kept = config.server.upstream_keepalive;
    let kept = kept.unwrap_or_else(|| keepalive::auto(open_files.after));
    let starting = wait_for_turn()?;
    check_free(&config)?;
    let workers = Workers::default();
    let serving = shared.clone();
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
        let kept = kept.div_ceil(threads);
        let server = server::proxy(&config, edge, &connections, number, kept)?;
        let name = format!("worker-{number}");
        workers.start(&name, move |closing| async move {
            let background = async {
                if number == 0 {
                    background::run(shared.clone(), client.clone(), closing.clone()).await;
                }
            };
            let follow = worker::follow(shared.clone(), client.clone());
            tokio::join!(server.serve(closing.clone()), background, follow);
        })?;
    }
    announce(&config, &lifecycle)?;
    drop(starting);
    endings.serve_until_end(&lifecycle, &workers, &metrics, || {
        serving.generation.load().config.server.shutdown
    });
    Ok(())
}

/// Lets one process at a time start in a network namespace, until its listeners answer. Workers share
/// an address (SO_REUSEPORT), so two processes of one user could, too, without noticing: between
/// looking whether it is free and listening nobody else may come.
fn wait_for_turn() -> anyhow::Result<UnixListener> {
    let name = unix::net::SocketAddr::from_abstract_name("edgewright-starting")?;
    let deadline = Instant::now() + LISTEN_WAIT;
    loop {
        match UnixListener::bind_addr(&name) {
            Ok(turn) => return Ok(turn),
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error).context("another edgewright is starting all the time"),
        }
    }
}

/// Pingora would try for 30 s and then panic; this makes it an ordinary error.
fn check_free(config: &Config) -> anyhow::Result<()> {
    for Listener { address, .. } in &config.listeners {
        TcpListener::bind(address).with_context(|| format!("can't listen on {address}"))?;
    }
    Ok(())
}

fn start_admin(config: &Config, desk: Arc<Desk>) -> anyhow::Result<Option<admin::Server>> {
    let mut listeners = Vec::new();
    for (role, name, address) in [
        (admin::Role::Admin, "admin", config.admin),
        (admin::Role::Health, "health", config.health),
    ] {
        let Some(address) = address else { continue };
        let listener = admin::Listener::bind(role, address)
            .with_context(|| format!("can't listen on {address} ([{name}] address)"))?;
        tracing::info!("{name} on {}", listener.address());
        listeners.push(listener);
    }
    if listeners.is_empty() {
        return Ok(None);
    }
    let server = admin::Server::start(listeners, desk, admin::Settings::default())?;
    Ok(Some(server))
}

/// Says where the proxy listens, once it does.
fn announce(config: &Config, lifecycle: &Lifecycle) -> anyhow::Result<()> {
    for listener in &config.listeners {
        wait_until_answers(listener.address)?;
        tracing::info!("listening on {}", listener.address);
    }
    lifecycle.serving();
    Ok(())
}

fn wait_until_answers(address: SocketAddr) -> anyhow::Result<()> {
    let mut probe = address;
    if probe.ip().is_unspecified() {
        probe.set_ip(match probe.ip() {
            std::net::IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            std::net::IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    let deadline = Instant::now() + LISTEN_WAIT;
    while TcpStream::connect_timeout(&probe, Duration::from_secs(1)).is_err() {
        if Instant::now() > deadline {
            bail!(
                "{address} does not answer {} s after the start",
                LISTEN_WAIT.as_secs()
            );
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
