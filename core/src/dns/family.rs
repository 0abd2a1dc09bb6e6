//! What both record types of addresses say about a name.

use std::net::IpAddr;
use std::time::Duration;

use super::kind::Kind;
use super::known::Known;
use super::watched::{Answer, State};

/// Both record types of a name.
#[derive(Debug, Clone)]
pub(super) struct Families {
    pub(super) a: Known<IpAddr>,
    pub(super) aaaa: Known<IpAddr>,
}

impl Families {
    pub(super) fn new() -> Self {
        Self {
            a: Known::new(),
            aaaa: Known::new(),
        }
    }

    /// The addresses of both families, and what is known about the name.
    ///
    /// When A and AAAA come from different names of the search list, only the earlier name counts:
    /// the search ends at the first name that exists. Otherwise a wildcard record in a later
    /// domain would mix another service's addresses into the pool.
    pub(super) fn answer(&self) -> Answer {
        let (mut a, mut aaaa) = (self.a.records(), self.aaaa.records());
        if let (Some(first), Some(second)) = (self.a.found_at(), self.aaaa.found_at()) {
            if first < second {
                aaaa = &[];
            } else if second < first {
                a = &[];
            }
        }
        let addresses: Vec<IpAddr> = a.iter().chain(aaaa).copied().collect();
        let answered = [&self.a, &self.aaaa]
            .iter()
            .all(|family| family.is_answered());
        let state = if !addresses.is_empty() {
            State::Resolved
        } else if answered {
            State::Empty
        } else {
            State::Unresolved
        };
        Answer {
            state,
            addresses: addresses.into(),
        }
    }

    /// What is known of one record type of addresses, and of the other one.
    pub(super) fn of(&mut self, kind: Kind) -> (&mut Known<IpAddr>, &mut Known<IpAddr>) {
        match kind {
            Kind::Aaaa => (&mut self.aaaa, &mut self.a),
            Kind::A | Kind::Srv => (&mut self.a, &mut self.aaaa),
        }
    }

    /// Addresses of an earlier answer are in use.
    pub(super) fn stale(&self) -> bool {
        self.a.stale() || self.aaaa.stale()
    }

    /// There is no answer, and waiting for the lookups under way will not bring one: each family
    /// has had its try, and at least one has failed.
    pub(super) fn unanswered(&self) -> bool {
        let families = [&self.a, &self.aaaa];
        families.iter().any(|family| family.failing())
            && families.iter().all(|family| {
                family.failing() || (family.is_answered() && family.records().is_empty())
            })
    }

    /// The smaller TTL of both families.
    pub(super) fn ttl(&self) -> Option<Duration> {
        self.a.ttl().into_iter().chain(self.aaaa.ttl()).min()
    }
}
