//! The signatures of tokens, made and verified by ring.
//!
//! `jsonwebtoken` leaves them to a provider. Those that it can bring itself are a second
//! cryptographic library beside that of the TLS stack; this is the same one.

use std::sync::Once;

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey, EncodingKey,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    errors::{ErrorKind, Result, new_error},
    signature::{self, Signer, Verifier},
};
use ring::{hmac, rand::SystemRandom, signature as ring_signature};
use ring_signature::{
    EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, RsaEncoding, RsaKeyPair,
    UnparsedPublicKey, VerificationAlgorithm,
};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    // For making key sets (JWK), which nothing here does.
    key_utils: KeyUtils::new_unimplemented(),
};

/// Gives the provider to `jsonwebtoken`, which asks for one per process.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // Another one that the process has set before does the same.
        let _ = PROVIDER.install_default();
    });
}

struct RingVerifier {
    algorithm: Algorithm,
    with: Verifies,
}

enum Verifies {
    Code(hmac::Key),
    Signature(UnparsedPublicKey<Vec<u8>>),
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    // Whoever mixes them up takes a public key for a secret.
    if key.family() != algorithm.family() {
        return Err(new_error(ErrorKind::InvalidAlgorithm));
    }
    let bytes = key.try_get_as_bytes()?;
    let with = match code(*algorithm) {
        Some(code) => Verifies::Code(hmac::Key::new(code, bytes)),
        None => {
            let algorithm = verification(*algorithm)?;
            Verifies::Signature(UnparsedPublicKey::new(algorithm, bytes.to_vec()))
        }
    };
    Ok(Box::new(RingVerifier {
        algorithm: *algorithm,
        with,
    }))
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(
        &self,
        message: &[u8],
        signature: &Vec<u8>,
    ) -> std::result::Result<(), signature::Error> {
        let verified = match &self.with {
            Verifies::Code(key) => hmac::verify(key, message, signature),
            Verifies::Signature(key) => key.verify(message, signature),
        };
        verified.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

struct RingSigner {
    algorithm: Algorithm,
    with: Signs,
}

enum Signs {
    Code(hmac::Key),
    Rsa(RsaKeyPair, &'static dyn RsaEncoding),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    if key.family() != algorithm.family() {
        return Err(new_error(ErrorKind::InvalidAlgorithm));
    }
    let bytes = key.as_bytes();
    let unusable = |_| new_error(ErrorKind::InvalidKeyFormat);
    let with = match (algorithm.family(), code(*algorithm)) {
        (_, Some(code)) => Signs::Code(hmac::Key::new(code, bytes)),
        (AlgorithmFamily::Rsa, _) => {
            let key = RsaKeyPair::from_der(bytes).map_err(unusable)?;
            Signs::Rsa(key, rsa_encoding(*algorithm)?)
        }
        (AlgorithmFamily::Ec, _) => {
            let curve = curve(*algorithm)?;
            let key = EcdsaKeyPair::from_pkcs8(curve, bytes, &SystemRandom::new());
            Signs::Ec(key.map_err(unusable)?)
        }
        (AlgorithmFamily::Ed, _) => {
            // OpenSSL writes these without the public key, which could be checked otherwise.
            let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(bytes);
            Signs::Ed(key.map_err(unusable)?)
        }
        _ => return Err(new_error(ErrorKind::UnsupportedAlgorithm)),
    };
    Ok(Box::new(RingSigner {
        algorithm: *algorithm,
        with,
    }))
}

impl Signer<Vec<u8>> for RingSigner {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, signature::Error> {
        let failed = |_| signature::Error::new();
        Ok(match &self.with {
            Signs::Code(key) => hmac::sign(key, message).as_ref().to_vec(),
            Signs::Rsa(key, encoding) => {
                let mut signed = vec![0; key.public().modulus_len()];
                key.sign(*encoding, &SystemRandom::new(), message, &mut signed)
                    .map_err(failed)?;
                signed
            }
            Signs::Ec(key) => {
                let signed = key.sign(&SystemRandom::new(), message).map_err(failed)?;
                signed.as_ref().to_vec()
            }
            Signs::Ed(key) => key.sign(message).as_ref().to_vec(),
        })
    }
}

impl JwtSigner for RingSigner {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// Of the algorithms with a shared secret (RFC 7518 section 3.2).
fn code(algorithm: Algorithm) -> Option<hmac::Algorithm> {
    Some(match algorithm {
        Algorithm::HS256 => hmac::HMAC_SHA256,
        Algorithm::HS384 => hmac::HMAC_SHA384,
        Algorithm::HS512 => hmac::HMAC_SHA512,
        _ => return None,
    })
}

/// RFC 7518 sections 3.3 to 3.5, RFC 8037 section 3.1.
fn verification(algorithm: Algorithm) -> Result<&'static dyn VerificationAlgorithm> {
    Ok(match algorithm {
        Algorithm::RS256 => &ring_signature::RSA_PKCS1_2048_8192_SHA256,
        Algorithm::RS384 => &ring_signature::RSA_PKCS1_2048_8192_SHA384,
        Algorithm::RS512 => &ring_signature::RSA_PKCS1_2048_8192_SHA512,
        Algorithm::PS256 => &ring_signature::RSA_PSS_2048_8192_SHA256,
        Algorithm::PS384 => &ring_signature::RSA_PSS_2048_8192_SHA384,
        Algorithm::PS512 => &ring_signature::RSA_PSS_2048_8192_SHA512,
        Algorithm::ES256 => &ring_signature::ECDSA_P256_SHA256_FIXED,
        Algorithm::ES384 => &ring_signature::ECDSA_P384_SHA384_FIXED,
        Algorithm::EdDSA => &ring_signature::ED25519,
        _ => return Err(new_error(ErrorKind::UnsupportedAlgorithm)),
    })
}

fn rsa_encoding(algorithm: Algorithm) -> Result<&'static dyn RsaEncoding> {
    Ok(match algorithm {
        Algorithm::RS256 => &ring_signature::RSA_PKCS1_SHA256,
        Algorithm::RS384 => &ring_signature::RSA_PKCS1_SHA384,
        Algorithm::RS512 => &ring_signature::RSA_PKCS1_SHA512,
        Algorithm::PS256 => &ring_signature::RSA_PSS_SHA256,
        Algorithm::PS384 => &ring_signature::RSA_PSS_SHA384,
        Algorithm::PS512 => &ring_signature::RSA_PSS_SHA512,
        _ => return Err(new_error(ErrorKind::UnsupportedAlgorithm)),
    })
}

fn curve(algorithm: Algorithm) -> Result<&'static EcdsaSigningAlgorithm> {
    Ok(match algorithm {
        Algorithm::ES256 => &ring_signature::ECDSA_P256_SHA256_FIXED_SIGNING,
        Algorithm::ES384 => &ring_signature::ECDSA_P384_SHA384_FIXED_SIGNING,
        _ => return Err(new_error(ErrorKind::UnsupportedAlgorithm)),
    })
}
