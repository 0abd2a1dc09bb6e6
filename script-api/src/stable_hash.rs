//! Hashes that come out the same on every machine, in every process and in every version: replicas of a proxy
//! must send the same client to the same place.
//!
//! SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012). With a key that nobody knows it is a
//! message authentication code; with the public key below it only spreads.

use siphasher::sip::SipHasher24;

/// The hash of `bytes`.
#[must_use]
pub fn stable_hash(bytes: &[u8]) -> u64 {
    SipHasher24::new_with_keys(0, 0).hash(bytes)
}

/// Another number that is uniform where `hash` is, and tells nothing of it: for a second choice by one hash, which
/// must not depend on the first (the finalizer of SplitMix64, a bijection).
#[must_use]
pub const fn remix(hash: u64) -> u64 {
    let mut mixed = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A key for stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StampKey {
    halves: (u64, u64),
}

impl StampKey {
    /// The key that everybody knows: a stamp under it hides nothing from one who can guess what it stands for.
    pub const PUBLIC: Self = Self {
        halves: (0x6564_6765_7772_6967, 0x6874_2073_7461_6d70),
    };

    /// The key of a secret.
    #[must_use]
    pub fn of_secret(secret: &[u8]) -> Self {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
        let tag = ring::hmac::sign(&key, b"edgewright: stamps of sticky cookies");
        let half = |from: usize| {
            let bytes = tag.as_ref()[from..from + 8].iter();
            bytes.fold(0, |number, &byte| (number << 8) | u64::from(byte))
        };
        Self {
            halves: (half(0), half(8)),
        }
    }

    /// The stamp of a text. `kind` keeps stamps of different things apart.
    #[must_use]
    pub fn stamp(&self, kind: u8, text: &str) -> u64 {
        use std::hash::Hasher as _;
        let (one, two) = self.halves;
        let mut hasher = SipHasher24::new_with_keys(one, two);
        hasher.write(&[kind]);
        hasher.write(text.as_bytes());
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Others have routed by these already.
    #[test]
    fn hashes_never_change() {
        assert_eq!(stable_hash(b""), 0x1e92_4b9d_7377_00d7);
        assert_eq!(stable_hash(b"10.0.0.1:80"), stable_hash(b"10.0.0.1:80"));
        assert_ne!(stable_hash(b"10.0.0.1:80"), stable_hash(b"10.0.0.2:80"));
    }

    #[test]
    fn stamps_depend_on_the_key_the_kind_and_the_text() {
        let stamp = StampKey::PUBLIC.stamp(1, "web");
        assert_eq!(StampKey::PUBLIC.stamp(1, "web"), stamp);
        assert_ne!(StampKey::PUBLIC.stamp(2, "web"), stamp);
        assert_ne!(StampKey::PUBLIC.stamp(1, "api"), stamp);
        let secret = StampKey::of_secret(b"0123456789abcdef");
        assert_eq!(secret, StampKey::of_secret(b"0123456789abcdef"));
        assert_ne!(secret, StampKey::of_secret(b"0123456789abcdeg"));
        assert_ne!(secret.stamp(1, "web"), stamp);
    }

    #[test]
    fn a_second_choice_does_not_follow_the_first() {
        let mut both = [[0_u32; 2]; 2];
        for number in 0_u32..4000 {
            let hash = stable_hash(&number.to_le_bytes());
            both[(hash >> 63) as usize][(remix(hash) >> 63) as usize] += 1;
        }
        // Each with a mean of 1000 and a deviation of 27.
        assert!(
            both.iter().flatten().all(|n| n.abs_diff(1000) < 200),
            "{both:?}"
        );
    }
}
