//! What the resolver knows at one moment, as plain numbers for `/status` and the metrics.

use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

use super::watched::State;
use crate::metrics::{DnsHostSample, DnsLookupSample, DnsSample, HistogramSample};

/// The whole resolver.
#[derive(Debug, Clone, Serialize)]
pub struct Snapshot {
    /// The servers that are asked, in their order.
    pub servers: Vec<SocketAddr>,
    /// Why there is no server to ask: resolv.conf is missing or names none.
    pub error: Option<String>,
    /// All names in use, sorted.
    pub names: Vec<NameSnapshot>,
    /// How long refreshes took, search list and retries included. For the metrics only.
    #[serde(skip)]
    pub duration: HistogramSample,
}

/// One name.
#[derive(Debug, Clone, Serialize)]
pub struct NameSnapshot {
    /// As it is written, in lower case.
    pub name: String,
    /// It stands in the configuration. The others have no series of their own in the metrics:
    /// there is no end of names that a program can make up.
    #[serde(skip)]
    pub listed: bool,
    /// Whether it has been answered.
    pub state: State,
    /// The addresses in use, sorted.
    pub addresses: Vec<IpAddr>,
    /// Some of the addresses are kept from an earlier answer, because the latest lookup failed or
    /// found none.
    pub stale: bool,
    /// The smallest TTL in seconds of the answers in use, as the server gave it. None for names
    /// that don't come from DNS, and before the first answer.
    pub ttl_seconds: Option<u64>,
    /// When DNS last gave addresses: seconds since the Unix epoch.
    pub last_success: Option<f64>,
    /// The last failure; it stays after things work again.
    pub last_error: Option<String>,
    /// Refreshes so far, by record type and result; those that never happened are left out.
    pub lookups: Vec<LookupCount>,
}

/// How often refreshing one record type of one name had one result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LookupCount {
    /// `A` or `AAAA`.
    pub record_type: &'static str,
    /// `records`, `nxdomain`, `nodata`, `servfail`, `refused`, `timeout` or `error`.
    pub result: &'static str,
    /// Since the name is in use.
    pub count: u64,
}

impl From<Snapshot> for DnsSample {
    fn from(snapshot: Snapshot) -> Self {
        let mut hosts = Vec::with_capacity(snapshot.names.len());
        let mut lookups = Vec::new();
        for name in snapshot.names.into_iter().filter(|name| name.listed) {
            lookups.extend(name.lookups.iter().map(|lookup| DnsLookupSample {
                name: name.name.clone(),
                record_type: lookup.record_type,
                result: lookup.result,
                total: lookup.count,
            }));
            hosts.push(DnsHostSample {
                addresses: name.addresses.len(),
                stale: name.stale,
                ttl_seconds: name.ttl_seconds,
                last_success: name.last_success,
                name: name.name,
            });
        }
        Self {
            hosts,
            lookups,
            duration: (snapshot.duration.count > 0).then_some(snapshot.duration),
        }
    }
}
