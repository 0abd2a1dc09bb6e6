//! The endpoints that a call may use: a pool's, or the addresses of a URL's host.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use edgewright_script::outbound::CallFailureKind;
use pingora_core::{protocols::TcpKeepalive, tls::TlsConnector, upstreams::peer::HttpPeer};
use pingora_error::Error;
use smallvec::SmallVec;

use super::{
    addresses::{self, Candidates},
    callee::Callee,
    connect::Connection,
    failure::{Failure, Progress, connect_cause},
};
use crate::{
    config::Protocol,
    metrics::{ConnectFailure, PoolMetrics},
    pools::{EndpointId, Fault, Outcome, Picked, Pool, Standing, Wish, classify_connect_error},
};

/// Until a connection to the server of a URL stands, TLS included: a SYN that gets lost is sent
/// again after 1 s.
pub(super) const CONNECT: Duration = Duration::from_secs(3);

/// How long an unused connection to the server of a URL is kept, as a pool's by default.
const IDLE: Duration = Duration::from_secs(60);

/// A place to connect to.
pub(super) enum Endpoint {
    /// Of a pool: holds its slot.
    Pooled(Picked),
    /// Of the server of a URL.
    Direct { peer: Box<HttpPeer>, text: String },
}

impl Endpoint {
    pub(super) fn peer(&self) -> &HttpPeer {
        match self {
            Endpoint::Pooled(picked) => picked.peer(),
            Endpoint::Direct { peer, .. } => peer,
        }
    }

    /// How it stands, when it is a pool's.
    pub(super) fn standing(&self) -> Option<&Arc<Standing>> {
        match self {
            Endpoint::Pooled(picked) => Some(picked.standing()),
            Endpoint::Direct { .. } => None,
        }
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Endpoint::Pooled(picked) => picked.address(),
            Endpoint::Direct { text, .. } => text,
        }
    }
}

/// The endpoints that one call may use.
pub(super) struct Endpoints<'a> {
    attempts: usize,
    source: Source<'a>,
}

enum Source<'a> {
    Pool {
        pool: &'a Pool,
        metrics: &'a PoolMetrics,
        /// Those that have failed.
        avoid: SmallVec<[EndpointId; addresses::MOST]>,
    },
    Server {
        callee: Callee<'a>,
        addresses: Candidates,
        /// The one in use; those before it could not be connected to.
        index: usize,
        port: u16,
        tls: Option<(&'a TlsConnector, &'a str)>,
    },
}

impl<'a> Endpoints<'a> {
    pub(super) fn of_pool(pool: &'a Pool, metrics: &'a PoolMetrics) -> Self {
        let source = Source::Pool {
            pool,
            metrics,
            avoid: SmallVec::new(),
        };
        Self {
            attempts: 0,
            source,
        }
    }

    /// `tls` has the name that the certificate must be valid for.
    pub(super) fn of_server(
        callee: Callee<'a>,
        addresses: Candidates,
        port: u16,
        tls: Option<(&'a TlsConnector, &'a str)>,
    ) -> Self {
        let source = Source::Server {
            callee,
            addresses,
            index: 0,
            port,
            tls,
        };
        Self {
            attempts: 0,
            source,
        }
    }

    pub(super) fn choose(&self) -> Result<Endpoint, Failure> {
        let unavailable = |cause| Failure::new(CallFailureKind::Unavailable, cause);
        match &self.source {
            Source::Pool { pool, .. } if pool.config().protocol == Protocol::Http2 => Err(
                unavailable("it is called in HTTP/2, and calls of hooks are HTTP/1.1".to_owned()),
            ),
            Source::Pool { pool, avoid, .. } => {
                let wish = Wish {
                    avoid,
                    ..Wish::default()
                };
                match pool.select(&wish) {
                    Ok(picked) => Ok(Endpoint::Pooled(picked)),
                    Err(reason) => Err(unavailable(reason.to_string())),
                }
            }
            Source::Server {
                addresses,
                index,
                port,
                tls,
                ..
            } => {
                let Some(ip) = addresses.get(*index) else {
                    return Err(unavailable("it has no address".to_owned()));
                };
                let address = SocketAddr::new(*ip, *port);
                let name = tls.map(|(_, name)| name);
                Ok(Endpoint::Direct {
                    peer: Box::new(peer(address, name)),
                    text: address.to_string(),
                })
            }
        }
    }

    pub(super) fn tls(&self) -> Option<(&'a TlsConnector, &'a str)> {
        match &self.source {
            Source::Pool { .. } => None,
            Source::Server { tls, .. } => *tls,
        }
    }

    pub(super) fn connected(&self, reused: bool) {
        if let Source::Pool { metrics, .. } = &self.source {
            metrics.connected(reused);
        }
    }

    /// Takes in what a request has come to on a connection, as far as that says something of a pool's endpoint.
    pub(super) fn settle(
        &self,
        connection: &Connection,
        failure: Option<&Failure>,
        progress: &Progress,
    ) {
        let outcome = match (progress.status(), failure.map(|failure| failure.kind)) {
            // What its body comes to doesn't matter.
            (Some(status), _) => Outcome::Answered(status),
            (None, Some(CallFailureKind::Timeout)) => Outcome::Failed(Fault::Timeout),
            // A kept connection may have been closed while it was idle.
            (None, Some(CallFailureKind::Broken)) if !connection.reused => {
                Outcome::Failed(Fault::Closed)
            }
            (None, _) => return,
        };
        self.report(&connection.endpoint, outcome, progress.latency());
    }

    fn report(&self, endpoint: &Endpoint, outcome: Outcome, latency: Option<Duration>) {
        if let (Source::Pool { pool, .. }, Endpoint::Pooled(picked)) = (&self.source, endpoint) {
            pool.report(picked, outcome, latency);
        }
    }

    /// Another endpoint is preferred from now on, where there is one.
    pub(super) fn avoid(&mut self, endpoint: &Endpoint) {
        if let (Source::Pool { avoid, .. }, Endpoint::Pooled(picked)) = (&mut self.source, endpoint)
        {
            avoid.push(picked.endpoint());
        }
    }

    /// Takes in that a connection could not be made; the failure when no other is to be tried.
    pub(super) fn failed(&mut self, endpoint: &Endpoint, error: &Error) -> Option<Failure> {
        let reason = classify_connect_error(error);
        self.attempts += 1;
        self.avoid(endpoint);
        if let Some(fault) = Fault::of_connect(reason) {
            self.report(endpoint, Outcome::Failed(fault), None);
        }
        let (attempt, text) = (self.attempts, endpoint.text());
        // Another try needs what has just run out.
        let exhausted = matches!(
            reason,
            ConnectFailure::PortExhausted | ConnectFailure::FdExhausted
        );
        let more = match &mut self.source {
            Source::Pool { pool, metrics, .. } => {
                metrics.connect_failed(reason);
                tracing::warn!(
                    "upstream connect failure pool={} endpoint={text} reason={} attempt={attempt} error={error}",
                    pool.name(),
                    reason.name(),
                );
                true
            }
            Source::Server {
                addresses, index, ..
            } => {
                *index += 1;
                *index < addresses.len()
            }
        };
        if more && !exhausted && self.attempts < addresses::MOST {
            return None;
        }
        let cause = match reason {
            ConnectFailure::Refused => "refused".to_owned(),
            ConnectFailure::Timeout => "not accepted in time".to_owned(),
            ConnectFailure::PortExhausted => "no local port is free".to_owned(),
            ConnectFailure::FdExhausted => "out of open files".to_owned(),
            ConnectFailure::Tls | ConnectFailure::Other => connect_cause(error),
        };
        let attempts = match attempt {
            1 => String::new(),
            more => format!(", after {more} attempts"),
        };
        let failure = Failure::new(
            CallFailureKind::Connect,
            format!("no connection to {text}: {cause}{attempts}"),
        );
        if let Source::Server { callee, .. } = &self.source {
            tracing::warn!("outbound connect failure: {}", failure.message(callee));
        }
        Some(failure)
    }
}

/// The peer of a URL's server; `name` when it is spoken to over TLS.
fn peer(address: SocketAddr, name: Option<&str>) -> HttpPeer {
    let sni = name.unwrap_or_default().to_owned();
    // A SocketAddr needs no resolution (pingora #570).
    let mut peer = HttpPeer::new(address, name.is_some(), sni);
    let options = &mut peer.options;
    options.connection_timeout = Some(CONNECT);
    options.total_connection_timeout = Some(CONNECT);
    options.idle_timeout = Some(IDLE);
    // Finds peers that vanished while a connection was kept, before it is used again.
    options.tcp_keepalive = Some(TcpKeepalive {
        idle: Duration::from_secs(30),
        interval: Duration::from_secs(10),
        count: 3,
        // 0 leaves it to the system.
        #[cfg(target_os = "linux")]
        user_timeout: Duration::ZERO,
    });
    peer
}
