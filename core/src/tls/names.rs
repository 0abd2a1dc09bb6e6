//! Which certificate a client is shown.

use std::collections::HashMap;
use std::sync::Arc;

use pingora_core::tls::{ClientHello, ResolvesServerCert, sign::CertifiedKey};
use rustls::SignatureScheme;

use crate::certificates::ServerCertificate;

/// The certificates of a listener by the names that they are for.
#[derive(Debug)]
pub(super) struct Names {
    /// By host name.
    exact: HashMap<Box<str>, Vec<Arc<ServerCertificate>>>,
    /// By what stands behind `*.`.
    wildcard: HashMap<Box<str>, Vec<Arc<ServerCertificate>>>,
    /// For everybody else: the first certificate, and those that are for just the same names.
    others: Vec<Arc<ServerCertificate>>,
}

impl Names {
    /// Of several for one name, those that are not of RSA come first: they are quicker, and clients that don't know
    /// them say so. Among these the order is the one given.
    pub(super) fn new(mut certificates: Vec<Arc<ServerCertificate>>) -> Self {
        let others = match certificates.first() {
            None => Vec::new(),
            Some(first) => {
                let alike = |other: &Arc<ServerCertificate>| {
                    other.names() == first.names() && other.addresses() == first.addresses()
                };
                let mut others: Vec<_> = certificates.iter().filter(|one| alike(one)).collect();
                others.sort_by_key(|one| one.is_rsa());
                others.into_iter().cloned().collect()
            }
        };
        certificates.sort_by_key(|one| one.is_rsa());
        let mut names = Self {
            exact: HashMap::new(),
            wildcard: HashMap::new(),
            others,
        };
        for certificate in certificates {
            for name in certificate.names() {
                let (among, name) = match name.strip_prefix("*.") {
                    Some(parent) => (&mut names.wildcard, parent),
                    None => (&mut names.exact, &**name),
                };
                let known = among.entry(name.into()).or_default();
                known.push(certificate.clone());
            }
        }
        names
    }

    /// The certificate for a client that asks for `name` and can check these signatures. A wildcard stands for one
    /// label (RFC 9525 section 6.3). What the client can't check is shown only where there is nothing else: the
    /// handshake then fails, and both sides know why.
    pub(super) fn find(
        &self,
        name: Option<&str>,
        schemes: &[SignatureScheme],
    ) -> Option<&Arc<ServerCertificate>> {
        let name = name.map(|name| name.trim_end_matches('.').to_ascii_lowercase());
        let exact = name.as_deref().and_then(|name| self.exact.get(name));
        let parent = name
            .as_deref()
            .and_then(|name| Some(name.split_once('.')?.1));
        let wildcard = parent.and_then(|parent| self.wildcard.get(parent));
        let mut fitting: Vec<_> = exact.into_iter().chain(wildcard).flatten().collect();
        if fitting.is_empty() {
            fitting.extend(&self.others);
        }
        let is_usable = |one: &&Arc<ServerCertificate>| {
            let scheme = one.certified().key.choose_scheme(schemes);
            scheme.is_some()
        };
        let usable = fitting.iter().copied().find(is_usable);
        usable.or_else(|| fitting.first().copied())
    }
}

impl ResolvesServerCert for Names {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let found = self.find(hello.server_name(), hello.signature_schemes())?;
        Some(found.certified().clone())
    }
}
