//! One service in use: the servers that its SRV records name (RFC 2782), each a name of its own.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use hickory_resolver::proto::rr::RData;
use serde::Serialize;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::kind::{FromRecord, Kind};
use super::known::Known;
use super::listeners::{Listener, Listeners};
use super::outcome::Outcome;
use super::resolver::Registry;
use super::snapshot::ServiceSnapshot;
use super::statistics::Statistics;
use super::watched::{State, Watched, lock};

/// The most servers that one service may have; the rest of a larger answer is left out. Each is a
/// name that is looked up.
pub(super) const MAX_SERVERS: usize = 512;

/// One SRV record. The order is that in which records are compared and cut off.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SrvRecord {
    /// Servers with a lower number are used first.
    pub priority: u16,
    /// The share among servers of one priority.
    pub weight: u16,
    /// Where the server listens.
    pub port: u16,
    /// The absolute name of the server, in lower case, with the dot at its end; `.` says that there
    /// is no such service.
    pub target: String,
}

impl FromRecord for SrvRecord {
    fn from_record(data: &RData) -> Option<Self> {
        let RData::SRV(srv) = data else {
            return None;
        };
        let mut target = srv.target.clone();
        target.set_fqdn(true);
        Some(Self {
            priority: srv.priority,
            weight: srv.weight,
            port: srv.port,
            target: target.to_ascii().to_ascii_lowercase(),
        })
    }
}

impl SrvRecord {
    /// Whether a connection can be made to it: it has a port, and its target is a name and no
    /// address (which would pass by the guard on answers).
    fn is_usable(&self) -> bool {
        let name = self.target.trim_end_matches('.');
        self.port != 0 && !name.is_empty() && name.parse::<std::net::IpAddr>().is_err()
    }
}

/// Takes out what can't be used, sorts, and cuts off what is too much. An answer of which nothing is
/// left, such as one with `.` for the target, is an authoritative "no such service".
pub(super) fn sift(outcome: Outcome<SrvRecord>) -> Outcome<SrvRecord> {
    let Outcome::Records {
        mut records,
        ttl,
        candidate,
        ..
    } = outcome
    else {
        return outcome;
    };
    records.retain(SrvRecord::is_usable);
    if records.is_empty() {
        return Outcome::Empty {
            no_such_name: false,
            negative_ttl: Some(ttl),
        };
    }
    records.sort_unstable();
    records.dedup();
    let left_out = records.len().saturating_sub(MAX_SERVERS);
    records.truncate(MAX_SERVERS);
    Outcome::Records {
        records,
        left_out,
        ttl,
        candidate,
    }
}

/// One server of a service.
#[derive(Clone)]
pub struct Server {
    /// What its record says.
    pub record: SrvRecord,
    /// Its name, kept up to date with a time to live of its own.
    pub host: Arc<Watched>,
}

impl Server {
    /// Where it can be connected to.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let with_port = |ip: &_| SocketAddr::new(*ip, self.record.port);
        self.host
            .read(|answer| answer.addresses.iter().map(with_port).collect())
    }
}

/// What is known about a service at one moment.
#[derive(Clone)]
pub struct Servers {
    /// Whether the service has been answered.
    pub state: State,
    /// Sorted by record; empty unless the state is [`State::Resolved`].
    pub list: Arc<[Server]>,
}

/// A service in use. Everybody who uses the same one has the same; when the last user drops it, it
/// isn't asked for any more, and neither are its servers.
pub struct Service {
    pub(super) state: Arc<ServiceState>,
    registry: Weak<Registry>,
    task: AbortHandle,
}

impl Service {
    pub(super) fn new(
        state: Arc<ServiceState>,
        registry: Weak<Registry>,
        task: AbortHandle,
    ) -> Self {
        Self {
            state,
            registry,
            task,
        }
    }

    /// The name that is asked for: as written, in lower case.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Its servers now. Takes no lock.
    pub fn servers(&self) -> Arc<Servers> {
        self.state.current.load_full()
    }

    /// Has `listener` called at each change of the servers or of their addresses, for as long as it
    /// lives. Read [`Service::servers`] after this call, not before.
    pub fn subscribe(&self, listener: Weak<dyn Listener>) {
        self.state.listeners.add(listener);
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Service").field(&self.state.name).finish()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
        if let Some(registry) = self.registry.upgrade() {
            registry.forget_service(&self.state.name);
        }
    }
}

/// The part that the service's task shares with its users.
pub(super) struct ServiceState {
    pub(super) name: String,
    current: ArcSwap<Servers>,
    listeners: Listeners,
    pub(super) statistics: Mutex<Statistics>,
    /// Something about a server has changed.
    pub(super) moved: Notify,
}

impl ServiceState {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            current: ArcSwap::from_pointee(Servers {
                state: State::Unresolved,
                list: Arc::new([]),
            }),
            listeners: Listeners::default(),
            statistics: Mutex::default(),
            moved: Notify::new(),
        }
    }

    pub(super) fn current(&self) -> Arc<Servers> {
        self.current.load_full()
    }

    /// The servers of these records: known ones stay themselves, and `watch` makes the others.
    pub(super) fn servers_of(
        &self,
        records: &[SrvRecord],
        watch: impl Fn(&str) -> Arc<Watched>,
    ) -> Arc<[Server]> {
        let current = self.current();
        let known = current.list.iter();
        let hosts: HashMap<&str, Arc<Watched>> = known
            .map(|server| (&*server.record.target, server.host.clone()))
            .collect();
        let server = |record: &SrvRecord| {
            let host = hosts.get(&*record.target).cloned();
            Server {
                record: record.clone(),
                host: host.unwrap_or_else(|| watch(&record.target)),
            }
        };
        records.iter().map(server).collect()
    }

    /// Makes these the current ones, and tells everybody.
    pub(super) fn publish(&self, state: State, list: Arc<[Server]>) {
        self.current.store(Arc::new(Servers { state, list }));
        self.listeners.tell(|listener| listener.answer_changed());
    }

    pub(super) fn note(&self, known: &Known<SrvRecord>, behind: bool) {
        let mut statistics = lock(&self.statistics);
        statistics.stale = known.stale() || behind;
        statistics.ttl = known.ttl();
        statistics.unanswered = known.failing();
    }

    pub(super) fn schedule(&self, next: Option<Duration>) {
        lock(&self.statistics).schedule(Kind::Srv, next);
    }

    pub(super) fn snapshot(&self) -> ServiceSnapshot {
        let current = self.current();
        let statistics = lock(&self.statistics);
        let servers = current.list.iter();
        ServiceSnapshot {
            name: self.name.clone(),
            state: current.state,
            records: servers.map(|server| server.record.clone()).collect(),
            stale: statistics.stale,
            ttl_seconds: statistics.ttl.map(|ttl| ttl.as_secs()),
            next_refresh_seconds: statistics.next_refresh(),
            last_success: statistics.last_success(),
            last_error: statistics.last_error.clone(),
            lookups: statistics.lookups(),
        }
    }
}

/// Of the servers' names.
impl Listener for ServiceState {
    fn answer_changed(&self) {
        self.moved.notify_one();
        self.listeners.tell(|listener| listener.answer_changed());
    }

    fn lookup_failed(&self) {
        self.moved.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(priority: u16, port: u16, target: &str) -> SrvRecord {
        SrvRecord {
            priority,
            weight: 1,
            port,
            target: target.to_owned(),
        }
    }

    fn sifted(records: Vec<SrvRecord>) -> Outcome<SrvRecord> {
        sift(Outcome::Records {
            records,
            left_out: 0,
            ttl: Duration::from_secs(7),
            candidate: 0,
        })
    }

    #[test]
    fn what_cannot_be_connected_to_is_no_server() {
        let outcome = sifted(vec![
            record(2, 80, "b."),
            record(1, 80, "a."),
            record(1, 0, "no-port."),
            record(1, 80, "."),
            record(1, 80, "169.254.169.254."),
            record(2, 80, "b."),
        ]);
        let Outcome::Records { records, .. } = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(records, [record(1, 80, "a."), record(2, 80, "b.")]);
    }

    #[test]
    fn a_dot_for_the_target_says_that_there_is_no_service() {
        let none = Outcome::Empty {
            no_such_name: false,
            negative_ttl: Some(Duration::from_secs(7)),
        };
        assert_eq!(sifted(vec![record(0, 80, ".")]), none);
        assert_eq!(sifted(vec![record(0, 0, ".")]), none);
    }

    #[test]
    fn large_answers_are_cut_off_behind_the_first_priorities() {
        let records = (0..600).rev().map(|n| record(n, 80, "a."));
        let Outcome::Records {
            records, left_out, ..
        } = sifted(records.collect())
        else {
            panic!("no records");
        };
        assert_eq!((records.len(), left_out), (MAX_SERVERS, 88));
        assert_eq!(records[0].priority, 0);
    }
}
