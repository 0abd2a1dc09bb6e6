//! TLS towards clients: what the listeners of a generation show, and to whom.
//!
//! A handshake takes the settings of the generation in force. What a reload does not change is carried over, session
//! tickets included; where it changes something, old tickets are not taken any more, so that whoever comes back sees
//! the new certificate. A certificate that can't be used does not hold a reload up: the one that stood in its place
//! stays.

mod names;
mod status;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt, net::SocketAddr, sync::Arc};

use edgewright_script::diagnostic::{Diagnostic, Diagnostics};
use pingora_core::tls::{ServerConfig, version};
use rustls::{crypto::ring, server::NoServerSessionStorage};
use sha2::{Digest as _, Sha256};

use crate::{
    certificates::ServerCertificate,
    config::{Config, ListenerTls, Slot, TlsVersion},
};
use names::Names;

pub use status::{CertificateSample, CertificateStatus};

/// The listeners with TLS of one generation.
#[derive(Debug, Default)]
pub struct TlsListeners(BTreeMap<SocketAddr, Arc<TlsListener>>);

/// What one listener does with TLS.
pub struct TlsListener {
    server: Arc<ServerConfig>,
    /// Over all that `server` was made of.
    digest: [u8; 32],
    places: Vec<Place>,
    /// Whether it was there at the start: then its address is open, whatever later files say.
    opened: bool,
}

/// What became of an entry of `certificates`.
#[derive(Debug, Clone)]
struct Place {
    /// The file of the certificate, as the settings name it.
    cert: String,
    /// What is shown: what the files hold, or else what they held before.
    shown: Option<Arc<ServerCertificate>>,
    /// Why what the files hold now can't be shown.
    problem: Option<Diagnostic>,
}

impl TlsListeners {
    /// Those of a configuration. Without a `previous` generation every certificate must be usable; with one, a place
    /// whose files can't be used keeps what it had, or is left out when it had nothing.
    ///
    /// # Errors
    /// When a listener would have no certificate at all, or, at the start, not all of them.
    pub fn build(config: &Config, previous: Option<&Self>) -> Result<Self, Diagnostics> {
        let mut built = BTreeMap::new();
        let mut wrong = Vec::new();
        for listener in &config.listeners {
            let Some(tls) = &listener.tls else { continue };
            let before = previous.and_then(|all| all.0.get(&listener.address));
            let places = tls.certificates.iter().map(|slot| place(slot, previous));
            let places: Vec<_> = places.collect();
            let problems = places.iter().filter_map(|place| place.problem.clone());
            let shows_any = places.iter().any(|place| place.shown.is_some());
            if previous.is_none() || !shows_any {
                wrong.extend(problems);
                if !wrong.is_empty() {
                    continue;
                }
            }
            let opened = previous.is_none() || before.is_some_and(|before| before.opened);
            match TlsListener::new(tls, listener.http2, places, before, opened) {
                Ok(made) => {
                    built.insert(listener.address, Arc::new(made));
                }
                Err(error) => {
                    let error = format!("TLS on {}: {error}", listener.address);
                    wrong.push(Diagnostic::error(error));
                }
            }
        }
        if !wrong.is_empty() {
            return Err(Diagnostics(wrong));
        }
        // Addresses change at the next start only: what is open goes on as it was.
        for (address, before) in previous.into_iter().flat_map(|all| &all.0) {
            if before.opened && !built.contains_key(address) {
                built.insert(*address, before.clone());
            }
        }
        Ok(Self(built))
    }

    /// The settings for a handshake on the listener at this address.
    #[must_use]
    pub fn server(&self, address: SocketAddr) -> Option<&Arc<ServerConfig>> {
        Some(&self.0.get(&address)?.server)
    }

    /// The certificate that is shown for this file, on whichever listener.
    fn shown(&self, cert: &str) -> Option<&Arc<ServerCertificate>> {
        let mut places = self.places().map(|(_, place)| place);
        places.find_map(|place| place.shown.as_ref().filter(|_| place.cert == cert))
    }

    fn places(&self) -> impl Iterator<Item = (SocketAddr, &Place)> {
        let all = self.0.iter();
        all.flat_map(|(address, tls)| tls.places.iter().map(|place| (*address, place)))
    }
}

fn place(slot: &Slot, previous: Option<&TlsListeners>) -> Place {
    let cert = slot.cert.clone();
    match &slot.found {
        Ok(found) => Place {
            cert,
            shown: Some(found.clone()),
            problem: None,
        },
        Err(problem) => Place {
            shown: previous.and_then(|all| all.shown(&cert)).cloned(),
            cert,
            problem: Some(problem.clone()),
        },
    }
}

impl TlsListener {
    fn new(
        tls: &ListenerTls,
        http2: bool,
        places: Vec<Place>,
        before: Option<&Arc<Self>>,
        opened: bool,
    ) -> Result<Self, rustls::Error> {
        let certificates: Vec<_> = places.iter().filter_map(|one| one.shown.clone()).collect();
        let digest = digest(tls.min_version, http2, &certificates);
        let server = match before.filter(|before| before.digest == digest) {
            Some(before) => before.server.clone(),
            None => Arc::new(server(tls.min_version, http2, certificates)?),
        };
        Ok(Self {
            server,
            digest,
            places,
            opened,
        })
    }
}

impl fmt::Debug for TlsListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsListener")
            .field("places", &self.places)
            .finish_non_exhaustive()
    }
}

fn digest(min: TlsVersion, http2: bool, certificates: &[Arc<ServerCertificate>]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update([u8::from(min == TlsVersion::V1_3), u8::from(http2)]);
    for certificate in certificates {
        hash.update(certificate.digest());
    }
    hash.finalize().into()
}

fn server(
    min: TlsVersion,
    http2: bool,
    certificates: Vec<Arc<ServerCertificate>>,
) -> Result<ServerConfig, rustls::Error> {
    let versions = match min {
        TlsVersion::V1_2 => &[&version::TLS13, &version::TLS12][..],
        TlsVersion::V1_3 => &[&version::TLS13],
    };
    let provider = Arc::new(ring::default_provider());
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Names::new(certificates)));
    let protocols = if http2 {
        &["h2", "http/1.1"][..]
    } else {
        &["http/1.1"]
    };
    server.alpn_protocols = protocols
        .iter()
        .map(|one| one.as_bytes().to_vec())
        .collect();
    // Tickets only, which all workers understand and nobody has to keep. Their keys change every six hours, and with
    // these settings.
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.ticketer = ring::Ticketer::new()?;
    Ok(server)
}
