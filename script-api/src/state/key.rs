//! The keys of shared state, as they are kept.

use std::net::IpAddr;

use sha2::{Digest, Sha256};

/// A key of at most this many bytes is kept as it is.
const LONGEST: usize = 64;

/// A key. Of a long one its SHA-256 digest is kept, so whatever a client sends as a key (a whole
/// token, say) takes no more than 65 bytes, and no two keys are taken for one.
#[derive(Debug, Clone)]
pub struct Key<'a>(Kept<'a>);

#[derive(Debug, Clone)]
enum Kept<'a> {
    Text(&'a str),
    Digest([u8; 33]),
    Address([u8; 17]),
}

impl<'a> From<&'a str> for Key<'a> {
    fn from(text: &'a str) -> Self {
        if text.len() <= LONGEST {
            return Self(Kept::Text(text));
        }
        // No text begins with this byte, which is never part of UTF-8.
        let mut kept = [0xff; 33];
        kept[1..].copy_from_slice(&Sha256::digest(text.as_bytes()));
        Self(Kept::Digest(kept))
    }
}

impl Key<'_> {
    /// The key of somebody who has none, by his address. No text is the same key.
    pub(crate) fn instead_of(address: IpAddr) -> Self {
        let octets = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        // Never part of UTF-8 either.
        let mut kept = [0xfe; 17];
        kept[1..].copy_from_slice(&octets);
        Self(Kept::Address(kept))
    }

    /// What is kept of it.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Kept::Text(text) => text.as_bytes(),
            Kept::Digest(digest) => digest,
            Kept::Address(address) => address,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_keys_are_short_and_apart() {
        let texts = ["", "a", &"a".repeat(64), &"a".repeat(65), &"a".repeat(66)];
        let kept: Vec<Vec<u8>> = texts
            .iter()
            .map(|text| Key::from(*text).as_bytes().to_vec())
            .collect();
        for (index, key) in kept.iter().enumerate() {
            assert!(key.len() <= LONGEST);
            assert!(!kept[..index].contains(key), "{key:?}");
        }
    }
}
