//! Which keys fit which algorithms.

use jsonwebtoken::{Algorithm, DecodingKey};

/// Refuses a key that can verify nothing, which would else only show as tokens that are refused.
///
/// # Errors
/// With what the algorithm needs.
pub(crate) fn fits(algorithm: Algorithm, key: &DecodingKey) -> Result<(), String> {
    let len = key.try_get_as_bytes().map_or(0, <[u8]>::len);
    let (fits, wanted) = match algorithm {
        // A point that is not compressed (RFC 5480 section 2.2).
        Algorithm::ES256 => (len == 65, "a key of the curve P-256"),
        Algorithm::ES384 => (len == 97, "a key of the curve P-384"),
        Algorithm::EdDSA => (len == 32, "an Ed25519 key"),
        Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 => (len > 0, "a secret"),
        // RFC 7518 section 3.3.
        _ => (len > 2048 / 8, "an RSA key of 2048 bits at least"),
    };
    if key.family() == algorithm.family() && fits {
        return Ok(());
    }
    Err(format!("{algorithm:?} needs {wanted}"))
}
