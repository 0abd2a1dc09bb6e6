//! What is told about a pool.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::endpoint::EndpointId;
use super::tiers::Member;
use crate::metrics::{EjectionReason, EndpointSample, PoolSample};

/// A pool at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PoolStatus {
    /// Its name.
    pub name: String,
    /// Its targets as they are configured.
    pub targets: Vec<String>,
    /// All endpoints, sorted by address.
    pub endpoints: Vec<EndpointStatus>,
    /// Requests that hold a place, where `[limits]` bounds them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub places_taken: Option<usize>,
    /// Requests that wait for a place.
    pub requests_waiting: usize,
    /// Retries under way that count against the budget.
    pub retries_in_flight: usize,
    /// So many are ejected or unhealthy that all are used.
    pub panic: bool,
    /// While there is no endpoint: the names that have not been answered yet.
    pub waiting_for: Vec<String>,
    /// When the certificate that targets are shown ends to count, in seconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_not_after: Option<u64>,
}

/// An endpoint at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndpointStatus {
    /// Its identity in this process.
    #[serde(skip)]
    pub id: EndpointId,
    /// `10.0.0.1:8080`, `[fd00::1]:8080` or `unix:/run/app.sock`.
    pub address: String,
    /// Requests that hold it.
    pub in_flight: usize,
    /// Its share beside the others; 0 gets nothing new.
    pub weight: u16,
    /// Whether it only stands in when no other is usable.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub backup: bool,
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Whether requests may get it.
    pub usable: bool,
    /// What checks say; `null` without any, or before the first one has ended.
    pub healthy: Option<bool>,
    /// Its latency as `balance = "peak_ewma"` sees it, in milliseconds; `null` before the first answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<Option<u64>>,
    /// Why it is ejected: `failures`, `5xx` or `latency`; `null` when it is not.
    pub ejected: Option<&'static str>,
    /// When it was last taken out or came back, in seconds since the Unix epoch.
    pub since: Option<u64>,
    /// What went wrong last, at a request or at a check.
    pub last_failure: Option<String>,
}

impl EndpointStatus {
    pub(super) fn of(member: &Member, is_checked: bool, by_latency: bool) -> Self {
        let endpoint = &member.endpoint;
        let told = endpoint.standing().told();
        let since_epoch = |time: SystemTime| time.duration_since(UNIX_EPOCH).ok();
        let latency = || endpoint.standing().recent().mean(Instant::now());
        Self {
            id: endpoint.id(),
            address: endpoint.address().to_owned(),
            in_flight: endpoint.in_flight(),
            weight: member.traits.weight,
            backup: member.traits.backup,
            zone: member.traits.zone.as_deref().map(str::to_owned),
            usable: member.usable,
            healthy: told.healthy.filter(|_| is_checked),
            latency_ms: by_latency.then(|| latency().map(|mean| mean.as_millis() as u64)),
            ejected: told.ejected.map(EjectionReason::name),
            since: told.since.and_then(since_epoch).map(|time| time.as_secs()),
            last_failure: told.last_failure,
        }
    }
}

impl From<PoolStatus> for PoolSample {
    fn from(status: PoolStatus) -> Self {
        let in_flight = status.endpoints.iter().map(|e| e.in_flight as u64).sum();
        let sample = |endpoint: EndpointStatus| EndpointSample {
            address: endpoint.address,
            usable: endpoint.usable,
        };
        Self {
            endpoints: status.endpoints.iter().filter(|e| e.usable).count(),
            in_flight,
            waiting: status.requests_waiting as u64,
            retries: status.retries_in_flight as u64,
            panic: status.panic,
            certificate_not_after: status.certificate_not_after,
            each: status.endpoints.into_iter().map(sample).collect(),
            name: status.name,
        }
    }
}
