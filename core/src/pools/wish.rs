//! What a request asks of a pool.

use super::endpoint::{Endpoint, EndpointId};

/// What a request asks of [`Pool::select`](super::Pool::select). Copied, never kept: it borrows from the request.
/// The default asks for nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wish<'a> {
    /// Endpoints that have failed this request. Others are taken as long as there are any.
    pub avoid: &'a [EndpointId],
    /// The endpoint at this address, `10.0.0.1:8080` or `unix:/run/app.sock`, unless it is to be avoided; when it
    /// isn't there, the pool balances.
    pub target: Option<&'a str>,
}

impl Wish<'_> {
    /// Whether this endpoint has failed the request.
    pub(super) fn avoids(&self, endpoint: &Endpoint) -> bool {
        self.avoid.contains(&endpoint.id())
    }
}
