//! A worker's connections: kept ones, and new ones.

use pingora_core::{
    connectors::TransportConnector,
    protocols::{Stream, http::v1::client::HttpSession},
    tls::TlsConnector,
    upstreams::peer::{HttpPeer, Peer as _, Scheme},
};
use pingora_error::{Error, ErrorType};

use super::{
    endpoints::{CONNECT, Endpoint, Endpoints},
    failure::{Failure, Progress},
    tls::{secure, without_certificates},
};

/// A connection in use by one call.
pub(super) struct Connection {
    pub(super) session: HttpSession,
    pub(super) endpoint: Endpoint,
    /// It served another call before, and may be closed without this worker knowing.
    pub(super) reused: bool,
}

/// A worker's connections.
pub(super) struct Connections {
    transport: TransportConnector,
}

impl Connections {
    /// Keeps at most `kept` idle ones.
    pub(super) fn new(kept: usize) -> Self {
        Self {
            transport: TransportConnector::new(Some(without_certificates(kept))),
        }
    }

    /// Takes a kept connection, or makes one, which `fresh` asks for.
    pub(super) async fn take(
        &self,
        endpoints: &mut Endpoints<'_>,
        fresh: bool,
        progress: &mut Progress,
    ) -> Result<Connection, Failure> {
        loop {
            let endpoint = endpoints.choose()?;
            progress.at(&endpoint, "connecting to ");
            if !fresh && let Some(stream) = self.transport.reused_stream(endpoint.peer()).await {
                endpoints.connected(true);
                return Ok(Connection::new(stream, endpoint, true));
            }
            match self.make(endpoint.peer(), endpoints.tls()).await {
                Ok(stream) => {
                    endpoints.connected(false);
                    return Ok(Connection::new(stream, endpoint, false));
                }
                Err(error) => {
                    if let Some(failure) = endpoints.failed(&endpoint, &error) {
                        return Err(failure);
                    }
                }
            }
        }
    }

    async fn make(
        &self,
        peer: &HttpPeer,
        tls: Option<(&TlsConnector, &str)>,
    ) -> pingora_error::Result<Stream> {
        let Some((connector, name)) = tls else {
            if peer.options.alpn.get_max_http_version() == 1 {
                return self.transport.new_stream(peer).await;
            }
            // A target that would agree to HTTP/2 is not asked to.
            let mut peer = peer.clone();
            peer.options.set_http_version(1, 1);
            return self.transport.new_stream(&peer).await;
        };
        let mut plain = peer.clone();
        plain.scheme = Scheme::HTTP;
        plain.sni.clear();
        let connect = async {
            let stream = self.transport.new_stream(&plain).await?;
            secure(connector, name, stream).await
        };
        let connected = tokio::time::timeout(CONNECT, connect).await;
        connected.unwrap_or_else(|_| Err(Error::new(ErrorType::ConnectTimedout)))
    }

    /// Keeps a connection whose answer was read whole, when both sides want that.
    pub(super) async fn keep(&self, connection: Connection) {
        let mut session = connection.session;
        let peer = connection.endpoint.peer();
        session.respect_keepalive();
        if !session.will_keepalive() {
            return;
        }
        if let Some(stream) = session.reuse().await {
            let idle = peer.options.idle_timeout;
            self.transport
                .release_stream(stream, peer.reuse_hash(), idle);
        }
    }
}

impl Connection {
    fn new(stream: Stream, endpoint: Endpoint, reused: bool) -> Self {
        let peer = endpoint.peer();
        let mut session = HttpSession::new_with_options(stream, peer);
        session.read_timeout = peer.options.read_timeout;
        session.write_timeout = peer.options.write_timeout;
        Self {
            session,
            endpoint,
            reused,
        }
    }
}
