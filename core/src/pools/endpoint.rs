//! One place to connect to, with its peer ready-made.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use edgewright_script::stable_hash::stable_hash;
use pingora_core::upstreams::peer::HttpPeer;

use super::peer;
use super::standing::Standing;
use super::wear::Wear;
use crate::config::PoolConfig;
#[cfg(test)]
use crate::config::Target;
use crate::metrics::shard::Padded;

/// Where an endpoint is. The order is that in which a round robin goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// `10.0.0.1:8080`, `[fd00::1]:8080` or `unix:/run/app.sock`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// An endpoint's identity: an address that stays in a pool keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EndpointId(u64);

/// One place to connect to.
#[derive(Debug)]
pub struct Endpoint {
    /// Written by every request, so it has cache lines of its own.
    in_flight: Padded<AtomicUsize>,
    id: EndpointId,
    address: Address,
    text: Box<str>,
    /// Of its address.
    hash: u64,
    peer: HttpPeer,
    /// Of targets whose connections are not used for ever.
    wear: Option<Wear>,
    standing: Arc<Standing>,
    /// What checks and requests have led to, at the last rebuild of the pool.
    usable: AtomicBool,
}

impl Endpoint {
    /// # Errors
    /// When the path of a Unix socket can't be one: not UTF-8, or too long for the system.
    pub(super) fn new(
        address: Address,
        config: &PoolConfig,
        standing: Arc<Standing>,
    ) -> Result<Self, String> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let text = address.to_string();
        Ok(Self {
            in_flight: Padded::default(),
            id: EndpointId(NEXT_ID.fetch_add(1, Ordering::Relaxed)),
            hash: stable_hash(text.as_bytes()),
            text: text.into(),
            peer: peer::make(&address, config)?,
            wear: Wear::of(config),
            address,
            standing,
            usable: AtomicBool::new(true),
        })
    }

    /// One for tests that need no pool.
    #[cfg(test)]
    pub(crate) fn at(target: Target, config: &PoolConfig) -> Result<Self, String> {
        let address = match target {
            Target::Address(address) => Address::Tcp(address),
            Target::Unix(path) => Address::Unix(path),
            Target::Name { host, .. } => return Err(host),
            Target::Srv { name } => return Err(name),
        };
        Self::new(address, config, Arc::default())
    }

    pub(super) fn location(&self) -> &Address {
        &self.address
    }

    /// A hash of its address, the same on every machine.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// Its identity, for a [`Wish`](super::Wish) to avoid it.
    pub fn id(&self) -> EndpointId {
        self.id
    }

    /// `10.0.0.1:8080`, `[fd00::1]:8080` or `unix:/run/app.sock`.
    pub fn address(&self) -> &str {
        &self.text
    }

    /// How it stands.
    pub(crate) fn standing(&self) -> &Arc<Standing> {
        &self.standing
    }

    /// What went wrong last, at a request or at a check.
    pub(crate) fn last_failure(&self) -> String {
        self.standing.told().last_failure.unwrap_or_default()
    }

    /// What requests connect to.
    pub(crate) fn peer(&self) -> &HttpPeer {
        &self.peer
    }

    /// Whether it is neither ejected nor unhealthy, or used all the same.
    pub fn is_usable(&self) -> bool {
        self.usable.load(Ordering::Relaxed)
    }

    pub(super) fn set_usable(&self, usable: bool) {
        self.usable.store(usable, Ordering::Relaxed);
    }

    /// What one more request costs here, by its recent latency and the requests that hold it.
    pub(super) fn cost(&self, now: Instant) -> f64 {
        self.standing.recent().cost(now, self.in_flight())
    }

    /// Requests that hold it now.
    pub fn in_flight(&self) -> usize {
        self.in_flight.0.load(Ordering::Relaxed)
    }
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

    /// Whether a connection to it may have to be given up.
    pub(crate) fn wear(&self) -> Option<&Wear> {
        self.endpoint.wear.as_ref()
    }

    /// `10.0.0.1:8080`, `[fd00::1]:8080` or `unix:/run/app.sock`.
    pub fn address(&self) -> &str {
        self.endpoint.address()
    }

    /// The endpoint's identity, for a [`Wish`](super::Wish) to avoid it.
    pub fn endpoint(&self) -> EndpointId {
        self.endpoint.id
    }

    /// How the endpoint stands, for [`Pool::report`](super::Pool::report).
    pub(crate) fn standing(&self) -> &Arc<Standing> {
        &self.endpoint.standing
    }
}

impl Drop for Picked {
    fn drop(&mut self) {
        self.endpoint.in_flight.0.fetch_sub(1, Ordering::Relaxed);
    }
}
