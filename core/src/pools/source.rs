//! Where the endpoints of a pool come from.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use super::endpoint::Address;
use crate::config::{Target, TargetTraits};
use crate::dns::{Listener, Resolver, Server, Service, State, Watched};

/// What a target leads to. What comes from DNS may change at any time.
#[derive(Clone)]
pub(super) enum Source {
    /// This address.
    Fixed(Address),
    /// A name with the port that is configured.
    Name(Arc<Watched>, u16),
    /// A service, whose records say ports, weights and who stands in for whom.
    Service(Arc<Service>),
}

impl Source {
    pub(super) fn new(target: &Target, resolver: &Resolver) -> Self {
        match target {
            Target::Address(address) => Self::Fixed(Address::Tcp(*address)),
            Target::Unix(path) => Self::Fixed(Address::Unix(path.clone())),
            Target::Name { host, port } => Self::Name(resolver.watch(host), *port),
            Target::Srv { name } => Self::Service(resolver.watch_service(name)),
        }
    }

    pub(super) fn subscribe(&self, listener: Weak<dyn Listener>) {
        match self {
            Self::Fixed(_) => {}
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
            Self::Fixed(_) => {}
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

    /// The addresses now, each with what it is in the pool, of a target with these `traits`.
    pub(super) fn addresses(&self, traits: &TargetTraits) -> Vec<(Address, TargetTraits)> {
        match self {
            Self::Fixed(address) => vec![(address.clone(), traits.clone())],
            Self::Name(watched, port) => watched.read(|answer| {
                let addresses = answer.addresses.iter();
                let found = addresses.map(|ip| {
                    let address = SocketAddr::new(*ip, *port);
                    (Address::Tcp(address), traits.clone())
                });
                found.collect()
            }),
            Self::Service(service) => of_servers(&service.servers().list, traits),
        }
    }
}

/// The lowest number of priority goes first, all others stand in for it; a weight counts as often as the target's own says
/// (RFC 2782). An address that several records lead to gets what the first of them says.
fn of_servers(servers: &[Server], traits: &TargetTraits) -> Vec<(Address, TargetTraits)> {
    let first = servers.iter().map(|server| server.record.priority).min();
    let heaviest = servers.iter().map(|server| server.record.weight).max();
    let heaviest = heaviest.unwrap_or_default();
    let mut seen = BTreeSet::new();
    let mut found = Vec::with_capacity(servers.len());
    for server in servers {
        for address in server.addresses() {
            if seen.insert(address) {
                let traits = TargetTraits {
                    weight: weight(server.record.weight, heaviest, traits.weight),
                    backup: traits.backup || Some(server.record.priority) != first,
                    zone: traits.zone.clone(),
                };
                found.push((Address::Tcp(address), traits));
            }
        }
    }
    found
}

/// The weight of a record times that of its target, smaller in the ratio to `heaviest` where that is too much. A record of weight 0
/// gets as little as there is; a target of weight 0 drains.
fn weight(record: u16, heaviest: u16, target: u16) -> u16 {
    if target == 0 {
        return 0;
    }
    let most = u32::from(u16::MAX / target);
    let record = match u32::from(heaviest) {
        heaviest if heaviest > most => u32::from(record) * most / heaviest,
        _ => u32::from(record),
    };
    // Not more than `most`.
    record.max(1) as u16 * target
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_keep_their_ratio() {
        assert_eq!(weight(10, 20, 1), 10);
        assert_eq!(weight(0, 20, 1), 1);
        assert_eq!(weight(0, 0, 3), 3);
        assert_eq!(weight(10, 20, 0), 0);
        assert_eq!(weight(u16::MAX, u16::MAX, 1), u16::MAX);
        assert_eq!(weight(u16::MAX, u16::MAX, 1000), 65_000);
        assert_eq!(weight(u16::MAX / 2, u16::MAX, 1000), 32_000);
    }
}
