//! What is told about a pool.

use serde::Serialize;

use super::endpoint::EndpointId;
use crate::metrics::PoolSample;

/// A pool at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PoolStatus {
    /// Its name.
    pub name: String,
    /// Its targets as they are configured.
    pub targets: Vec<String>,
    /// The endpoints that requests may get, sorted by address.
    pub endpoints: Vec<EndpointStatus>,
    /// Requests that hold a place, where `[limits]` bounds them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub places_taken: Option<usize>,
    /// Requests that wait for a place.
    pub requests_waiting: usize,
    /// Retries under way that count against the budget.
    pub retries_in_flight: usize,
    /// While there is no endpoint: the names that have not been answered yet.
    pub waiting_for: Vec<String>,
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
}

impl From<PoolStatus> for PoolSample {
    fn from(status: PoolStatus) -> Self {
        let in_flight = status.endpoints.iter().map(|e| e.in_flight as u64).sum();
        Self {
            endpoints: status.endpoints.len(),
            in_flight,
            waiting: status.requests_waiting as u64,
            retries: status.retries_in_flight as u64,
            name: status.name,
        }
    }
}
