//! The task of one service: asks for its SRV records, and brings new servers into use.

use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tracing::{info, warn};

use super::context::Context;
use super::kind::Kind;
use super::known::{Event, Known};
use super::listeners::Listener;
use super::resolver::Inner;
use super::schedule::{self, Refresh, follow};
use super::service::{Server, ServiceState, SrvRecord, sift};
use super::system::System;
use super::watched::{Origin, State, Watched, lock};

/// Keeps `state` up to date until it is aborted or the resolver ends.
pub(super) async fn keep(state: Arc<ServiceState>, context: Arc<Context>, resolver: Weak<Inner>) {
    let task = Arc::new(ServiceTask {
        state,
        context,
        resolver,
        known: Mutex::new(Known::new()),
    });
    let (name, systems) = (&task.state.name, &task.context.system);
    schedule::keep(name, systems, || task.clone().run()).await;
}

struct ServiceTask {
    state: Arc<ServiceState>,
    context: Arc<Context>,
    /// Watches the servers' names; it must not outlive the last handle.
    resolver: Weak<Inner>,
    known: Mutex<Known<SrvRecord>>,
}

impl Refresh for ServiceTask {
    async fn refresh(&self, system: &System) -> Option<Duration> {
        let context = &self.context;
        let name = &self.state.name;
        let outcome = context
            .look_up(system, name, Kind::Srv, None, Origin::Configuration)
            .await;
        lock(&self.state.statistics).count(Kind::Srv, &outcome);
        let now = Instant::now();
        let (step, wanted) = {
            let mut known = lock(&self.known);
            let step = known.apply(sift(outcome), now, &system.timing, false);
            (step, wanted(&known))
        };
        if let Some(event) = step.event {
            self.log(event);
        }
        let up_to_date = self.bring(wanted, &system.timing.new_server).await;
        self.state.note(&lock(&self.known), !up_to_date);
        Some(if up_to_date {
            step.next
        } else {
            step.next.min(system.timing.backoff_max_unresolved)
        })
    }

    fn scheduled(&self, next: Option<Duration>) {
        self.state.schedule(next);
    }
}

/// The state that follows from what is known, and the records.
fn wanted(known: &Known<SrvRecord>) -> (State, Vec<SrvRecord>) {
    let records = known.records().to_vec();
    let state = if !records.is_empty() {
        State::Resolved
    } else if known.is_answered() {
        State::Empty
    } else {
        State::Unresolved
    };
    (state, records)
}

impl ServiceTask {
    async fn run(self: Arc<Self>) {
        follow(&*self, self.context.system.clone()).await;
    }

    /// Brings the servers of these records into use. False when they are not yet.
    ///
    /// The name of a new server has no addresses yet. It is waited for them, `limit` at the longest, so
    /// that a service whose servers are all replaced at once has some at each moment; and servers
    /// that have addresses stay in use as long as none of the new ones has any.
    async fn bring(&self, (state, records): (State, Vec<SrvRecord>), limit: &Duration) -> bool {
        let current = self.state.current();
        let known = current.list.iter().map(|server| &server.record);
        if current.state == state && known.eq(&records) {
            return true;
        }
        let Some(resolver) = self.resolver.upgrade() else {
            return true;
        };
        let list = self.state.servers_of(&records, |host| {
            let watched = resolver.watch(host, Origin::Service);
            let listener: Weak<dyn Listener> = Arc::downgrade(&self.state) as Weak<dyn Listener>;
            watched.subscribe(listener);
            watched
        });
        drop(resolver);
        if has_addresses(&current.list) && state == State::Resolved {
            let settled = self.settled(&list);
            // In time or not: what counts is what there is.
            let _ = tokio::time::timeout(*limit, settled).await;
            if !has_addresses(&list) {
                let all_empty = list
                    .iter()
                    .all(|server| server.host.state() == State::Empty);
                if !all_empty {
                    warn!(
                        name = self.state.name,
                        "dns: no address of the new servers is known, the old ones stay in use"
                    );
                    return false;
                }
            }
        }
        info!(
            name = self.state.name,
            servers = list.len(),
            before = current.list.len(),
            "dns: service changed"
        );
        self.state.publish(state, list);
        true
    }

    /// Waits until the name of each server has an answer or has failed.
    async fn settled(&self, list: &[Server]) {
        let waits = |host: &Watched| host.state() == State::Unresolved && host.failure().is_none();
        // A change that comes between the look and the wait is kept by `moved`.
        while list.iter().any(|server| waits(&server.host)) {
            self.state.moved.notified().await;
        }
    }

    fn log(&self, event: Event) {
        let name = &*self.state.name;
        match event {
            Event::Failing(error) => {
                warn!(name, %error, "dns: service lookup failed, known servers stay in use");
            }
            Event::Recovered => info!(name, "dns: service lookups work again"),
            Event::Holding { .. } => {
                warn!(
                    name,
                    "dns: no such service, known servers stay in use for a while"
                );
            }
            Event::Emptied { .. } => warn!(name, "dns: no servers of the service"),
            Event::Capped { left_out } => {
                warn!(name, left_out, "dns: more servers than are used");
            }
        }
    }
}

fn has_addresses(list: &[Server]) -> bool {
    list.iter()
        .any(|server| server.host.state() == State::Resolved)
}
