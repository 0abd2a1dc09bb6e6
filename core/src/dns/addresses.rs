//! Which addresses of an answer may be used.

use std::net::IpAddr;

/// The most addresses that one name may give for one record type; the rest of a larger answer is
/// left out.
pub(super) const MAX_ADDRESSES: usize = 1024;

/// Sorts, removes duplicates and what nothing can be sent to (0.0.0.0, ::, multicast, broadcast),
/// and keeps at most [`MAX_ADDRESSES`]. The second value tells how many usable ones were left out.
///
/// Sorting makes two answers comparable as sets (servers shuffle the order) and makes the choice
/// of what is left out stable from one answer to the next.
pub(super) fn usable(addresses: impl IntoIterator<Item = IpAddr>) -> (Vec<IpAddr>, usize) {
    let mut kept: Vec<IpAddr> = addresses
        .into_iter()
        .map(|address| address.to_canonical())
        .filter(|address| is_usable(*address))
        .collect();
    kept.sort_unstable();
    kept.dedup();
    let left_out = kept.len().saturating_sub(MAX_ADDRESSES);
    kept.truncate(MAX_ADDRESSES);
    (kept, left_out)
}

fn is_usable(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !(address.is_unspecified() || address.is_multicast() || broadcast)
}

/// Whether the host has an IPv6 address other than loopback and link-local ones, so that asking
/// for AAAA makes sense.
///
/// Linux lists its addresses in `/proc/net/if_inet6` (no file: no IPv6); the fourth field is the
/// scope, 00 for global. On other systems the answer is always yes.
pub(super) fn host_has_ipv6() -> bool {
    if cfg!(target_os = "linux") {
        std::fs::read_to_string("/proc/net/if_inet6").is_ok_and(|text| has_global_scope(&text))
    } else {
        true
    }
}

fn has_global_scope(if_inet6: &str) -> bool {
    if_inet6
        .lines()
        .any(|line| line.split_ascii_whitespace().nth(3) == Some("00"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(list: &[&str]) -> Vec<IpAddr> {
        list.iter().filter_map(|text| text.parse().ok()).collect()
    }

    #[test]
    fn sorts_dedups_and_drops_what_cannot_be_reached() {
        let given = parse(&[
            "10.0.0.2",
            "0.0.0.0",
            "224.0.0.1",
            "::",
            "ff02::1",
            "255.255.255.255",
            "fd00::1",
            "10.0.0.1",
            "10.0.0.2",
            "::ffff:10.0.0.1",
        ]);
        let expected = parse(&["10.0.0.1", "10.0.0.2", "fd00::1"]);
        assert_eq!(usable(given), (expected, 0));
    }

    #[test]
    fn large_answers_are_capped_stably() {
        let address = |n: u16| IpAddr::from([10, 0, (n >> 8) as u8, n as u8]);
        let up: Vec<_> = (1..=1500).map(address).collect();
        let down: Vec<_> = (1..=1500).rev().map(address).collect();
        let (kept, left_out) = usable(up);
        assert_eq!((kept.len(), left_out), (1024, 476));
        assert_eq!(usable(down).0, kept);
    }

    #[test]
    fn only_global_scope_counts_as_ipv6() {
        let loopback = "00000000000000000000000000000001 01 80 10 80       lo\n";
        let link = "fe8000000000000000fc00fffe000001 04 40 20 80     eth0\n";
        let unique_local = "fd000000000000000000000000000002 04 40 00 82     eth0\n";
        assert!(!has_global_scope(""));
        assert!(!has_global_scope(&format!("{loopback}{link}")));
        assert!(has_global_scope(&format!("{loopback}{link}{unique_local}")));
    }
}
