//! One place to connect to, with its peer ready-made.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use pingora_core::protocols::TcpKeepalive;
use pingora_core::upstreams::peer::HttpPeer;

use crate::config::Timeouts;
use crate::metrics::shard::Padded;

/// Where an endpoint is. The order is that in which a round robin goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// An endpoint's identity: an address that stays in a pool keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndpointId(u64);

/// One place to connect to.
#[derive(Debug)]
pub struct Endpoint {
    /// Written by every request, so it has cache lines of its own.
    in_flight: Padded<AtomicUsize>,
    id: EndpointId,
    address: Address,
    text: Box<str>,
    peer: HttpPeer,
}

impl Endpoint {
    /// # Errors
    /// When the path of a Unix socket can't be one: not UTF-8, or too long for the system.
    pub(super) fn new(address: Address, timeouts: &Timeouts) -> Result<Self, String> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let (text, peer) = match &address {
            // A SocketAddr needs no resolution: this is the only form that neither blocks nor
            // panics (pingora #570).
            Address::Tcp(tcp) => (tcp.to_string(), HttpPeer::new(*tcp, false, String::new())),
            Address::Unix(path) => (format!("unix:{}", path.display()), unix_peer(path)?),
        };
        Ok(Self {
            in_flight: Padded::default(),
            id: EndpointId(NEXT_ID.fetch_add(1, Ordering::Relaxed)),
            address,
            text: text.into(),
            peer: with_timeouts(peer, timeouts),
        })
    }

    pub(super) fn location(&self) -> &Address {
        &self.address
    }

    /// Its identity, for a [`Wish`](super::Wish) to avoid it.
    pub fn id(&self) -> EndpointId {
        self.id
    }

    /// `10.0.0.1:8080`, `[fd00::1]:8080` or `unix:/run/app.sock`.
    pub fn address(&self) -> &str {
        &self.text
    }

    /// Requests that hold it now.
    pub fn in_flight(&self) -> usize {
        self.in_flight.0.load(Ordering::Relaxed)
    }
}

fn unix_peer(path: &Path) -> Result<HttpPeer, String> {
    let text = path
        .to_str()
        .ok_or_else(|| format!("{} is not UTF-8", path.display()))?;
    HttpPeer::new_uds(text, false, String::new()).map_err(|error| error.to_string())
}

/// Every timeout is set: Pingora's own are infinite.
fn with_timeouts(mut peer: HttpPeer, timeouts: &Timeouts) -> HttpPeer {
    let options = &mut peer.options;
    options.connection_timeout = Some(timeouts.connect);
    options.total_connection_timeout = Some(timeouts.connect);
    options.read_timeout = Some(timeouts.read);
    options.write_timeout = Some(timeouts.write);
    options.idle_timeout = Some(timeouts.idle);
    // Finds peers that vanished without a word (a lost node, a stateful firewall) within 90 s.
    options.tcp_keepalive = Some(TcpKeepalive {
        idle: Duration::from_secs(60),
        interval: Duration::from_secs(10),
        count: 3,
        // 0 leaves it to the system.
        #[cfg(target_os = "linux")]
        user_timeout: Duration::ZERO,
    });
    peer
}

/// An endpoint that a request has got. Dropping it gives its place back.
#[derive(Debug)]
pub struct Picked {
    endpoint: Arc<Endpoint>,
}

impl Picked {
    pub(super) fn new(endpoint: &Arc<Endpoint>) -> Self {
        endpoint.in_flight.0.fetch_add(1, Ordering::Relaxed);
        Self {
            endpoint: endpoint.clone(),
        }
    }

    /// As [`Picked::new`], if fewer than `most` requests hold the endpoint.
    pub(super) fn within(endpoint: &Arc<Endpoint>, most: usize) -> Option<Self> {
        let add = |now| (now < most).then_some(now + 1);
        let count = &endpoint.in_flight.0;
        count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .ok()?;
        let endpoint = endpoint.clone();
        Some(Self { endpoint })
    }

    /// Requests that hold the endpoint now, this one included.
    pub fn in_flight(&self) -> usize {
        self.endpoint.in_flight()
    }

    /// What to connect to, all timeouts set; Pingora wants a clone of it for each request.
    pub fn peer(&self) -> &HttpPeer {
        &self.endpoint.peer
    }

    /// `10.0.0.1:8080`, `[fd00::1]:8080` or `unix:/run/app.sock`.
    pub fn address(&self) -> &str {
        self.endpoint.address()
    }

    /// The endpoint's identity, for a [`Wish`](super::Wish) to avoid it.
    pub fn endpoint(&self) -> EndpointId {
        self.endpoint.id
    }
}

impl Drop for Picked {
    fn drop(&mut self) {
        self.endpoint.in_flight.0.fetch_sub(1, Ordering::Relaxed);
    }
}
