//! The types of records that are asked for.

use hickory_resolver::proto::rr::{RData, RecordType};
use std::net::IpAddr;

/// A type of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    A = 0,
    Aaaa = 1,
    Srv = 2,
}

impl Kind {
    /// All of them, in the order of their discriminants.
    pub(super) const ALL: [Kind; 3] = [Kind::A, Kind::Aaaa, Kind::Srv];

    pub(super) fn record_type(self) -> RecordType {
        match self {
            Kind::A => RecordType::A,
            Kind::Aaaa => RecordType::AAAA,
            Kind::Srv => RecordType::SRV,
        }
    }

    /// The value of the `type` label.
    pub(super) fn label(self) -> &'static str {
        match self {
            Kind::A => "A",
            Kind::Aaaa => "AAAA",
            Kind::Srv => "SRV",
        }
    }
}

/// What is taken out of a record.
pub(super) trait FromRecord: Sized {
    /// `None` for records of other types, such as the aliases that come along.
    fn from_record(data: &RData) -> Option<Self>;
}

impl FromRecord for IpAddr {
    fn from_record(data: &RData) -> Option<Self> {
        data.ip_addr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_index_all() {
        for (index, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
            assert_eq!(kind.record_type().to_string(), kind.label());
        }
    }
}
