//! What the resolver knows at one moment, as plain numbers for `/status` and the metrics.

use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

use super::service::SrvRecord;
use super::watched::{Origin, State};
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
    /// All services in use, sorted. Their servers are among the names.
    pub services: Vec<ServiceSnapshot>,
    /// Addresses in all answers so far that are not used (`[dns] allow`).
    pub refused_total: u64,
    /// How long refreshes took, search list and retries included. For the metrics only.
    #[serde(skip)]
    pub duration: HistogramSample,
}

/// One name.
#[derive(Debug, Clone, Serialize)]
pub struct NameSnapshot {
    /// As it is written, in lower case.
    pub name: String,
    /// Who has named it: `configuration`, `service` (the SRV records of one) or `program`. Only those
    /// of the configuration have series of their own in the metrics: there is no end of the others.
    pub origin: Origin,
    /// Whether it has been answered.
    pub state: State,
    /// The addresses in use, sorted.
    pub addresses: Vec<IpAddr>,
    /// Addresses that the last answers had and that are not used (`[dns] allow`); 32 at the most.
    pub refused: Vec<IpAddr>,
    /// Such addresses in all its answers so far.
    pub refused_total: u64,
    /// Some of the addresses are kept from an earlier answer, because the latest lookup failed or
    /// found none.
    pub stale: bool,
    /// The smallest TTL in seconds of the answers in use, as the server gave it. None for names
    /// that don't come from DNS, and before the first answer.
    pub ttl_seconds: Option<u64>,
    /// Seconds until the next lookup; 0 while one is under way. None when nothing is looked up by the
    /// clock, as for a name in the hosts file.
    pub next_refresh_seconds: Option<f64>,
    /// When DNS last gave addresses: seconds since the Unix epoch.
    pub last_success: Option<f64>,
    /// The last failure; it stays after things work again.
    pub last_error: Option<String>,
    /// Refreshes so far, by record type and result; those that never happened are left out.
    pub lookups: Vec<LookupCount>,
}

/// One service.
#[derive(Debug, Clone, Serialize)]
pub struct ServiceSnapshot {
    /// As it is written, in lower case.
    pub name: String,
    /// Whether it has been answered.
    pub state: State,
    /// The records in use, sorted.
    pub records: Vec<SrvRecord>,
    /// The records are kept from an earlier answer: the latest lookup failed or found none, or no
    /// address of the servers in it is known yet.
    pub stale: bool,
    /// The smallest TTL in seconds of the records in use, as the server gave it.
    pub ttl_seconds: Option<u64>,
    /// Seconds until the next lookup; 0 while one is under way.
    pub next_refresh_seconds: Option<f64>,
    /// When DNS last gave records: seconds since the Unix epoch.
    pub last_success: Option<f64>,
    /// The last failure; it stays after things work again.
    pub last_error: Option<String>,
    /// Lookups so far by result.
    pub lookups: Vec<LookupCount>,
}

/// How often refreshing one record type of one name had one result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LookupCount {
    /// `A`, `AAAA` or `SRV`.
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
        let mut counted = |name: &str, counts: &[LookupCount]| {
            lookups.extend(counts.iter().map(|lookup| DnsLookupSample {
                name: name.to_owned(),
                record_type: lookup.record_type,
                result: lookup.result,
                total: lookup.count,
            }));
        };
        let names = snapshot.names.into_iter();
        for name in names.filter(|name| name.origin == Origin::Configuration) {
            counted(&name.name, &name.lookups);
            hosts.push(DnsHostSample {
                addresses: name.addresses.len(),
                stale: name.stale,
                ttl_seconds: name.ttl_seconds,
                last_success: name.last_success,
                name: name.name,
            });
        }
        for service in snapshot.services {
            // A name may stand in the configuration with `srv:` and without.
            let name = format!("srv:{}", service.name);
            counted(&name, &service.lookups);
            hosts.push(DnsHostSample {
                addresses: service.records.len(),
                stale: service.stale,
                ttl_seconds: service.ttl_seconds,
                last_success: service.last_success,
                name,
            });
        }
        Self {
            hosts,
            lookups,
            refused: snapshot.refused_total,
            duration: (snapshot.duration.count > 0).then_some(snapshot.duration),
        }
    }
}
