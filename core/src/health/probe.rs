//! One question to one endpoint, on a connection of its own.

use std::time::Duration;

use pingora_core::connectors::{TransportConnector, http::Connector};
use pingora_core::protocols::l4::socket::SocketAddr;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_error::{Error, ErrorType};
use tokio::sync::Semaphore;

use super::{grpc, http};
use crate::config::{HealthCheck, Probe};
use crate::metrics::ConnectFailure;
use crate::outbound::without_certificates;
use crate::pools::{Endpoint, classify_connect_error, system_error};

/// Checks of the whole process at a time. Each takes its pool's `timeout` at the longest.
const MOST_AT_A_TIME: usize = 128;

/// Why a check failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) reason: String,
    pub(super) timed_out: bool,
}

impl Failure {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            timed_out: false,
        }
    }

    fn late(limit: Duration) -> Self {
        Self {
            reason: format!("no answer within {}", humantime::format_duration(limit)),
            timed_out: true,
        }
    }

    pub(super) fn of_connection(error: &Error) -> Self {
        let timed_out = is_late(error);
        let reason = match classify_connect_error(error) {
            ConnectFailure::Refused => "connection refused".to_owned(),
            _ => format!("no connection: {}", cause(error)),
        };
        Self { reason, timed_out }
    }

    pub(super) fn in_use(error: &Error) -> Self {
        Self {
            reason: format!("no answer: {}", cause(error)),
            timed_out: is_late(error),
        }
    }
}

/// Whether one of the connection's own times was over: each is as long as the check's.
fn is_late(error: &Error) -> bool {
    matches!(
        error.root_etype(),
        ErrorType::ConnectTimedout
            | ErrorType::TLSHandshakeTimedout
            | ErrorType::ReadTimedout
            | ErrorType::WriteTimedout
    )
}

/// The system's words, or else Pingora's.
fn cause(error: &Error) -> String {
    match system_error(error) {
        Some(error) => error.to_string(),
        None => error.root_etype().as_str().to_owned(),
    }
}

/// Asks endpoints.
pub(super) struct Prober {
    /// Makes sessions of HTTP/1.1 and HTTP/2. Keeps no connection: none is ever given back.
    pub(super) sessions: Connector,
    transport: TransportConnector,
    turns: Semaphore,
}

impl Default for Prober {
    fn default() -> Self {
        Self {
            sessions: Connector::new(Some(without_certificates(1))),
            transport: TransportConnector::new(Some(without_certificates(1))),
            turns: Semaphore::new(MOST_AT_A_TIME),
        }
    }
}

impl Prober {
    /// Asks once whether the endpoint is well. `host` is what the pool is called by, if it has a name.
    ///
    /// # Errors
    /// When it is not, or didn't say in time.
    pub(super) async fn ask(
        &self,
        endpoint: &Endpoint,
        check: &HealthCheck,
        host: Option<&str>,
    ) -> Result<(), Failure> {
        let Ok(_turn) = self.turns.acquire().await else {
            unreachable!("the semaphore is never closed")
        };
        let peer = peer(endpoint.peer(), check);
        let host = || host_of(&peer, host);
        // Boxed: the states of a handshake would make each task as large as the largest.
        let asked = Box::pin(async {
            match &check.probe {
                Probe::Tcp => {
                    let stream = self.transport.new_stream(&peer).await;
                    stream
                        .map(drop)
                        .map_err(|error| Failure::of_connection(&error))
                }
                Probe::Http {
                    method,
                    path,
                    host: named,
                    status,
                } => {
                    let host = named.clone().unwrap_or_else(host);
                    let header = http::header(method, path, &host)?;
                    http::ask(self, &peer, header, status).await
                }
                Probe::Grpc {
                    service,
                    host: named,
                } => {
                    let host = named.clone().unwrap_or_else(host);
                    grpc::ask(self, &peer, service, &host, check.timeout).await
                }
            }
        });
        let asked = tokio::time::timeout(check.timeout, asked).await;
        match asked {
            Ok(Err(failure)) if !failure.timed_out => Err(failure),
            Ok(Ok(())) => Ok(()),
            _ => Err(Failure::late(check.timeout)),
        }
    }
}

/// What is connected to: as requests of the pool connect, TLS and all, but with the check's port and times.
fn peer(of_requests: &HttpPeer, check: &HealthCheck) -> HttpPeer {
    let mut peer = of_requests.clone();
    if let (Some(port), SocketAddr::Inet(address)) = (check.port, &mut peer._address) {
        address.set_port(port);
    }
    let limit = Some(check.timeout);
    let options = &mut peer.options;
    options.connection_timeout = limit;
    options.total_connection_timeout = limit;
    options.read_timeout = limit;
    options.write_timeout = limit;
    options.max_h2_streams = 1;
    if matches!(check.probe, Probe::Grpc { .. }) {
        options.set_http_version(2, 2);
    }
    peer
}

/// What stands for the host where none is configured: the name that the pool is reached by, or else the address.
fn host_of(peer: &HttpPeer, name: Option<&str>) -> String {
    match (&peer._address, name) {
        (SocketAddr::Unix(_), _) => "localhost".to_owned(),
        (SocketAddr::Inet(_), Some(name)) => name.to_owned(),
        (SocketAddr::Inet(address), None) => address.to_string(),
    }
}
