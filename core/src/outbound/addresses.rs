//! Which addresses of a URL's server are tried.

use std::net::IpAddr;

use smallvec::SmallVec;

use crate::dns::Danger;

/// Addresses that one call tries, in this order.
pub(super) type Candidates = SmallVec<[IpAddr; MOST]>;

/// Connections that are tried for one call, as for a request
/// ([`proxy::upstream`](crate::proxy)).
pub(super) const MOST: usize = 3;

const LINK_LOCAL: &str =
    "is link-local, where clouds keep their metadata; a pool may have it as a target";
const METADATA: &str = "is a cloud's metadata service; a pool may have it as a target";
const NO_HOST: &str = "is no address that can be connected to";

/// Why a URL may not lead to this address. A program that makes a URL of what a client sent must
/// not give away the machine's credentials (server-side request forgery).
fn refusal(address: IpAddr) -> Option<&'static str> {
    Danger::of(address).map(|danger| match danger {
        Danger::LinkLocal => LINK_LOCAL,
        Danger::Metadata => METADATA,
        Danger::NoHost => NO_HOST,
    })
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
