//! TLS in front of the clients of the tests: what they say to a tunnel goes through TLS to a server, each connection
//! through one of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use pingora_core::tls::{
    CertificateDer, ClientConfig, DigitallySignedStruct, HandshakeSignatureValid, RusTlsError,
    ServerCertVerified, ServerCertVerifier, ServerName, SignatureScheme, TlsConnector, UnixTime,
};
use rustls::crypto::{self, ring};
use rustls::{HandshakeKind, SupportedProtocolVersion, version};
use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use super::service::Service;

/// What a client says in the handshake.
#[derive(Clone)]
pub struct Hello {
    /// The name that it asks for; `None`: it asks for none.
    pub sni: Option<String>,
    /// The protocols that it offers.
    pub alpn: Vec<Vec<u8>>,
    /// The versions that it speaks.
    pub versions: Vec<&'static SupportedProtocolVersion>,
    /// The signatures that it can check; all of them when empty.
    pub schemes: Vec<SignatureScheme>,
    /// What it sends before the handshake.
    pub first: Vec<u8>,
}

/// What a handshake has given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Met {
    /// The server's certificate; also when the session was resumed.
    pub certificate: Vec<u8>,
    /// The protocol that was agreed upon.
    pub alpn: Option<String>,
    /// As in `TLSv1_3`.
    pub version: &'static str,
    /// Whether an earlier session goes on.
    pub resumed: bool,
}

/// A tunnel; it closes when dropped.
pub struct Tunnel {
    address: SocketAddr,
    met: Arc<Mutex<Vec<Met>>>,
    failed: Arc<Mutex<Vec<String>>>,
    _service: Service,
}

/// A client that asks for this name, and speaks all that it can.
pub fn asking_for(name: &str) -> Hello {
    Hello {
        sni: Some(name.to_owned()),
        ..nameless()
    }
}

/// A client that asks for no name.
pub fn nameless() -> Hello {
    Hello {
        sni: None,
        alpn: Vec::new(),
        versions: vec![&version::TLS13, &version::TLS12],
        schemes: Vec::new(),
        first: Vec::new(),
    }
}

impl Hello {
    pub fn alpn(mut self, protocols: &[&str]) -> Self {
        self.alpn = protocols
            .iter()
            .map(|one| one.as_bytes().to_vec())
            .collect();
        self
    }

    /// Only TLS 1.2.
    pub fn old(mut self) -> Self {
        self.versions = vec![&version::TLS12];
        self
    }

    /// Only these signatures.
    pub fn schemes(mut self, schemes: &[SignatureScheme]) -> Self {
        self.schemes = schemes.to_vec();
        self
    }

    /// Sends these bytes before the handshake.
    pub fn first(mut self, bytes: &[u8]) -> Self {
        self.first = bytes.to_vec();
        self
    }

    /// Opens a tunnel to a server. Its sessions are resumed where the server allows it.
    pub fn to(self, server: SocketAddr) -> Tunnel {
        let config = Arc::new(self.config());
        let connector = TlsConnector::from(config);
        let name = match &self.sni {
            Some(name) => ServerName::try_from(name.clone()).unwrap(),
            // An address is never sent (RFC 6066 section 3).
            None => ServerName::from(std::net::IpAddr::from(Ipv4Addr::LOCALHOST)),
        };
        let met = Arc::<Mutex<Vec<Met>>>::default();
        let failed = Arc::<Mutex<Vec<String>>>::default();
        let (seen, errors) = (met.clone(), failed.clone());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let service = Service::run(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((mut inner, _)) = listener.accept().await {
                let (connector, name, first) =
                    (connector.clone(), name.clone(), self.first.clone());
                let (seen, errors) = (seen.clone(), errors.clone());
                tokio::spawn(async move {
                    let mut stream = TcpStream::connect(server).await.unwrap();
                    stream.set_nodelay(true).unwrap();
                    stream.write_all(&first).await.unwrap();
                    let mut outer = match connector.connect(name, stream).await {
                        Ok(outer) => outer,
                        Err(error) => return errors.lock().unwrap().push(error.to_string()),
                    };
                    let session = outer.get_ref().1;
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    seen.lock().unwrap().push(Met {
                        certificate: session.peer_certificates().unwrap()[0].to_vec(),
                        alpn: session.alpn_protocol().map(text),
                        version: session.protocol_version().unwrap().as_str().unwrap(),
                        resumed: session.handshake_kind() == Some(HandshakeKind::Resumed),
                    });
                    let _ = copy_bidirectional(&mut inner, &mut outer).await;
                });
            }
        });
        Tunnel {
            address,
            met,
            failed,
            _service: service,
        }
    }

    fn config(&self) -> ClientConfig {
        let schemes = self.schemes.clone();
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&self.versions)
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anyone { schemes }))
            .with_no_client_auth();
        config.alpn_protocols.clone_from(&self.alpn);
        config
    }
}

impl Tunnel {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All handshakes that succeeded so far.
    pub fn met(&self) -> Vec<Met> {
        self.met.lock().unwrap().clone()
    }

    /// The latest of them.
    pub fn last(&self) -> Met {
        let met = self.met();
        let last = met.last().cloned();
        last.unwrap_or_else(|| panic!("no handshake: {:?}", self.failed()))
    }

    /// Why others failed.
    pub fn failed(&self) -> Vec<String> {
        self.failed.lock().unwrap().clone()
    }
}

/// Believes every certificate whose key the server has: the tests compare the certificate itself.
#[derive(Debug)]
struct Anyone {
    schemes: Vec<SignatureScheme>,
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, RusTlsError> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, RusTlsError> {
        let known = ring::default_provider().signature_verification_algorithms;
        crypto::verify_tls12_signature(message, certificate, signed, &known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, RusTlsError> {
        let known = ring::default_provider().signature_verification_algorithms;
        crypto::verify_tls13_signature(message, certificate, signed, &known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        if self.schemes.is_empty() {
            let known = ring::default_provider().signature_verification_algorithms;
            return known.supported_schemes();
        }
        self.schemes.clone()
    }
}
