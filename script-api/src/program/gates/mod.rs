//! What stands before the hooks of a route: native, in one order, each able to refuse.

use std::net::IpAddr;

use crate::values::Cidr;

/// The gates of one route, in the order in which they are asked.
#[derive(Debug, Default)]
pub struct Gates {
    /// Addresses that are refused.
    pub deny: Option<Cidr>,
    /// The only addresses that are let in.
    pub allow: Option<Cidr>,
}

/// A gate, as metrics call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Gate {
    /// `.deny(..)`
    Deny,
    /// `.allow(..)`
    Allow,
}

impl Gate {
    /// All of them, in the order in which they are asked.
    pub const ALL: [Self; 2] = [Self::Deny, Self::Allow];

    /// The route's method that sets it up.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Allow => "allow",
        }
    }
}

impl Gates {
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
    fn denies_before_it_allows() {
        let gates = Gates {
            deny: Some(Cidr::parse(["10.0.0.9", "fd00::9"]).unwrap()),
            allow: Some(Cidr::parse(["10.0.0.0/8", "fd00::/8"]).unwrap()),
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
}
