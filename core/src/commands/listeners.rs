//! The addresses that a process listens on: free ones, and those that another process has handed over.

use std::{
    io::ErrorKind,
    net::{SocketAddr, TcpListener},
    os::{
        linux::net::SocketAddrExt as _,
        unix::{self, net::UnixListener},
    },
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;

use crate::{
    admin,
    config::Config,
    live::Desk,
    server::Sockets,
    upgrade::{Handed, Purpose},
};

/// How long a start waits for its turn.
const TURN_WAIT: Duration = Duration::from_secs(30);

/// Lets one process at a time start in a network namespace, until it listens. Workers share
/// an address (SO_REUSEPORT), so two processes of one user could, too, without noticing: between
/// looking whether it is free and listening nobody else may come.
pub(super) fn wait_for_turn() -> anyhow::Result<UnixListener> {
    let name = unix::net::SocketAddr::from_abstract_name("edgewright-starting")?;
    let deadline = Instant::now() + TURN_WAIT;
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

/// Whether nobody else listens where this process has not taken over.
pub(super) fn check_free(config: &Config, own: &Sockets) -> anyhow::Result<()> {
    let addresses = config.listeners.iter().map(|listener| listener.address);
    for address in addresses.filter(|address| !own.has(*address)) {
        TcpListener::bind(address).map_err(|error| cant_listen(address, error))?;
    }
    Ok(())
}

/// What is told when an address can't be listened on.
pub(super) fn cant_listen(address: SocketAddr, error: std::io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context(format!("can't listen on {address}"))
}

/// What was handed over for requests, and for the admin and health listeners.
#[expect(clippy::type_complexity, reason = "two lists with their addresses")]
pub(super) fn sort(
    handed: Vec<Handed>,
) -> (
    Vec<(SocketAddr, TcpListener)>,
    Vec<(Purpose, SocketAddr, TcpListener)>,
) {
    let (mut listening, mut admin) = (Vec::new(), Vec::new());
    for one in handed {
        match one.purpose {
            Purpose::Listener => listening.push((one.address, one.socket)),
            other => admin.push((other, one.address, one.socket)),
        }
    }
    (listening, admin)
}

/// Takes over the admin and health listeners that were handed over, and binds the others.
pub(super) fn bind_admin(
    config: &Config,
    mut handed: Vec<(Purpose, SocketAddr, TcpListener)>,
) -> anyhow::Result<Vec<admin::Listener>> {
    let mut listeners = Vec::new();
    for (role, name, address) in [
        (admin::Role::Admin, "admin", config.admin),
        (admin::Role::Health, "health", config.health),
    ] {
        let Some(address) = address else { continue };
        let own = |(purpose, at, _): &(_, _, _)| *purpose == Purpose::from(role) && *at == address;
        let listener = match handed.iter().position(own) {
            Some(index) => admin::Listener::inherited(role, handed.swap_remove(index).2),
            None => admin::Listener::bind(role, address),
        };
        let listener =
            listener.with_context(|| format!("can't listen on {address} ([{name}] address)"))?;
        listeners.push(listener);
    }
    Ok(listeners)
}

/// Starts to answer there, if anywhere.
pub(super) fn start_admin(
    listeners: Vec<admin::Listener>,
    desk: &Arc<Desk>,
) -> anyhow::Result<Option<admin::Server>> {
    for listener in &listeners {
        let name = match listener.role() {
            admin::Role::Admin => "admin",
            admin::Role::Health => "health",
        };
        tracing::info!("{name} on {}", listener.address());
    }
    if listeners.is_empty() {
        return Ok(None);
    }
    let server = admin::Server::start(listeners, desk.clone(), admin::Settings::default())?;
    Ok(Some(server))
}
