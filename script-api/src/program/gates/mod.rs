//! What stands before the hooks of a route: native, in one order, each able to refuse.

mod concurrency;
mod cors;
mod key;
mod limit;

pub use concurrency::ConcurrencyGate;
pub use cors::{CORS_FIELDS, Cors, Origin, Origins};
pub use key::GateKey;
pub(super) use key::shared_part;
pub use limit::LimitGate;

use std::net::IpAddr;

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header::CONTENT_TYPE};

use crate::{
    answer::Answer,
    state::{State, StateStore},
    values::Cidr,
};

/// The gates of one route, in the order in which they are asked.
#[derive(Debug, Default)]
pub struct Gates {
    /// Which pages of other origins may use it; answers preflights.
    pub cors: Option<Cors>,
    /// Addresses that are refused.
    pub deny: Option<Cidr>,
    /// The only addresses that are let in.
    pub allow: Option<Cidr>,
    /// The most bytes that a request's body may have, in place of `[limits] request_body`.
    pub max_body: Option<u64>,
    /// How often a client may come. All that are asked before one refuses count the request.
    pub limits: Vec<LimitGate>,
    /// How many requests may be served at a time.
    pub concurrency: Vec<ConcurrencyGate>,
}

/// A gate, as metrics call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Gate {
    /// `.cors(..)`: a preflight from an origin that is not allowed.
    Cors,
    /// `.deny(..)`
    Deny,
    /// `.allow(..)`
    Allow,
    /// `.max_body(..)`
    MaxBody,
    /// `.limit(..)`
    Limit,
    /// `.concurrency(..)`
    Concurrency,
}

impl Gate {
    /// All of them, in the order in which they are asked.
    pub const ALL: [Self; 6] = [
        Self::Cors,
        Self::Deny,
        Self::Allow,
        Self::MaxBody,
        Self::Limit,
        Self::Concurrency,
    ];

    /// The route's method that sets it up.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cors => "cors",
            Self::Deny => "deny",
            Self::Allow => "allow",
            Self::MaxBody => "max_body",
            Self::Limit => "limit",
            Self::Concurrency => "concurrency",
        }
    }
}

impl Gates {
    /// Those that there are, each once, in the order in which they are asked.
    pub fn asked(&self) -> impl Iterator<Item = Gate> + '_ {
        Gate::ALL.into_iter().filter(|gate| match gate {
            Gate::Cors => self.cors.is_some(),
            Gate::Deny => self.deny.is_some(),
            Gate::Allow => self.allow.is_some(),
            Gate::MaxBody => self.max_body.is_some(),
            Gate::Limit => !self.limits.is_empty(),
            Gate::Concurrency => !self.concurrency.is_empty(),
        })
    }

    /// Whether a client's address may come in: denied ones first, then those that are not among the
    /// allowed.
    ///
    /// # Errors
    /// With the gate that refuses it.
    pub fn admit_address(&self, client: impl FnOnce() -> IpAddr) -> Result<(), Gate> {
        if self.deny.is_none() && self.allow.is_none() {
            return Ok(());
        }
        let client = client();
        if self.deny.as_ref().is_some_and(|deny| deny.contains(client)) {
            return Err(Gate::Deny);
        }
        match &self.allow {
            Some(allow) if !allow.contains(client) => Err(Gate::Allow),
            _ => Ok(()),
        }
    }

    /// Whether a body of this many bytes may come in.
    ///
    /// # Errors
    /// With the gate that refuses it.
    pub fn admit_length(&self, length: u64) -> Result<(), Gate> {
        match self.max_body {
            Some(most) if length > most => Err(Gate::MaxBody),
            _ => Ok(()),
        }
    }

    /// Binds what counts to the state of its name.
    pub(crate) fn bind(&self, store: &StateStore) {
        for limit in &self.limits {
            if let Some(identity) = &limit.own {
                State::Rate(limit.rate().clone()).bind(store, identity);
            }
        }
        for bound in &self.concurrency {
            if let Some(identity) = &bound.own {
                State::Concurrency(bound.slots().clone()).bind(store, identity);
            }
        }
    }
}

/// The answer of a gate: the status in words.
pub fn answer(status: StatusCode) -> Answer {
    let reason = status.canonical_reason().unwrap_or("refused");
    let text = format!("{} {}\n", status.as_u16(), reason.to_ascii_lowercase());
    let mut headers = Vec::with_capacity(4);
    headers.push((
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    ));
    Answer {
        status,
        headers,
        body: Bytes::from(text),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn numbers_index_all() {
        for (index, gate) in Gate::ALL.iter().enumerate() {
            assert_eq!(*gate as usize, index);
        }
    }

    #[test]
    fn names_those_that_there_are() {
        let gates = Gates {
            deny: Some(Cidr::parse(["10.0.0.9"]).unwrap()),
            max_body: Some(1),
            ..Gates::default()
        };
        assert_eq!(
            gates.asked().collect::<Vec<_>>(),
            [Gate::Deny, Gate::MaxBody]
        );
    }

    #[test]
    fn denies_before_it_allows() {
        let gates = Gates {
            deny: Some(Cidr::parse(["10.0.0.9", "fd00::9"]).unwrap()),
            allow: Some(Cidr::parse(["10.0.0.0/8", "fd00::/8"]).unwrap()),
            ..Gates::default()
        };
        for (address, expected) in [
            ("10.0.0.1", Ok(())),
            ("::ffff:10.0.0.1", Ok(())),
            ("10.0.0.9", Err(Gate::Deny)),
            ("::ffff:10.0.0.9", Err(Gate::Deny)),
            ("fd00::9", Err(Gate::Deny)),
            ("fd00::1", Ok(())),
            ("192.0.2.1", Err(Gate::Allow)),
        ] {
            let client = address.parse().unwrap();
            assert_eq!(gates.admit_address(|| client), expected, "{address}");
        }
        let none = Gates::default();
        assert_eq!(none.admit_address(|| panic!("nobody asked")), Ok(()));
    }

    #[test]
    fn bodies_may_be_as_long_as_it_says() {
        let gates = Gates {
            max_body: Some(10),
            ..Gates::default()
        };
        assert_eq!(gates.admit_length(10), Ok(()));
        assert_eq!(gates.admit_length(11), Err(Gate::MaxBody));
        assert_eq!(Gates::default().admit_length(u64::MAX), Ok(()));
    }
}
