//! TLS towards the servers of URLs, verified against the system's root certificates.
//!
//! Not with the TLS part of Pingora's connector: that reads the root certificates when it is made,
//! on the thread that makes it, and panics when there is anything wrong with one of them (0.9.1,
//! `connectors::tls::rustls::Connector::new`). The handshake and the stream are Pingora's.

use std::sync::Arc;

use pingora_core::{
    connectors::ConnectorOptions,
    protocols::{Stream, l4::stream::Stream as Transport, tls::client::handshake},
    tls::{
        ClientConfig, RootCertStore, TlsConnector, install_default_crypto_provider,
        load_native_certs, version,
    },
};
use pingora_error::{Error, ErrorType, Result};
use tokio::sync::OnceCell;

/// A file of no certificates, for the TLS part of Pingora's connectors, which nothing uses: there is
/// nothing to read and nothing to panic about.
pub(crate) const NO_CERTIFICATES: &str = "/dev/null";

/// Options with which Pingora's connector reads no certificates.
pub(crate) fn without_certificates(kept: usize) -> ConnectorOptions {
    let mut options = ConnectorOptions::new(kept);
    options.ca_file = Some(NO_CERTIFICATES.to_owned());
    options
}

/// The root certificates that the process trusts: the system's, or those that `SSL_CERT_FILE` and
/// `SSL_CERT_DIR` name. Read once, at the first call that needs them; while that fails, each such
/// call fails and tries anew.
#[derive(Debug)]
pub struct Roots {
    read: fn() -> Result<RootCertStore, String>,
    store: OnceCell<Arc<RootCertStore>>,
}

impl Default for Roots {
    fn default() -> Self {
        Self::read_with(read_system)
    }
}

impl Roots {
    pub(super) fn read_with(read: fn() -> Result<RootCertStore, String>) -> Self {
        Self {
            read,
            store: OnceCell::new(),
        }
    }

    async fn get(&self) -> Result<Arc<RootCertStore>, String> {
        let read = self.read;
        let store = self.store.get_or_try_init(|| async move {
            // Hundreds of certificates from files: not on a worker.
            let read = tokio::task::spawn_blocking(read).await;
            read.map_err(|error| error.to_string())?.map(Arc::new)
        });
        store.await.cloned()
    }
}

fn read_system() -> Result<RootCertStore, String> {
    let found = load_native_certs()
        .map_err(|error| format!("the root certificates can't be read: {error}"))?;
    let mut store = RootCertStore::empty();
    // Some systems have a few that rustls can't use; the others count.
    store.add_parsable_certificates(found);
    if store.is_empty() {
        let advice = "install `ca-certificates`, or name a file in SSL_CERT_FILE";
        return Err(format!("there are no root certificates: {advice}"));
    }
    Ok(store)
}

/// A worker's TLS: sessions to resume are its own.
pub(super) struct Tls {
    roots: Arc<Roots>,
    connector: OnceCell<TlsConnector>,
}

impl Tls {
    pub(super) fn new(roots: Arc<Roots>) -> Self {
        Self {
            roots,
            connector: OnceCell::new(),
        }
    }

    /// # Errors
    /// When there is nothing to verify certificates with: then there is no connection at all.
    pub(super) async fn connector(&self) -> Result<&TlsConnector, String> {
        let make = || async {
            let roots = self.roots.get().await?;
            install_default_crypto_provider();
            let versions = [&version::TLS12, &version::TLS13];
            let mut config = ClientConfig::builder_with_protocol_versions(&versions)
                .with_root_certificates(roots)
                .with_no_client_auth();
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Ok(TlsConnector::from(Arc::new(config)))
        };
        self.connector.get_or_try_init(make).await
    }
}

/// TLS on a connection that stands. `name` is the host of the URL; the certificate must be valid
/// for it.
pub(super) async fn secure(connector: &TlsConnector, name: &str, stream: Stream) -> Result<Stream> {
    let Ok(transport) = stream.into_any().downcast::<Transport>() else {
        return Err(Error::new(ErrorType::InternalError));
    };
    let stream = handshake(connector, name, *transport).await?;
    Ok(Box::new(stream))
}
