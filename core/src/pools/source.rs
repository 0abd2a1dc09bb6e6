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
    /// Its share among the addresses of the source, 1 to [`MOST_WEIGHT`]; `None` when the source says
    /// nothing about it.
    pub(super) weight: Option<u16>,
    /// Others of the source come first.
    pub(super) backup: bool,
}

/// Weights of SRV records go up to 65,535; a table of turns can't.
const MOST_WEIGHT: u16 = 100;

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
                    weight: None,
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
    let weights: Vec<u16> = servers.iter().map(|server| server.record.weight).collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::with_capacity(servers.len());
    for (server, weight) in servers.iter().zip(scaled(&weights)) {
        for address in server.addresses() {
            if seen.insert(address) {
                found.push(Found {
                    address,
                    weight: Some(weight),
                    backup: Some(server.record.priority) != first,
                });
            }
        }
    }
    found
}

/// Brings weights into 1..=[`MOST_WEIGHT`] and keeps their proportions as well as that allows. A
/// weight of 0 is the smallest share beside others, and an equal one among equals (RFC 2782).
fn scaled(weights: &[u16]) -> Vec<u16> {
    let most = weights.iter().copied().max().unwrap_or_default();
    if weights.iter().all(|weight| *weight == most) {
        return vec![1; weights.len()];
    }
    let share = |weight: u16| {
        if most <= MOST_WEIGHT {
            return weight.max(1);
        }
        let (weight, most) = (u32::from(weight), u32::from(most));
        let scaled = (weight * u32::from(MOST_WEIGHT) + most / 2) / most;
        u16::try_from(scaled).unwrap_or(MOST_WEIGHT).max(1)
    };
    let mut shares: Vec<u16> = weights.iter().map(|weight| share(*weight)).collect();
    let divisor = shares.iter().copied().fold(0, common_divisor);
    shares.iter_mut().for_each(|share| *share /= divisor.max(1));
    shares
}

fn common_divisor(a: u16, b: u16) -> u16 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_keep_their_proportions_within_bounds() {
        for (given, expected) in [
            (&[][..], &[][..]),
            (&[0], &[1]),
            (&[0, 0, 0], &[1, 1, 1]),
            (&[33, 33, 33], &[1, 1, 1]),
            (&[10, 20, 70], &[1, 2, 7]),
            (&[0, 5], &[1, 5]),
            (&[65_535, 0], &[100, 1]),
            (&[60_000, 30_000, 1], &[100, 50, 1]),
            (&[1000, 500], &[2, 1]),
        ] {
            assert_eq!(scaled(given), expected, "{given:?}");
        }
    }
}
