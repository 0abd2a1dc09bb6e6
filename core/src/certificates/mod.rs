//! Certificates and keys in PEM files, read and checked when they are loaded: at request time nothing about
//! them can fail any more.
//!
//! The types are those that Pingora's connector takes. Its own readers open files, panic on what they can't
//! parse, and don't look whether a key belongs to its certificate.

mod server;
mod system;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pingora_core::tls::{
    CertificateDer, ClientConfig, PrivateKeyDer, RootCertStore, install_default_crypto_provider,
};
use pingora_core::utils::tls::{CertKey, WrappedX509};
use rustls_pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};

pub use server::ServerCertificate;
pub use system::system;

/// Certificates that a server's certificate must be signed by.
pub type Authorities = Arc<[WrappedX509]>;

/// An authority that has signed nothing: its key was thrown away when it was made. Pingora's connector wants
/// one even for peers whose certificate nobody verifies.
const NOBODY: &[u8] = include_bytes!("nobody.pem");

/// The certificates of a PEM file. What else stands in it is passed over.
///
/// # Errors
/// Says what is wrong: no PEM, or no certificate in it.
pub fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| format!("it is no PEM file: {error:?}"))?;
    if found.is_empty() {
        return Err("there is no certificate in it".to_owned());
    }
    Ok(found)
}

/// The private key of a PEM file: PKCS #8, PKCS #1 or SEC 1, without a password.
///
/// # Errors
/// Says what is wrong. It tells nothing of the file's content.
pub fn key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|_| {
        "there is no private key in it that can be read (a PEM file without a password)".to_owned()
    })
}

/// The authorities of a PEM file.
///
/// # Errors
/// Says what is wrong: no PEM, nothing in it, or a certificate that can't be an authority's.
pub fn authorities(pem: &[u8]) -> Result<Authorities, String> {
    let mut store = RootCertStore::empty();
    let mut found = Vec::new();
    for (index, der) in chain(pem)?.into_iter().enumerate() {
        let wrong = |error: String| format!("its certificate {} can't be used: {error}", index + 1);
        store
            .add(der.clone())
            .map_err(|error| wrong(error.to_string()))?;
        found.push(wrap(der.to_vec()).map_err(wrong)?);
    }
    Ok(found.into())
}

/// What stands where authorities are wanted and never asked.
///
/// # Errors
/// None but a bug: the certificate is a part of the program.
pub fn nobody() -> Result<Authorities, String> {
    authorities(NOBODY)
}

/// A certificate with its key, by which a client shows who it is.
///
/// # Errors
/// Says what is wrong: the key isn't that of the first certificate, or one of the two can't be used.
pub fn pair(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<CertKey>, String> {
    install_default_crypto_provider();
    let certificates: Vec<Vec<u8>> = chain.iter().map(|der| der.to_vec()).collect();
    for der in &certificates {
        wrap(der.clone())?;
    }
    let secret = key.secret_der().to_vec();
    // The very conversion that Pingora makes for each connection.
    let again = PrivateKeyDer::try_from(secret.clone()).map_err(str::to_owned)?;
    ClientConfig::builder()
        .with_root_certificates(RootCertStore::empty())
        .with_client_auth_cert(chain, again)
        .map_err(|error| error.to_string())?;
    Ok(Arc::new(CertKey::new(certificates, secret)))
}

fn wrap(der: Vec<u8>) -> Result<WrappedX509, String> {
    // What it is given is the vector that the result keeps.
    #[allow(clippy::ptr_arg)]
    fn parse(der: &Vec<u8>) -> Result<X509Certificate<'_>, String> {
        X509Certificate::from_der(der)
            .map(|(_, certificate)| certificate)
            .map_err(|error| error.to_string())
    }
    WrappedX509::try_new(der, parse)
}

/// When a certificate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The first moment.
    pub from: SystemTime,
    /// The last.
    pub until: SystemTime,
}

impl Validity {
    /// That of a certificate that Pingora has parsed.
    #[must_use]
    pub fn of(certificate: &WrappedX509) -> Self {
        let validity = certificate.borrow_cert().validity();
        Self {
            from: time(validity.not_before.timestamp()),
            until: time(validity.not_after.timestamp()),
        }
    }

    /// Whether it ends so soon that a new one should be there: within a fifth of its life, and two weeks.
    #[must_use]
    pub fn ends_soon(&self, now: SystemTime) -> bool {
        const TWO_WEEKS: Duration = Duration::from_secs(14 * 24 * 3600);
        let life = self.until.duration_since(self.from).unwrap_or_default();
        let left = self.until.duration_since(now).unwrap_or_default();
        left < (life / 5).min(TWO_WEEKS)
    }
}

/// Seconds since the epoch as a time; the epoch itself for times before.
fn time(seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}
