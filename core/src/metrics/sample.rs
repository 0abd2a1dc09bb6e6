//! Values that other parts of the proxy own, handed over at a scrape.

use std::time::Duration;

use edgewright_script::state::{StateSample, metric::MetricSample};

use crate::tls::CertificateSample;

use super::health::EndpointSample;
use super::latency::HistogramSample;

/// Everything a scrape needs beside the counters of [`Metrics`](super::Metrics).
#[derive(Debug, Clone, Default)]
pub struct ScrapeInput {
    /// What reloads have done so far.
    pub reload: ReloadSample,
    /// Name resolution.
    pub dns: DnsSample,
    /// One for each pool of the live generation.
    pub pools: Vec<PoolSample>,
    /// CPU throttling by the container's quota; `None` outside a cgroup with a quota.
    pub throttling: Option<ThrottlingSample>,
    /// Hooks that are suspended now, and the bytes that they hold together.
    pub waiting: (usize, usize),
    /// Bytes of bodies that are kept for hooks now.
    pub bodies: usize,
    /// Copies of requests that are under way now.
    pub mirrors: usize,
    /// Worker threads.
    pub threads: usize,
    /// The soft limit on open files (`RLIMIT_NOFILE`) in force.
    pub open_files_limit: u64,
    /// Connections of clients that there may be.
    pub connections_limit: usize,
    /// What programs count and cache.
    pub state: Vec<StateSample>,
    /// The metrics of programs.
    pub script: Vec<MetricSample>,
    /// One for each key set that is fetched.
    pub jwks: Vec<JwksSample>,
    /// One for each certificate file of listeners.
    pub certificates: Vec<CertificateSample>,
}

/// One key set of `jwks(..)`.
#[derive(Debug, Clone, Default)]
pub struct JwksSample {
    /// Where it comes from.
    pub source: String,
    /// Keys in use.
    pub keys: usize,
    /// Since it was fetched last; `None` before the first time.
    pub age: Option<Duration>,
    /// Attempts that have failed.
    pub failures: u64,
}

/// What reloads have done since the start; the load at start is not one of them.
#[derive(Debug, Clone, Default)]
pub struct ReloadSample {
    /// Reloads that went live.
    pub loaded: u64,
    /// Attempts that found nothing changed.
    pub unchanged: u64,
    /// Attempts that were refused.
    pub failed: u64,
    /// Whether the last attempt did not fail; true before the first.
    pub last_successful: bool,
    /// When the live generation was loaded, in seconds since the Unix epoch.
    pub last_success: Option<f64>,
    /// How long the last attempt took, in seconds.
    pub last_duration: Option<f64>,
    /// Failures to watch the files; reloads then depend on polling.
    pub watch_errors: u64,
    /// The live generation's revision; empty: no series.
    pub revision: String,
    /// Whether the copy of the last good files serves, since the files were refused at the start.
    pub degraded: bool,
    /// How often such a copy could not be kept; `None` when none is to be kept.
    pub keep_failures: Option<u64>,
}

/// Name resolution.
#[derive(Debug, Clone, Default)]
pub struct DnsSample {
    /// One for each name that is watched now.
    pub hosts: Vec<DnsHostSample>,
    /// Lookups by name, record type and result.
    pub lookups: Vec<DnsLookupSample>,
    /// Addresses in answers that are not used.
    pub refused: u64,
    /// How long lookups took; `None` before the first.
    pub duration: Option<HistogramSample>,
}

/// One watched name.
#[derive(Debug, Clone, Default)]
pub struct DnsHostSample {
    /// As it was configured.
    pub name: String,
    /// How many addresses are in use.
    pub addresses: usize,
    /// The addresses are kept although the last lookup failed.
    pub stale: bool,
    /// The smallest TTL of the answers in use, in seconds; `None` before the first answer.
    pub ttl_seconds: Option<u64>,
    /// The last answer with addresses, in seconds since the Unix epoch.
    pub last_success: Option<f64>,
}

/// Lookups of one kind.
#[derive(Debug, Clone, Default)]
pub struct DnsLookupSample {
    /// The name that was asked for.
    pub name: String,
    /// `A`, `AAAA`, ...
    pub record_type: &'static str,
    /// `records`, `nxdomain`, `timeout`, ...
    pub result: &'static str,
    /// How many.
    pub total: u64,
}

/// One pool of the live generation.
#[derive(Debug, Clone, Default)]
pub struct PoolSample {
    /// The pool's name.
    pub name: String,
    /// Endpoints that can be picked now.
    pub endpoints: usize,
    /// Requests that hold an endpoint now.
    pub in_flight: u64,
    /// Requests that wait for a place now.
    pub waiting: u64,
    /// Retries under way now that count against the budget.
    pub retries: u64,
    /// Whether so many are out that all are used.
    pub panic: bool,
    /// When the certificate that targets are shown ends to count, in seconds since the Unix epoch.
    pub certificate_not_after: Option<u64>,
    /// Each endpoint.
    pub each: Vec<EndpointSample>,
}

/// CPU throttling, from the cgroup's `cpu.stat`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThrottlingSample {
    /// `nr_periods`: periods in which the group ran.
    pub periods: u64,
    /// `nr_throttled`: periods in which the quota was used up.
    pub throttled_periods: u64,
    /// `throttled_usec`: microseconds spent waiting for the next period.
    pub throttled_micros: u64,
}
