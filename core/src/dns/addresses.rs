//! Which addresses of an answer are used.

use std::net::IpAddr;

use super::guard::Guard;
use super::outcome::Outcome;

/// The most addresses that one name may give for one record type; the rest of a larger answer is
/// left out.
pub(super) const MAX_ADDRESSES: usize = 1024;

/// What of an answer is used.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sifted {
    /// Sorted, without duplicates, [`MAX_ADDRESSES`] at most.
    pub(super) kept: Vec<IpAddr>,
    /// Usable ones beyond that.
    pub(super) left_out: usize,
    /// What `guard` doesn't let pass; sorted, without duplicates.
    pub(super) refused: Vec<IpAddr>,
}

/// Sorts, removes duplicates, and takes out what `guard` doesn't let pass.
///
/// Sorting makes two answers comparable as sets (servers shuffle the order) and makes the choice
/// of what is left out stable from one answer to the next.
pub(super) fn sift(addresses: impl IntoIterator<Item = IpAddr>, guard: &Guard) -> Sifted {
    let canonical = addresses.into_iter().map(|address| address.to_canonical());
    let (mut kept, mut refused): (Vec<IpAddr>, Vec<IpAddr>) =
        canonical.partition(|address| guard.lets_pass(*address));
    for list in [&mut kept, &mut refused] {
        list.sort_unstable();
        list.dedup();
    }
    let left_out = kept.len().saturating_sub(MAX_ADDRESSES);
    kept.truncate(MAX_ADDRESSES);
    Sifted {
        kept,
        left_out,
        refused,
    }
}

/// Addresses that stand in a file of this machine and not in an answer: only what nothing can be
/// sent to is taken out.
pub(super) fn local(addresses: impl IntoIterator<Item = IpAddr>) -> Vec<IpAddr> {
    sift(addresses, &Guard::anything()).kept
}

/// Sifts the addresses of an outcome. One of which nothing is left is an authoritative "no address",
/// as from the resolvers that block a name with 0.0.0.0. The second value is what was refused.
pub(super) fn sift_outcome(
    outcome: Outcome<IpAddr>,
    guard: &Guard,
) -> (Outcome<IpAddr>, Vec<IpAddr>) {
    let Outcome::Records {
        records,
        ttl,
        candidate,
        ..
    } = outcome
    else {
        return (outcome, Vec::new());
    };
    let Sifted {
        kept,
        left_out,
        refused,
    } = sift(records, guard);
    let outcome = if kept.is_empty() {
        Outcome::Empty {
            no_such_name: false,
            negative_ttl: Some(ttl),
        }
    } else {
        Outcome::Records {
            records: kept,
            left_out,
            ttl,
            candidate,
        }
    };
    (outcome, refused)
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
            "169.254.169.254",
            "::",
            "ff02::1",
            "255.255.255.255",
            "fd00::1",
            "10.0.0.1",
            "10.0.0.2",
            "::ffff:10.0.0.1",
        ]);
        let expected = parse(&["10.0.0.1", "10.0.0.2", "fd00::1"]);
        let sifted = sift(given, &Guard::default());
        assert_eq!(sifted.kept, expected);
        assert_eq!(sifted.left_out, 0);
        let refused = [
            "0.0.0.0",
            "169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "ff02::1",
        ];
        assert_eq!(sifted.refused, parse(&refused));
        // A file of the machine itself may say so.
        assert_eq!(
            local(parse(&["169.254.1.1", "0.0.0.0"])),
            parse(&["169.254.1.1"])
        );
    }

    #[test]
    fn large_answers_are_capped_stably() {
        let address = |n: u16| IpAddr::from([10, 0, (n >> 8) as u8, n as u8]);
        let up: Vec<_> = (1..=1500).map(address).collect();
        let down: Vec<_> = (1..=1500).rev().map(address).collect();
        let guard = Guard::default();
        let sifted = sift(up, &guard);
        assert_eq!((sifted.kept.len(), sifted.left_out), (1024, 476));
        assert_eq!(sift(down, &guard).kept, sifted.kept);
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
