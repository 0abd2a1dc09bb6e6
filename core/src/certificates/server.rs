//! What a listener shows its clients.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use pingora_core::tls::{CertificateDer, PrivateKeyDer, sign::CertifiedKey};
use rustls::SignatureAlgorithm;
use rustls::crypto::ring;
use sha2::{Digest as _, Sha256};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::X509Certificate;

use super::{Validity, wrap};

/// A certificate with its chain and its key. Two are equal when what they were made of is.
pub struct ServerCertificate {
    key: Arc<CertifiedKey>,
    names: Vec<Box<str>>,
    addresses: Vec<IpAddr>,
    validity: Validity,
    digest: [u8; 32],
}

impl ServerCertificate {
    /// Puts the two together. The first certificate is the server's own, the others lead to an authority.
    ///
    /// # Errors
    /// Says what is wrong: the key isn't that of the first certificate, or one of them can't be used.
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, String> {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        let mut leaf = None;
        for (index, der) in chain.iter().enumerate() {
            let wrapped = wrap(der.to_vec())
                .map_err(|error| format!("its certificate {} is none: {error}", index + 1))?;
            leaf.get_or_insert(wrapped);
            part(der);
        }
        part(key.secret_der());
        let digest = hash.finalize().into();
        let leaf = leaf.ok_or("there is no certificate")?;
        let validity = Validity::of(&leaf);
        let (names, addresses) = names(leaf.borrow_cert());
        let key =
            CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| {
                match error {
                    rustls::Error::InconsistentKeys(_) => {
                        "the key is not that of the first certificate".to_owned()
                    }
                    other => other.to_string(),
                }
            })?;
        Ok(Self {
            key: Arc::new(key),
            names,
            addresses,
            validity,
            digest,
        })
    }

    /// As handshakes take it.
    #[must_use]
    pub fn certified(&self) -> &Arc<CertifiedKey> {
        &self.key
    }

    /// The host names that it is for (subjectAltName), in lower case, `*.` in front of those that stand for one more
    /// label. The common name is none of them (RFC 9525 section 2).
    #[must_use]
    pub fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// The addresses that it is for.
    #[must_use]
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// When it counts.
    #[must_use]
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// A digest of all that it was made of.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Whether its key is one of RSA, which is older and slower than the others.
    #[must_use]
    pub fn is_rsa(&self) -> bool {
        self.key.key.algorithm() == SignatureAlgorithm::RSA
    }

    /// The kind of its key: certificates of several kinds can be for one name.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.key.key.algorithm() {
            SignatureAlgorithm::RSA => "RSA",
            SignatureAlgorithm::ECDSA => "ECDSA",
            SignatureAlgorithm::ED25519 => "Ed25519",
            _ => "other",
        }
    }
}

impl PartialEq for ServerCertificate {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for ServerCertificate {}

impl fmt::Debug for ServerCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCertificate")
            .field("names", &self.names)
            .field("validity", &self.validity)
            .finish_non_exhaustive()
    }
}

/// The names of a certificate; what is no host name or address is passed over.
fn names(certificate: &X509Certificate<'_>) -> (Vec<Box<str>>, Vec<IpAddr>) {
    let (mut names, mut addresses) = (Vec::new(), Vec::new());
    let extension = certificate.subject_alternative_name().ok().flatten();
    for name in extension
        .iter()
        .flat_map(|found| &found.value.general_names)
    {
        match name {
            GeneralName::DNSName(name) => {
                let name = name.trim_end_matches('.').to_ascii_lowercase();
                names.push(name.into_boxed_str());
            }
            GeneralName::IPAddress(bytes) => addresses.extend(address(bytes)),
            _ => {}
        }
    }
    (names, addresses)
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(|octets| Ipv4Addr::from(octets).into());
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(|octets| Ipv6Addr::from(octets).into()))
        .ok()
}
