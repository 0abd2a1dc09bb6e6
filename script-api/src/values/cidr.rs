//! `cidr([..])`: a set of networks.

use std::{net::IpAddr, sync::Arc};

use ipnet::IpNet;

/// A set of IPv4 and IPv6 networks. Cloning shares the set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cidr(Arc<[IpNet]>);

impl Cidr {
    /// Parses networks such as `10.0.0.0/8`, `fd00::/8`; a bare address is a network of one.
    ///
    /// # Errors
    /// Names the first text that is no network.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        texts
            .into_iter()
            .map(|text| {
                let text = text.trim();
                text.parse::<IpNet>()
                    .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
                    .map(|net| net.trunc())
                    .map_err(|_| {
                        format!(
                            "`{text}` is no network; write one as \"10.0.0.0/8\" or \"fd00::/8\""
                        )
                    })
            })
            .collect::<Result<Vec<_>, _>>()
            .map(|nets| Self(nets.into()))
    }

    /// These networks and those of `other`.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().chain(other.0.iter()).copied().collect())
    }

    /// Whether there is no network in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of the networks holds `address`. An IPv4 address mapped into IPv6
    /// (`::ffff:10.0.0.1`, RFC 4291 section 2.5.5.2) is taken as the IPv4 address it stands for.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|net| net.contains(&address))
    }

    /// As [`Cidr::contains`], for text; text that is no address is in no network.
    pub fn contains_text(&self, address: &str) -> bool {
        address.parse().is_ok_and(|address| self.contains(address))
    }
}

impl std::fmt::Display for Cidr {
    /// The networks, with commas between.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, net) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{net}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn holds_both_families_and_mapped_addresses() {
        let set = Cidr::parse(["10.0.0.0/8", "fd00::/8", "192.0.2.7"]).unwrap();
        for inside in ["10.1.2.3", "fd12::1", "192.0.2.7", "::ffff:10.0.0.1"] {
            assert!(set.contains_text(inside), "{inside}");
        }
        for outside in ["11.0.0.1", "fe80::1", "192.0.2.8", "", "10.0.0.0/8", "x"] {
            assert!(!set.contains_text(outside), "{outside}");
        }
    }

    #[test]
    fn names_the_text_that_is_no_network() {
        let error = Cidr::parse(["10.0.0.0/8", "10.0.0/40"]).unwrap_err();
        assert!(error.starts_with("`10.0.0/40` is no network"), "{error}");
    }
}
