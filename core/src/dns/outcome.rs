//! What a lookup found.

use std::time::Duration;

/// The result of asking one server about one absolute name and one record type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply<R> {
    /// The records, and the smallest TTL of the answer, aliases included.
    Records { records: Vec<R>, ttl: Duration },
    /// NXDOMAIN.
    NoSuchName { negative_ttl: Option<Duration> },
    /// The name exists, but has no record of this type.
    NoData { negative_ttl: Option<Duration> },
    /// Nobody said anything about the name.
    Failed(Failure),
}

/// The result of one refresh of one record type, after the search list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome<R> {
    /// Records, from the candidate with this position in the search order.
    Records {
        records: Vec<R>,
        /// Further ones, beyond what is used.
        left_out: usize,
        ttl: Duration,
        candidate: usize,
    },
    /// All candidates were answered, and none has a record of this type.
    Empty {
        /// None of them exists at all.
        no_such_name: bool,
        negative_ttl: Option<Duration>,
    },
    /// A candidate could not be asked, so nothing is known.
    Failed(Failure),
}

impl<R> Outcome<R> {
    pub(super) fn result(&self) -> LookupResult {
        match self {
            Outcome::Records { .. } => LookupResult::Records,
            Outcome::Empty {
                no_such_name: true, ..
            } => LookupResult::NoSuchName,
            Outcome::Empty { .. } => LookupResult::NoData,
            Outcome::Failed(failure) => failure.result,
        }
    }
}

/// Why a lookup found out nothing; `detail` names the candidate and the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) result: LookupResult,
    pub(super) detail: String,
}

/// The outcome as a label of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum LookupResult {
    Records,
    NoSuchName,
    NoData,
    ServFail,
    Refused,
    Timeout,
    Error,
}

impl LookupResult {
    pub(super) const ALL: [LookupResult; 7] = [
        LookupResult::Records,
        LookupResult::NoSuchName,
        LookupResult::NoData,
        LookupResult::ServFail,
        LookupResult::Refused,
        LookupResult::Timeout,
        LookupResult::Error,
    ];

    pub(super) fn label(self) -> &'static str {
        match self {
            LookupResult::Records => "records",
            LookupResult::NoSuchName => "nxdomain",
            LookupResult::NoData => "nodata",
            LookupResult::ServFail => "servfail",
            LookupResult::Refused => "refused",
            LookupResult::Timeout => "timeout",
            LookupResult::Error => "error",
        }
    }
}
