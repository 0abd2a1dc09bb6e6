//! TLS in front of a scripted upstream: shakes hands, remembers what it saw, and passes the bytes on.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use pingora_core::tls::{
    RootCertStore, ServerConfig, TlsAcceptor, WebPkiClientVerifier, install_default_crypto_provider,
};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use super::certificates::Issued;
use super::service::Service;

/// What a handshake showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shaken {
    /// The name that the client asked for (SNI).
    pub server_name: Option<String>,
    /// The protocol that was agreed upon.
    pub alpn: Option<String>,
    /// The client's certificate.
    pub client: Option<Vec<u8>>,
}

/// A server of TLS; it stops when dropped.
pub struct TlsServer {
    address: SocketAddr,
    shaken: Arc<Mutex<Vec<Shaken>>>,
    failed: Arc<Mutex<Vec<String>>>,
    _service: Service,
}

/// Who must show a certificate, and what is spoken inside.
#[derive(Default)]
pub struct Demands<'a> {
    /// The authority, as PEM, of the certificate that clients must have.
    pub client_authority: Option<String>,
    /// The protocols that are offered.
    pub alpn: &'a [&'a str],
}

impl TlsServer {
    /// Passes on to `inner` what clients say once they have shaken hands.
    pub fn start(own: &Issued, inner: SocketAddr, demands: &Demands<'_>) -> Self {
        let acceptor = TlsAcceptor::from(Arc::new(config(own, demands)));
        let shaken = Arc::<Mutex<Vec<Shaken>>>::default();
        let failed = Arc::<Mutex<Vec<String>>>::default();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, errors) = (shaken.clone(), failed.clone());
        let service = Service::run(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, seen, errors) = (acceptor.clone(), seen.clone(), errors.clone());
                tokio::spawn(async move {
                    let mut outer = match acceptor.accept(stream).await {
                        Ok(outer) => outer,
                        Err(error) => return errors.lock().unwrap().push(error.to_string()),
                    };
                    let session = outer.get_ref().1;
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    let certificates = session.peer_certificates();
                    seen.lock().unwrap().push(Shaken {
                        server_name: session.server_name().map(str::to_owned),
                        alpn: session.alpn_protocol().map(text),
                        client: certificates.map(|chain| chain[0].to_vec()),
                    });
                    if let Ok(mut inner) = TcpStream::connect(inner).await {
                        let _ = copy_bidirectional(&mut outer, &mut inner).await;
                    }
                });
            }
        });
        Self {
            address,
            shaken,
            failed,
            _service: service,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All handshakes that succeeded so far.
    pub fn shaken(&self) -> Vec<Shaken> {
        self.shaken.lock().unwrap().clone()
    }

    /// Why others did not.
    pub fn failed(&self) -> Vec<String> {
        self.failed.lock().unwrap().clone()
    }
}

/// The certificate of a PEM file as it goes over the wire.
pub fn der(pem: &str) -> Vec<u8> {
    CertificateDer::from_pem_slice(pem.as_bytes())
        .unwrap()
        .to_vec()
}

fn config(own: &Issued, demands: &Demands<'_>) -> ServerConfig {
    install_default_crypto_provider();
    let builder = ServerConfig::builder();
    let builder = match &demands.client_authority {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(der(authority).into()).unwrap();
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots));
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let chain = CertificateDer::pem_slice_iter(own.chain.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
    let mut config = builder
        .with_single_cert(chain.map(Result::unwrap).collect(), key)
        .unwrap();
    config.alpn_protocols = demands
        .alpn
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    config
}
