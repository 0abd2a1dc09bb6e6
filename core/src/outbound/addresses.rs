//! Which addresses of a URL's server are tried.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use smallvec::SmallVec;

/// Addresses that one call tries, in this order.
pub(super) type Candidates = SmallVec<[IpAddr; MOST]>;

/// Connections that are tried for one call, as for a request
/// ([`proxy::upstream`](crate::proxy)).
pub(super) const MOST: usize = 3;

const LINK_LOCAL: &str =
    "is link-local, where clouds keep their metadata; a pool may have it as a target";
const METADATA: &str = "is a cloud's metadata service; a pool may have it as a target";
const NO_HOST: &str = "is no address that can be connected to";

/// Metadata services outside the link-local ranges.
const METADATA_SERVICES: [IpAddr; 3] = [
    // Azure's WireServer.
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    // Alibaba Cloud.
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    // Google Cloud.
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// Why a URL may not lead to this address. A program that makes a URL of what a client sent must
/// not give away the machine's credentials (server-side request forgery).
pub(super) fn refusal(address: IpAddr) -> Option<&'static str> {
    let address = unwrapped(address);
    let link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    if link_local {
        Some(LINK_LOCAL)
    } else if METADATA_SERVICES.contains(&address) || is_of_aws(address) {
        Some(METADATA)
    } else if address.is_unspecified() || address.is_multicast() || broadcast {
        Some(NO_HOST)
    } else {
        None
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

/// What of a name's addresses is tried: a random IPv4 address first, then an IPv6 one where there
/// is any, so that a family that leads nowhere costs one attempt.
///
/// # Errors
/// When none may be connected to, with the reason.
pub(super) fn candidates(addresses: &[IpAddr]) -> Result<Candidates, String> {
    let mut refused = None;
    let mut families: [SmallVec<[IpAddr; 8]>; 2] = Default::default();
    for address in addresses {
        match refusal(*address) {
            Some(reason) => refused = Some((address, reason)),
            None => families[usize::from(address.is_ipv6())].push(*address),
        }
    }
    for family in &mut families {
        if !family.is_empty() {
            let first = fastrand::usize(..family.len());
            family.rotate_left(first);
        }
    }
    let [v4, v6] = &families;
    let in_turn = (0..MOST).flat_map(|index| [v4.get(index), v6.get(index)]);
    let chosen: Candidates = in_turn.flatten().take(MOST).copied().collect();
    match refused {
        _ if !chosen.is_empty() => Ok(chosen),
        Some((address, reason)) => Err(format!("{address} {reason}")),
        None => Err("it has no address".to_owned()),
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
    fn metadata_is_refused_in_every_disguise() {
        for address in ips(&[
            "169.254.169.254",
            "169.254.0.1",
            "fe80::1",
            "febf::1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
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
            assert!(refusal(address).is_some(), "{address}");
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
            assert_eq!(refusal(address), None, "{address}");
        }
    }

    #[test]
    fn families_take_turns_and_refused_ones_are_left_out() {
        let given = ips(&["10.0.0.1", "10.0.0.2", "169.254.1.1", "fd00::1", "fd00::2"]);
        let mut first = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let chosen = candidates(&given).unwrap();
            assert_eq!(chosen.len(), MOST);
            let v6: Vec<bool> = chosen.iter().map(IpAddr::is_ipv6).collect();
            assert_eq!(v6, [false, true, false]);
            assert_ne!(chosen[0], chosen[2]);
            assert!(chosen.iter().all(|address| refusal(*address).is_none()));
            first.insert(chosen[0]);
        }
        assert_eq!(first.len(), 2);

        let one = ips(&["fd00::1"]);
        assert_eq!(candidates(&one).unwrap()[..], one[..]);
    }

    #[test]
    fn the_reason_names_the_address() {
        let refused = candidates(&ips(&["169.254.169.254"])).unwrap_err();
        assert!(
            refused.starts_with("169.254.169.254 is link-local"),
            "{refused}"
        );
        assert_eq!(candidates(&[]).unwrap_err(), "it has no address");
    }
}
