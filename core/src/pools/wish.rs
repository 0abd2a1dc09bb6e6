//! What a request asks of a pool.

use edgewright_script::stable_hash::StampKey;

use super::endpoint::{Endpoint, EndpointId};

/// What a request asks of [`Pool::select`](super::Pool::select). Copied, never kept: it borrows from the request.
/// The default asks for nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wish<'a> {
    /// Endpoints that have failed this request. Others are taken as long as there are any.
    pub avoid: &'a [EndpointId],
    /// What the endpoint follows from: equal keys get the same one. Where there is none, a pool that hashes chooses at
    /// random; one that doesn't hash only gets keys that a script gives.
    pub key: Option<u64>,
    /// This endpoint, unless it is to be avoided; when it can't be had, the pool balances.
    pub target: Option<Wanted<'a>>,
    /// Nobody else than `target`, even if it has failed already.
    pub only: bool,
}

/// One endpoint of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// The one at this address: `10.0.0.1:8080` or `unix:/run/app.sock`.
    Address(&'a str),
    /// The one whose address has this stamp under the key.
    Stamp(&'a StampKey, u64),
}

/// The kind of stamps of addresses, see [`StampKey::stamp`].
pub(crate) const OF_ADDRESS: u8 = 2;

impl Wish<'_> {
    /// Whether this endpoint has failed the request.
    pub(super) fn avoids(&self, endpoint: &Endpoint) -> bool {
        self.avoid.contains(&endpoint.id())
    }
}

impl Wanted<'_> {
    pub(super) fn is(&self, endpoint: &Endpoint) -> bool {
        match self {
            Self::Address(address) => endpoint.address() == *address,
            Self::Stamp(key, stamp) => key.stamp(OF_ADDRESS, endpoint.address()) == *stamp,
        }
    }
}
