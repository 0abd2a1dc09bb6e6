//! A target whose addresses come from DNS.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use crate::dns::{Listener, Resolver, Server, Service, State, Watched};

/// A target whose addresses come from DNS, and may change at any time.
#[derive(Clone)]
pub(super) enum Source {
    /// A name with the port that is configured.
    Name(Arc<Watched>, u16),
    /// A service, whose records say ports, weights and who stands in for whom.
    Service(Arc<Service>),
}

/// One address that a source leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) address: SocketAddr,
    /// Others of the source come first.
    pub(super) backup: bool,
}

impl Source {
    pub(super) fn name(resolver: &Resolver, host: &str, port: u16) -> Self {
        Self::Name(resolver.watch(host), port)
    }

    pub(super) fn service(resolver: &Resolver, name: &str) -> Self {
        Self::Service(resolver.watch_service(name))
    }

    pub(super) fn subscribe(&self, listener: Weak<dyn Listener>) {
        match self {
            Self::Name(watched, _) => watched.subscribe(listener),
            Self::Service(service) => service.subscribe(listener),
        }
    }

    /// The names that have not been answered yet, as they are written in the configuration or, of the
    /// servers of a service, in its records.
    pub(super) fn waiting(&self, names: &mut BTreeSet<String>) {
        let mut waits = |watched: &Watched| {
            if watched.state() == State::Unresolved {
                names.insert(watched.host().to_owned());
            }
        };
        match self {
            Self::Name(watched, _) => waits(watched),
            Self::Service(service) => {
                let servers = service.servers();
                for server in &*servers.list {
                    waits(&server.host);
                }
                if servers.state == State::Unresolved {
                    names.insert(format!("srv:{}", service.name()));
                }
            }
        }
    }

    /// The addresses now.
    pub(super) fn addresses(&self) -> Vec<Found> {
        match self {
            Self::Name(watched, port) => watched.read(|answer| {
                let addresses = answer.addresses.iter();
                let found = addresses.map(|ip| Found {
                    address: SocketAddr::new(*ip, *port),
                    backup: false,
                });
                found.collect()
            }),
            Self::Service(service) => of_servers(&service.servers().list),
        }
    }
}

/// The lowest number of priority goes first, all others stand in for it (RFC 2782). An address that
/// several records lead to gets what the first of them says.
fn of_servers(servers: &[Server]) -> Vec<Found> {
    let first = servers.iter().map(|server| server.record.priority).min();
    let mut seen = BTreeSet::new();
    let mut found = Vec::with_capacity(servers.len());
    for server in servers {
        for address in server.addresses() {
            if seen.insert(address) {
                found.push(Found {
                    address,
                    backup: Some(server.record.priority) != first,
                });
            }
        }
    }
    found
}
