//! What a connection says before its first request: a header of the PROXY protocol, the handshake of TLS, the preface
//! of HTTP/2.
//!
//! Pingora has no place for the first on listeners without TLS (pingora #132), makes the second with settings that can't
//! change, and waits without a limit for the third, with requests of HTTP/1 shorter than it
//! (`HttpServerOptions::h2c`). So all are read here, before Pingora gets the connection: within a time limit, and no
//! further than it takes to tell.

use std::net;
use std::os::fd::AsRawFd as _;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use pingora_core::{
    apps::{HttpPersistentSettings, HttpServerApp as _},
    protocols::{SocketDigest, http::ServerSession, l4::socket::SocketAddr},
    server::ShutdownWatch,
};
use pingora_proxy::HttpProxy;
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;

use super::connections::{ConnectionLimit, Wait};
use super::handshake;
use super::spoken::{Carrier, Opened, Spoken};
use super::transport::Transport;
use crate::{
    config::{Config, Listener},
    metrics::RefusedConnection,
    outbound::Client,
    proxy::{Edge, Shared, is_trusted},
    proxy_protocol::{self, Beginning, Ends},
    worker,
};

/// RFC 9113 section 3.4.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What is expected on a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Manners {
    /// A header of the PROXY protocol, from a trusted proxy.
    pub(super) proxy_protocol: bool,
    /// TLS, with what every generation has for the listener at this address.
    pub(super) tls: Option<net::SocketAddr>,
    /// HTTP/2 with prior knowledge, beside HTTP/1.1; never with TLS.
    pub(super) http2: bool,
}

impl Manners {
    pub(super) fn of(listener: &Listener) -> Self {
        Self {
            proxy_protocol: listener.proxy_protocol,
            tls: listener.tls.as_ref().map(|_| listener.address),
            http2: listener.http2 && listener.tls.is_none(),
        }
    }
}

/// The way into the proxy of a worker, for the listeners with the same manners.
pub(super) struct Door {
    pub(super) proxy: Arc<HttpProxy<Edge>>,
    pub(super) shared: Arc<Shared>,
    pub(super) client: Arc<Client>,
    pub(super) limit: Arc<ConnectionLimit>,
    /// The number of the worker.
    pub(super) worker: usize,
    pub(super) manners: Manners,
    /// Says that a connection without a request has to go, because the process ends.
    pub(super) leaving: watch::Receiver<bool>,
}

/// How long a client may take until its first request begins.
const FIRST_REQUEST: Duration = Duration::from_secs(60);

impl Door {
    /// Serves a connection to its end.
    pub(super) async fn serve(&self, stream: Transport, shutdown: &ShutdownWatch) {
        let stream = if self.manners == Manners::default() {
            Opened::Plain(Box::new(Spoken::http1(stream)))
        } else {
            // Its state is not needed any more when requests come.
            match Box::pin(self.open_or_leave(stream)).await {
                Some(stream) => stream,
                None => return,
            }
        };
        match stream {
            Opened::Plain(stream) => self.requests(stream, shutdown).await,
            Opened::Tls(stream) => self.requests(stream, shutdown).await,
        }
    }

    async fn requests<C: Carrier>(&self, stream: Box<Spoken<C>>, shutdown: &ShutdownWatch) {
        if stream.is_http2() {
            self.serve_http2(stream, shutdown).await;
        } else {
            self.serve_http1(stream, shutdown).await;
        }
    }

    /// Serves one request after the other. Pingora's own loop does the same; but it waits for a request with all that it takes to
    /// serve one (18 KiB), and holds the state of a connection of HTTP/2 beside it, whatever is spoken.
    async fn serve_http1<C: Carrier>(&self, mut stream: Box<Spoken<C>>, shutdown: &ShutdownWatch) {
        let mut limit = FIRST_REQUEST;
        let mut settings: Option<HttpPersistentSettings> = None;
        let mut timer = pin!(tokio::time::sleep(limit));
        loop {
            let wait = self
                .limit
                .idle(self.worker, &mut stream, limit, timer.as_mut());
            let wait = wait.await;
            if wait == Wait::Over {
                return;
            }
            let mut session = ServerSession::new_http1(stream);
            match settings {
                Some(settings) => settings.apply_to_session(&mut session),
                None => self.begin(&mut session, shutdown),
            }
            let Some(reused) = self.proxy.process_new_http(session, shutdown).await else {
                return;
            };
            let (back, kept) = reused.consume();
            // It is what the session was given.
            let Ok(back) = back.into_any().downcast::<Spoken<C>>() else {
                return;
            };
            (stream, settings) = (back, kept);
            let handle = worker::current(&self.shared.generation, &self.client);
            limit = handle.config.limits.keepalive_timeout;
        }
    }

    fn begin(&self, session: &mut ServerSession, shutdown: &ShutdownWatch) {
        let is_ending = *shutdown.borrow();
        session.set_keepalive((!is_ending).then_some(FIRST_REQUEST.as_secs()));
        let options = self.proxy.server_options.as_ref();
        let uses = options.and_then(|options| options.keepalive_request_limit);
        session.set_keepalive_reuses_remaining(uses);
    }

    /// As [`open`](Self::open), until the process ends, or it takes too long and others wait for its place.
    async fn open_or_leave(&self, stream: Transport) -> Option<Opened> {
        let mut leaving = self.leaving.clone();
        let left = async move {
            // An error says that the worker is gone.
            let _ = leaving.wait_for(|leaving| *leaving).await;
        };
        tokio::select! {
            biased;
            opened = self.open(stream) => opened,
            () = left => None,
            () = self.limit.give_way_when_slow(self.worker) => None,
        }
    }

    /// `None`: the connection is not served, and closed.
    async fn open(&self, mut stream: Transport) -> Option<Opened> {
        // By the worker's handle: the last holder of a generation must not free it here.
        let handle = worker::current(&self.shared.generation, &self.client);
        let config = &handle.config;
        let limit = config.limits.request_read_timeout;
        if self.manners.proxy_protocol
            && let Err(refused) = introduced(&mut stream, config, limit).await
        {
            return self.refuse(refused);
        }
        if let Some(address) = self.manners.tls {
            let limit = config.limits.tls_handshake_timeout;
            // A client that says nothing keeps no generation alive.
            drop(handle);
            return self.encrypt(stream, address, limit).await;
        }
        if self.manners.http2 {
            match speaks_http2(&mut stream, limit).await {
                Ok(true) => return Some(Opened::Plain(Box::new(Spoken::http2(stream)))),
                Ok(false) => {}
                Err(refused) => return self.refuse(refused),
            }
        }
        Some(Opened::Plain(Box::new(Spoken::http1(stream))))
    }

    /// The same connection with TLS.
    async fn encrypt(
        &self,
        stream: Transport,
        address: net::SocketAddr,
        limit: Duration,
    ) -> Option<Opened> {
        let settings = || {
            let handle = worker::current(&self.shared.generation, &self.client);
            handle.tls.server(address).cloned()
        };
        match handshake::shake(stream, limit, settings).await {
            Ok(stream) => {
                self.shared.metrics.tls_handshake(true);
                Some(Opened::Tls(Box::new(stream)))
            }
            Err(refused) => {
                if refused.is_some() {
                    self.shared.metrics.tls_handshake(false);
                }
                self.refuse(refused)
            }
        }
    }

    fn refuse(&self, refused: Option<RefusedConnection>) -> Option<Opened> {
        if let Some(refused) = refused {
            self.shared.metrics.connection_refused(refused);
            tracing::debug!("refused a connection: {}", refused.name());
        }
        None
    }
}

/// Takes the header of the PROXY protocol off the connection, whose client is then the one that it names.
/// `Err`: the reason, or none when there was nothing to refuse.
async fn introduced(
    stream: &mut Transport,
    config: &Config,
    limit: Duration,
) -> Result<(), Option<RefusedConnection>> {
    let peer = stream.digest().peer_addr();
    let peer = peer.and_then(SocketAddr::as_inet);
    let trusted =
        peer.is_some_and(|peer| is_trusted(peer.ip().to_canonical(), &config.trusted_proxies));
    if !trusted {
        return Err(Some(RefusedConnection::Untrusted));
    }
    let header = tokio::time::timeout(limit, header(stream)).await;
    if let Some(ends) = header.map_err(|_| Some(RefusedConnection::Late))?? {
        let digest = SocketDigest::from_raw_fd(stream.as_raw_fd());
        let address = |address| Some(SocketAddr::Inet(address));
        // They are new, so nothing is set yet.
        let _ = digest.peer_addr.set(address(ends.source));
        let _ = digest.local_addr.set(address(ends.destination));
        stream.set_digest(digest);
    }
    Ok(())
}

async fn header(stream: &mut Transport) -> Result<Option<Ends>, Option<RefusedConnection>> {
    let mut bytes = Vec::with_capacity(256);
    loop {
        more(stream, &mut bytes, proxy_protocol::LONGEST).await?;
        match proxy_protocol::read(&bytes) {
            Beginning::Part => {}
            Beginning::Header(length, ends) => {
                stream.rewind(&bytes[length..]);
                return Ok(ends);
            }
            Beginning::Other => return Err(Some(RefusedConnection::NoProxyHeader)),
        }
    }
}

/// Whether the client begins as HTTP/2 does. What was read stays to be read.
async fn speaks_http2(
    stream: &mut Transport,
    limit: Duration,
) -> Result<bool, Option<RefusedConnection>> {
    let mut bytes = Vec::with_capacity(PREFACE.len());
    let read = async {
        loop {
            more(stream, &mut bytes, PREFACE.len()).await?;
            if !PREFACE.starts_with(&bytes) {
                return Ok::<_, Option<RefusedConnection>>(false);
            }
            if bytes.len() == PREFACE.len() {
                return Ok(true);
            }
        }
    };
    let spoken = tokio::time::timeout(limit, read).await;
    let spoken = spoken.map_err(|_| Some(RefusedConnection::Late))??;
    stream.rewind(&bytes);
    Ok(spoken)
}

/// Reads what is there, or waits for it; up to `most` bytes in all.
pub(super) async fn more(
    stream: &mut Transport,
    bytes: &mut Vec<u8>,
    most: usize,
) -> Result<(), Option<RefusedConnection>> {
    let mut piece = [0; 512];
    let room = piece.len().min(most - bytes.len());
    match stream.read(&mut piece[..room]).await {
        // Someone who only looks whether the port is open, as health checks do, is no news.
        Ok(0) if bytes.is_empty() => Err(None),
        Ok(0) => Err(Some(RefusedConnection::Cut)),
        Ok(read) => {
            bytes.extend_from_slice(&piece[..read]);
            Ok(())
        }
        Err(_) => Err(None),
    }
}
