//! What the tasks of all names share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use tokio::sync::{Semaphore, watch};

use super::kind::{FromRecord, Kind};
use super::lookup::MAX_CONCURRENT;
use super::outcome::{Failure, LookupResult, Outcome};
use super::system::System;
use super::watched::Origin;
use crate::metrics::Latency;

/// What the tasks of all names share.
pub(super) struct Context {
    pub(super) system: watch::Receiver<Arc<System>>,
    pub(super) has_ipv6: fn() -> bool,
    /// How long refreshes took.
    pub(super) duration: Latency,
    /// Addresses of all answers so far that were not used.
    pub(super) refused: AtomicU64,
    permits: Permits,
    /// For names that a program makes up while it runs: they can't hold up the configured ones.
    permits_unlisted: Permits,
}

/// For each record type, so that AAAA lookups that nobody answers can't hold up A.
type Permits = [Semaphore; Kind::ALL.len()];

impl Context {
    pub(super) fn new(system: watch::Receiver<Arc<System>>, has_ipv6: fn() -> bool) -> Self {
        let permits = || Kind::ALL.map(|_| Semaphore::new(MAX_CONCURRENT));
        Self {
            system,
            has_ipv6,
            duration: Latency::default(),
            refused: AtomicU64::new(0),
            permits: permits(),
            permits_unlisted: permits(),
        }
    }

    /// Asks the servers; `other_at` is where the other family of addresses was found.
    pub(super) async fn look_up<R: FromRecord>(
        &self,
        system: &System,
        host: &str,
        kind: Kind,
        other_at: Option<usize>,
        origin: Origin,
    ) -> Outcome<R> {
        let servers = match &system.servers {
            Ok(servers) => servers,
            Err(error) => {
                return Outcome::Failed(Failure {
                    result: LookupResult::Error,
                    detail: error.clone(),
                });
            }
        };
        let permits = match origin {
            Origin::Configuration | Origin::Service => &self.permits,
            Origin::Program => &self.permits_unlisted,
        };
        let started = Instant::now();
        let permits = &permits[kind as usize];
        let outcome = servers.search(host, &system.search, kind, other_at, permits);
        let outcome = outcome.await;
        self.duration.add(started.elapsed());
        outcome
    }
}
