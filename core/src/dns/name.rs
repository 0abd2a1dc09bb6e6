//! The task of one name: two schedules, one for A and one for AAAA, and the answer that both make.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hickory_resolver::proto::rr::RecordType;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tracing::{debug, error, info, warn};

use super::family::{Event, Families, Family};
use super::lookup::MAX_CONCURRENT;
use super::outcome::{Failure, LookupResult, Outcome};
use super::system::System;
use super::watched::{NameState, lock};
use crate::metrics::Latency;

/// How often it is looked whether the host has got an IPv6 address.
const IPV6_RECHECK: Duration = Duration::from_secs(30);

/// What the tasks of all names share.
pub(super) struct Context {
    pub(super) system: watch::Receiver<Arc<System>>,
    pub(super) has_ipv6: fn() -> bool,
    /// How long refreshes took.
    pub(super) duration: Latency,
    permits: Permits,
    /// For names that a program makes up while it runs: they can't hold up the configured ones.
    permits_unlisted: Permits,
}

/// For A and AAAA each, so that AAAA lookups that nobody answers can't hold up A.
type Permits = [Semaphore; 2];

impl Context {
    pub(super) fn new(system: watch::Receiver<Arc<System>>, has_ipv6: fn() -> bool) -> Self {
        Self {
            system,
            has_ipv6,
            duration: Latency::default(),
            permits: [MAX_CONCURRENT, MAX_CONCURRENT].map(Semaphore::new),
            permits_unlisted: [MAX_CONCURRENT, MAX_CONCURRENT].map(Semaphore::new),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    A = 0,
    Aaaa = 1,
}

impl Kind {
    fn record_type(self) -> RecordType {
        match self {
            Kind::A => RecordType::A,
            Kind::Aaaa => RecordType::AAAA,
        }
    }

    /// This family and the other one.
    fn of(self, families: &mut Families) -> (&mut Family, &mut Family) {
        match self {
            Kind::A => (&mut families.a, &mut families.aaaa),
            Kind::Aaaa => (&mut families.aaaa, &mut families.a),
        }
    }

    fn owns(self, address: &IpAddr) -> bool {
        (self == Kind::A) == address.is_ipv4()
    }
}

/// Keeps `name` up to date until it is aborted or the resolver ends.
///
/// A panic, in the library say, must not pin a name's addresses for the life of the process: the
/// schedules are started again, with all that is known.
pub(super) async fn keep(name: Arc<NameState>, context: Arc<Context>) {
    let task = Arc::new(NameTask {
        name,
        context,
        families: Mutex::new(Families::new()),
    });
    loop {
        // Dropped with this future, and then the schedules end too.
        let mut schedules = JoinSet::new();
        schedules.spawn(task.clone().run());
        match schedules.join_next().await {
            Some(Err(failure)) if failure.is_panic() => {
                error!(
                    name = task.name.host,
                    "dns: panic while looking up, starting again"
                );
                let pause = task.context.system.borrow().timing.backoff_min;
                tokio::time::sleep(pause).await;
            }
            _ => return,
        }
    }
}

struct NameTask {
    name: Arc<NameState>,
    context: Arc<Context>,
    families: Mutex<Families>,
}

impl NameTask {
    async fn run(self: Arc<Self>) {
        tokio::join!(self.follow(Kind::A), self.follow(Kind::Aaaa));
    }

    async fn follow(&self, kind: Kind) {
        let mut systems = self.context.system.clone();
        loop {
            let system = systems.borrow_and_update().clone();
            let next = self.refresh(kind, &system).await;
            let due = async {
                match next {
                    Some(delay) => tokio::time::sleep(delay).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => {}
                changed = systems.changed() => if changed.is_err() {
                    return;
                }
            }
        }
    }

    /// Brings one record type up to date. Returns the time to the next time, None when only a
    /// change of the system's configuration can change anything.
    async fn refresh(&self, kind: Kind, system: &System) -> Option<Duration> {
        if let Some(mut addresses) = system.local(&self.name.host) {
            addresses.retain(|address| kind.owns(address));
            self.update(|families| kind.of(families).0.set_local(addresses));
            return None;
        }
        if kind == Kind::Aaaa && !(self.context.has_ipv6)() {
            self.update(|families| families.aaaa.set_not_asked());
            return Some(IPV6_RECHECK);
        }
        let outcome = self.look_up(kind, system).await;
        self.name.count(kind as usize, &outcome);
        let failed = matches!(outcome, Outcome::Failed(_));
        let now = Instant::now();
        let step = self.update(|families| {
            let (family, other) = kind.of(families);
            let served = other.found_at().is_some();
            family.apply(outcome, now, &system.timing, served)
        });
        if let Some(event) = step.event {
            self.log(kind, event);
        }
        if failed && lock(&self.families).unanswered() {
            self.name.tell_failure();
        }
        Some(step.next)
    }

    async fn look_up(&self, kind: Kind, system: &System) -> Outcome {
        let servers = match &system.servers {
            Ok(servers) => servers,
            Err(error) => {
                return Outcome::Failed(Failure {
                    result: LookupResult::Error,
                    detail: error.clone(),
                });
            }
        };
        let other_at = kind.of(&mut lock(&self.families)).1.found_at();
        let started = Instant::now();
        let permits = if self.name.is_listed() {
            &self.context.permits
        } else {
            &self.context.permits_unlisted
        };
        let permits = &permits[kind as usize];
        let record_type = kind.record_type();
        let outcome = servers
            .search(
                &self.name.host,
                &system.search,
                record_type,
                other_at,
                permits,
            )
            .await;
        self.context.duration.add(started.elapsed());
        outcome
    }

    /// Changes what is known and publishes what follows from it.
    fn update<T>(&self, change: impl FnOnce(&mut Families) -> T) -> T {
        let (result, answer) = {
            let mut families = lock(&self.families);
            let result = change(&mut families);
            self.name.note(&families);
            (result, families.answer())
        };
        let now = answer.addresses.clone();
        let before = self.name.publish(answer);
        if let Some(before) = before.filter(|_| self.name.is_listed()) {
            let missing_in = |set: &[IpAddr], other: &[IpAddr]| {
                set.iter()
                    .filter(|address| !other.contains(address))
                    .count()
            };
            info!(
                name = self.name.host,
                addresses = now.len(),
                added = missing_in(&now, &before.addresses),
                removed = missing_in(&before.addresses, &now),
                "dns: answer changed"
            );
        }
        result
    }

    fn log(&self, kind: Kind, event: Event) {
        let name = &*self.name.host;
        let record_type = kind.record_type();
        if !self.name.is_listed() {
            // Whoever sends requests may choose the name: not a line in the log for each.
            debug!(name, %record_type, ?event, "dns: a name that a program has made up");
            return;
        }
        let what = |no_such_name| {
            if no_such_name {
                "no such name"
            } else {
                "no address of this type"
            }
        };
        match event {
            Event::Failing(error) => {
                warn!(name, %record_type, %error, "dns: lookup failed, known addresses stay in use");
            }
            Event::Recovered => info!(name, %record_type, "dns: lookups work again"),
            Event::Holding { no_such_name } => {
                let answer = what(no_such_name);
                warn!(name, %record_type, answer, "dns: known addresses stay in use for a while");
            }
            // A name without AAAA is nothing to warn about.
            Event::Emptied { no_such_name } if no_such_name || kind == Kind::A => {
                let answer = what(no_such_name);
                warn!(name, %record_type, answer, "dns: no addresses");
            }
            Event::Emptied { .. } => info!(name, %record_type, "dns: no addresses of this type"),
            Event::Capped { left_out } => {
                warn!(name, %record_type, left_out, "dns: more addresses than are used");
            }
        }
    }
}
