//! Keys as programs give them, read once on each thread.

use std::{cell::RefCell, sync::Arc};

use hashbrown::HashMap;
use jsonwebtoken::{AlgorithmFamily, DecodingKey, EncodingKey, errors};

/// Keys of one kind that a thread keeps. Programs name few; one that takes them from a table by the
/// thousand reads them again now and then, which takes some µs.
const KEPT: usize = 256;

/// Keys by their kind and their text.
struct Kept<K> {
    families: [HashMap<Box<[u8]>, Arc<K>>; 4],
}

thread_local! {
    static VERIFYING: RefCell<Kept<DecodingKey>> = RefCell::default();
    static SIGNING: RefCell<Kept<EncodingKey>> = RefCell::default();
}

impl<K> Default for Kept<K> {
    fn default() -> Self {
        Self {
            families: std::array::from_fn(|_| HashMap::new()),
        }
    }
}

impl<K> Kept<K> {
    fn get(
        &mut self,
        family: AlgorithmFamily,
        text: &[u8],
        read: impl FnOnce() -> Result<K, String>,
    ) -> Result<Arc<K>, String> {
        let kept = &mut self.families[family as usize];
        if let Some(key) = kept.get(text) {
            return Ok(key.clone());
        }
        let key = Arc::new(read()?);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(text.into(), key.clone());
        Ok(key)
    }
}

/// The key that verifies: a secret, or a public key as PEM.
///
/// # Errors
/// When it is no key of this kind.
pub(super) fn verifying(family: AlgorithmFamily, text: &[u8]) -> Result<Arc<DecodingKey>, String> {
    let read = || {
        if family == AlgorithmFamily::Hmac {
            return secret(text, DecodingKey::from_secret);
        }
        if !holds(text, "BEGIN PUBLIC KEY") && !holds(text, "BEGIN RSA PUBLIC KEY") {
            return Err(
                "`public_key` is no PEM text that begins with `-----BEGIN PUBLIC KEY-----`"
                    .to_owned(),
            );
        }
        let key = match family {
            AlgorithmFamily::Rsa => DecodingKey::from_rsa_pem(text),
            AlgorithmFamily::Ec => DecodingKey::from_ec_pem(text),
            _ => DecodingKey::from_ed_pem(text),
        };
        key.map_err(|_| format!("`public_key` is no {} public key", kind(family)))
    };
    VERIFYING.with_borrow_mut(|kept| kept.get(family, text, read))
}

/// The key that signs: a secret, or a private key as PEM.
///
/// # Errors
/// As [`verifying`].
pub(super) fn signing(family: AlgorithmFamily, text: &[u8]) -> Result<Arc<EncodingKey>, String> {
    let read = || {
        if family == AlgorithmFamily::Hmac {
            return secret(text, EncodingKey::from_secret);
        }
        if holds(text, "BEGIN EC PRIVATE KEY") {
            return Err(
                "`private_key` must be PKCS#8: `openssl pkcs8 -topk8 -nocrypt -in key.pem`"
                    .to_owned(),
            );
        }
        if !holds(text, "BEGIN PRIVATE KEY") && !holds(text, "BEGIN RSA PRIVATE KEY") {
            return Err(
                "`private_key` is no PEM text that begins with `-----BEGIN PRIVATE KEY-----`"
                    .to_owned(),
            );
        }
        let key = match family {
            AlgorithmFamily::Rsa => EncodingKey::from_rsa_pem(text),
            AlgorithmFamily::Ec => EncodingKey::from_ec_pem(text),
            _ => EncodingKey::from_ed_pem(text),
        };
        key.map_err(|_| format!("`private_key` is no {} private key", kind(family)))
    };
    SIGNING.with_borrow_mut(|kept| kept.get(family, text, read))
}

fn secret<K>(text: &[u8], read: fn(&[u8]) -> errors::Result<K>) -> Result<K, String> {
    // A public key is known to everybody, and would make a poor secret.
    if holds(text, "-----BEGIN ") {
        return Err(
            "`secret` holds a PEM text: a key of that kind is a `public_key` or `private_key`"
                .to_owned(),
        );
    }
    read(text).map_err(|_| "`secret` is empty".to_owned())
}

fn holds(text: &[u8], what: &str) -> bool {
    memchr::memmem::find(text, what.as_bytes()).is_some()
}

fn kind(family: AlgorithmFamily) -> &'static str {
    match family {
        AlgorithmFamily::Hmac => "HMAC",
        AlgorithmFamily::Rsa => "RSA",
        AlgorithmFamily::Ec => "elliptic curve",
        AlgorithmFamily::Ed => "Ed25519",
    }
}
