//! The task of one name: two schedules, one for A and one for AAAA, and the answer that both make.

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tracing::{debug, info, warn};

use super::addresses::sift_outcome;
use super::context::Context;
use super::family::Families;
use super::kind::Kind;
use super::known::Event;
use super::outcome::Outcome;
use super::schedule::{self, Refresh, follow};
use super::system::System;
use super::watched::{NameState, Origin, lock};

/// How often it is looked whether the host has got an IPv6 address.
const IPV6_RECHECK: Duration = Duration::from_secs(30);

/// Keeps `name` up to date until it is aborted or the resolver ends.
pub(super) async fn keep(name: Arc<NameState>, context: Arc<Context>) {
    let task = Arc::new(NameTask {
        name,
        context,
        families: Mutex::new(Families::new()),
    });
    let (name, systems) = (&task.name.host, &task.context.system);
    schedule::keep(name, systems, || task.clone().run()).await;
}

struct NameTask {
    name: Arc<NameState>,
    context: Arc<Context>,
    families: Mutex<Families>,
}

/// One record type of a name.
struct Half<'a> {
    task: &'a NameTask,
    kind: Kind,
}

impl Refresh for Half<'_> {
    async fn refresh(&self, system: &System) -> Option<Duration> {
        self.task.refresh(self.kind, system).await
    }

    fn scheduled(&self, next: Option<Duration>) {
        self.task.name.schedule(self.kind, next);
    }
}

impl NameTask {
    async fn run(self: Arc<Self>) {
        let [a, aaaa] = [Kind::A, Kind::Aaaa].map(|kind| Half { task: &self, kind });
        let systems = || self.context.system.clone();
        tokio::join!(follow(&a, systems()), follow(&aaaa, systems()));
    }

    /// Brings one record type up to date. Returns the time to the next time, None when only a
    /// change of the system's configuration can change anything.
    async fn refresh(&self, kind: Kind, system: &System) -> Option<Duration> {
        if let Some(mut addresses) = system.local(&self.name.host) {
            addresses.retain(|address| address.is_ipv4() == (kind == Kind::A));
            self.name.refuse(kind, Vec::new());
            self.update(|families| families.of(kind).0.set_local(addresses));
            return None;
        }
        if kind == Kind::Aaaa && !(self.context.has_ipv6)() {
            self.update(|families| families.aaaa.set_not_asked());
            return Some(IPV6_RECHECK);
        }
        let outcome = self.look_up(kind, system).await;
        self.name.count(kind, &outcome);
        let failed = matches!(outcome, Outcome::Failed(_));
        let (outcome, refused) = sift_outcome(outcome, &system.guard);
        let is_refused = !refused.is_empty();
        let count = refused.len() as u64;
        self.context.refused.fetch_add(count, Ordering::Relaxed);
        if self.name.refuse(kind, refused) {
            self.log_refused(kind);
        }
        let now = Instant::now();
        let step = self.update(|families| {
            let (family, other) = families.of(kind);
            let served = other.found_at().is_some();
            family.apply(outcome, now, &system.timing, served)
        });
        if let Some(event) = step.event {
            self.log(kind, event);
        }
        if is_refused || failed && lock(&self.families).unanswered() {
            self.name.tell_failure();
        }
        Some(step.next)
    }

    async fn look_up(&self, kind: Kind, system: &System) -> Outcome<IpAddr> {
        let host = &self.name.host;
        let other_at = lock(&self.families).of(kind).1.found_at();
        let context = &self.context;
        context
            .look_up(system, host, kind, other_at, self.name.origin())
            .await
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
        if let Some(before) = before.filter(|_| self.is_told()) {
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

    /// Whoever sends requests may choose the name that a program makes up: no lines in the log for
    /// those.
    fn is_told(&self) -> bool {
        self.name.origin() > Origin::Program
    }

    fn log_refused(&self, kind: Kind) {
        let (name, record_type) = (&self.name.host, kind.label());
        let refused = self.name.refused();
        if self.is_told() {
            warn!(
                name,
                record_type,
                ?refused,
                "dns: link-local, metadata and impossible addresses are not used; see `[dns] allow`"
            );
        } else {
            debug!(
                name,
                record_type,
                ?refused,
                "dns: such addresses are not used"
            );
        }
    }

    fn log(&self, kind: Kind, event: Event) {
        let name = &*self.name.host;
        let record_type = kind.label();
        if !self.is_told() {
            debug!(
                name,
                record_type,
                ?event,
                "dns: a name that a program has made up"
            );
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
                warn!(name, record_type, %error, "dns: lookup failed, known addresses stay in use");
            }
            Event::Recovered => info!(name, record_type, "dns: lookups work again"),
            Event::Holding { no_such_name } => {
                let answer = what(no_such_name);
                warn!(
                    name,
                    record_type, answer, "dns: known addresses stay in use for a while"
                );
            }
            // A name without AAAA is nothing to warn about.
            Event::Emptied { no_such_name } if no_such_name || kind == Kind::A => {
                let answer = what(no_such_name);
                warn!(name, record_type, answer, "dns: no addresses");
            }
            Event::Emptied { .. } => info!(name, record_type, "dns: no addresses of this type"),
            Event::Capped { left_out } => {
                warn!(
                    name,
                    record_type, left_out, "dns: more addresses than are used"
                );
            }
        }
    }
}
