//! Addresses that an answer may not lead to.
//!
//! Whoever controls a zone, or a resolver on the way, can point a name at the machine's own metadata
//! service and so at its credentials (DNS rebinding, server-side request forgery).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Metadata services outside the link-local ranges.
const METADATA_SERVICES: [IpAddr; 3] = [
    // Azure's WireServer.
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    // Alibaba Cloud.
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    // Google Cloud.
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// Why nothing is sent to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Danger {
    /// 169.254.0.0/16 and fe80::/10, where clouds keep their metadata.
    LinkLocal,
    /// A cloud's metadata service elsewhere.
    Metadata,
    /// Unspecified, multicast or broadcast: no host has it. On Linux 0.0.0.0 is this machine.
    NoHost,
}

impl Danger {
    /// Why `address` is dangerous, whatever form it is disguised in.
    pub(crate) fn of(address: IpAddr) -> Option<Self> {
        let address = unwrapped(address);
        let link_local = match address {
            IpAddr::V4(v4) => v4.is_link_local(),
            IpAddr::V6(v6) => v6.is_unicast_link_local(),
        };
        let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
        if link_local {
            Some(Self::LinkLocal)
        } else if METADATA_SERVICES.contains(&address) || is_of_aws(address) {
            Some(Self::Metadata)
        } else if address.is_unspecified() || address.is_multicast() || broadcast {
            Some(Self::NoHost)
        } else {
            None
        }
    }
}

/// fd00:ec2::/32: metadata, credentials of pods, and more of that kind.
fn is_of_aws(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.segments()[..2] == [0xfd00, 0xec2])
}

/// The IPv4 address that an IPv6 address stands for: mapped (::ffff:0:0/96) or translated
/// (64:ff9b::/96, RFC 6052).
fn unwrapped(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) if v6.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0] => {
            let [.., a, b, c, d] = v6.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        // 6to4 (RFC 3056) and the deprecated IPv4-compatible form (RFC 4291 section 2.5.5.1).
        IpAddr::V6(v6) if v6.segments()[0] == 0x2002 => {
            let [_, _, a, b, c, d, ..] = v6.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        IpAddr::V6(v6) if v6.segments()[..6] == [0; 6] && v6.segments()[6] != 0 => {
            let [.., a, b, c, d] = v6.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        other => other.to_canonical(),
    }
}

/// What answers from DNS may lead to: everything but dangerous addresses, and of those what
/// `[dns] allow` has. What no host can have is never allowed.
#[derive(Debug, Clone, Default)]
pub(super) struct Guard {
    allowed: Vec<IpNet>,
    anything: bool,
}

impl Guard {
    pub(super) fn new(allowed: &[IpNet]) -> Self {
        Self {
            allowed: allowed.to_vec(),
            anything: false,
        }
    }

    /// Lets everything pass that a host can have.
    pub(super) fn anything() -> Self {
        Self {
            allowed: Vec::new(),
            anything: true,
        }
    }

    /// Whether an answer may have this address.
    pub(super) fn lets_pass(&self, address: IpAddr) -> bool {
        let is_allowed = || {
            let forms = [address.to_canonical(), unwrapped(address)];
            let networks = &self.allowed;
            networks
                .iter()
                .any(|network| forms.iter().any(|form| network.contains(form)))
        };
        match Danger::of(address) {
            None => true,
            Some(Danger::NoHost) => false,
            Some(Danger::LinkLocal | Danger::Metadata) => self.anything || is_allowed(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ips(list: &[&str]) -> Vec<IpAddr> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn metadata_is_dangerous_in_every_disguise() {
        for address in ips(&[
            "169.254.169.254",
            "169.254.0.1",
            "fe80::1",
            "febf::1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "100.100.100.200",
            "168.63.129.16",
            "::ffff:168.63.129.16",
            "0.0.0.0",
            "::",
            "::ffff:0.0.0.0",
            "224.0.0.1",
            "ff02::1",
            "255.255.255.255",
        ]) {
            assert!(Danger::of(address).is_some(), "{address}");
            assert!(!Guard::default().lets_pass(address), "{address}");
        }
    }

    #[test]
    fn loopback_private_and_public_addresses_pass() {
        for address in ips(&[
            "127.0.0.1",
            "::1",
            "10.0.0.1",
            "192.168.1.1",
            "169.253.0.1",
            "fd00::1",
            "fec0::1",
            "1.1.1.1",
            "64:ff9b::101:101",
            "2606:4700::1111",
        ]) {
            assert_eq!(Danger::of(address), None, "{address}");
            assert!(Guard::default().lets_pass(address), "{address}");
        }
    }

    #[test]
    fn networks_can_be_allowed_but_not_what_no_host_has() {
        let networks = ["169.254.1.0/24", "fd00:ec2::/32", "0.0.0.0/0", "::/0"];
        let guard = |list: &[&str]| {
            let list: Vec<IpNet> = list.iter().map(|text| text.parse().unwrap()).collect();
            Guard::new(&list)
        };
        let some = guard(&networks[..2]);
        for (address, passes) in [
            ("169.254.1.7", true),
            ("::ffff:169.254.1.7", true),
            ("64:ff9b::a9fe:107", true),
            ("169.254.169.254", false),
            ("fd00:ec2::254", true),
            ("fe80::1", false),
            ("10.0.0.1", true),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(some.lets_pass(address), passes, "{address}");
        }
        let all = guard(&networks[2..]);
        for address in ips(&["0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255"]) {
            assert!(!all.lets_pass(address), "{address}");
        }
        assert!(all.lets_pass("169.254.169.254".parse().unwrap()));
    }
}
