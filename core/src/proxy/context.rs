//! What is known of one request while it is served.

use std::{net::IpAddr, sync::Arc, time::Instant};

use edgewright_script::{
    answer::Answer,
    program::{PoolId, RouteId, SiteId},
    router::Captures,
};

use crate::{metrics::InFlight, pools::Picked, worker::Handle};

/// The state of one request.
pub struct Context {
    /// The generation that serves it, to its last byte.
    pub(super) handle: Arc<Handle>,
    /// Counts it as long as it lives.
    pub(super) _in_flight: InFlight,
    pub(super) started: Instant,
    pub(super) route: Option<RouteId>,
    /// The site, when no route fits.
    pub(super) site: Option<SiteId>,
    pub(super) captures: Captures,
    pub(super) pool: Option<PoolId>,
    /// The endpoint in use; it gives its slot back when dropped.
    pub(super) picked: Option<Picked>,
    /// How often an upstream connection was tried.
    pub(super) attempts: u8,
    pub(super) client_ip: Option<IpAddr>,
    /// Body bytes read from the client so far.
    pub(super) body_bytes: u64,
    /// A response that replaces the upstream's, made by `on_response`.
    pub(super) replacement: Option<Answer>,
    /// Why the proxy answers by itself.
    pub(super) reason: Option<Reason>,
    /// Whether `on_response` hooks have run: they run once.
    pub(super) response_hooks_done: bool,
    /// What few requests need.
    pub(super) rare: Option<Box<Rare>>,
}

/// What few requests need.
#[derive(Debug, Default)]
pub(super) struct Rare {
    /// The path as sent, when the normal form differs from it.
    pub(super) raw_path: Option<String>,
    /// The path that the route matched, when a hook has set another one.
    pub(super) matched_path: Option<String>,
    /// The identifier, once it was asked for.
    pub(super) id: Option<String>,
    /// When the upstream must have answered.
    pub(super) deadline: Option<Instant>,
}

/// Why the proxy answers by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// A hook failed: nothing more of the program runs.
    HookFailed,
    /// A request that can't be served: the text says why.
    Refused(u16, &'static str),
}

impl Context {
    pub(super) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// The label of logs.
    pub(super) fn label(&self) -> &str {
        self.route
            .map_or("none", |route| &self.handle.route(route).label)
    }
}
