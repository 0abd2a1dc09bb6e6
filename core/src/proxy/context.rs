//! What is known of one request while it is served.

use std::{
    borrow::Cow,
    os::fd::OwnedFd,
    sync::Arc,
    time::{Duration, Instant},
};

use edgewright_script::{
    answer::Answer,
    program::{Later, PoolId, RouteId, SiteId, Stamps},
    request::Values,
    router::Captures,
    state::Slot,
};
use http::{HeaderName, HeaderValue};
use smallvec::SmallVec;

use super::{
    affinity::Target,
    bodies::{ResponseBody, request::RequestBody},
    compress::Compressing,
    deadline::Deadlines,
    gates::CorsReply,
    hygiene::Seen,
    mirror::Collecting,
};
use crate::{
    metrics::{InFlight, UpstreamError},
    pools::{EndpointId, Picked, Place, Retry},
    worker::Handle,
};

/// One request.
pub struct Context {
    /// The generation that serves it, to its last byte.
    pub(super) handle: Arc<Handle>,
    /// Counts it as long as it lives.
    pub(super) _in_flight: InFlight,
    /// On the heap: Pingora moves the context several times for each request.
    pub(super) state: Box<State>,
}

/// What changes while it is served.
pub(super) struct State {
    pub(super) started: Instant,
    pub(super) route: Option<RouteId>,
    /// The site, once it is known.
    pub(super) site: Option<SiteId>,
    pub(super) captures: Captures,
    pub(super) pool: Option<PoolId>,
    /// What its endpoint follows from, in pools that hash and where a script says so.
    pub(super) key: Option<u64>,
    /// The endpoint in use; it gives its slot back when dropped.
    pub(super) picked: Option<Picked>,
    /// Why the proxy answers by itself, when it is no hook's answer.
    pub(super) refusal: Option<Refusal>,
    /// What the first checks saw by the way.
    pub(super) seen: Seen,
    /// Body bytes read from the client so far.
    pub(super) body_bytes: u64,
    /// The most that may be read: `[limits] request_body`, or what the route says.
    pub(super) most_body: u64,
    /// Whether the request says that its body is longer than `[limits] request_body`.
    pub(super) long_body: bool,
    /// Whether `on_response` made an answer in place of the upstream's: no failure.
    pub(super) answered: bool,
    /// Responses of 1xx so far.
    pub(super) informational: u8,
    /// How often an upstream connection was tried.
    pub(super) attempts: u8,
    /// Whether `on_response` hooks have run: they run once.
    pub(super) response_hooks_done: bool,
    /// Whether the header of the upstream's final response has come.
    pub(super) has_response: bool,
    /// Whether the proxy made the response itself.
    pub(super) is_local: bool,
    /// Whether the hooks for a whole body have run: they run once.
    pub(super) body_hooks_done: bool,
    /// Whether it is known if the request is copied: `.mirror` picks once.
    pub(super) mirror_decided: bool,
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
    /// By when the response header, and the end of it all, must be there.
    pub(super) deadlines: Deadlines,
    /// Its place in a pool with bounds. Behind the endpoint when all this is dropped: it says that both are free.
    pub(super) place: Option<Place>,
    /// Counts the attempt under way against the pool's retry budget.
    pub(super) retry: Option<Retry>,
    /// How long the next attempt waits.
    pub(super) pause: Duration,
    /// What the request has failed of, for the log.
    pub(super) upstream_error: Option<UpstreamError>,
    /// When the whole call must be done, as a client of gRPC says.
    pub(super) call_deadline: Option<Instant>,
    /// Whether the request asks for another protocol on its connection.
    pub(super) upgrade: bool,
    /// The connection in use, as long as what is sent on it is held back.
    pub(super) held_back: Option<OwnedFd>,
    /// Whether the connection in use is closed after this request.
    pub(super) last_on_connection: bool,
    /// A response that replaces the upstream's, made by `on_response`.
    pub(super) replacement: Option<Answer>,
    /// The body, once hooks have it.
    pub(super) request_body: Option<RequestBody>,
    /// The body of the upstream's response, while hooks have it.
    pub(super) response_body: Option<ResponseBody>,
    /// A copy of the request that is put together.
    pub(super) mirror: Option<Collecting>,
    /// Codes the body of the upstream's response.
    pub(super) compressing: Option<Compressing>,
    /// When the header of the upstream's response was there.
    pub(super) upstream_answered: Option<Instant>,
    /// The endpoints that have failed this request, in order.
    pub(super) tried: SmallVec<[EndpointId; 4]>,
    /// What its sticky cookie says.
    pub(super) stamps: Option<Stamps>,
    /// The endpoint that a script has picked.
    pub(super) target: Option<Target>,
    /// Since when the endpoint in use has had all that it needs for an answer, as far as it has been sent; in pools that
    /// want to know latencies.
    pub(super) waits_since: Option<Instant>,
    /// Why the last attempt to reach an upstream failed.
    pub(super) last_error: Option<&'static str>,
    /// Why the request failed, for `on_log`.
    pub(super) failure: Option<String>,
    /// Slots that it holds; they go back when they are dropped.
    pub(super) slots: Vec<Slot>,
    /// What the response says of who may read it, on routes with `.cors`.
    pub(super) cors: Option<CorsReply>,
    /// What hooks have left for later ones.
    pub(super) values: Values,
    /// Fields that the response gets from a service that was asked about the request.
    pub(super) response_fields: Vec<(HeaderName, HeaderValue)>,
}

/// Why the proxy answers by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The status of the answer.
    pub(super) status: u16,
    /// What the client is told.
    pub(super) reason: Cow<'static, str>,
    /// Whether a hook failed: then nothing more of the program runs.
    pub(super) hook_failed: bool,
    /// What the upstream failed of, where that is it.
    pub(super) upstream: Option<UpstreamError>,
}

impl Rare {
    /// Takes in that the whole request has been sent.
    pub(super) fn sent(&mut self) {
        self.deadlines.sent();
        // How long a client takes for its body says nothing of the endpoint.
        if self.waits_since.is_some() {
            self.waits_since = Some(Instant::now());
        }
    }
}

impl Refusal {
    pub(super) fn new(status: u16, reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            reason: reason.into(),
            hook_failed: false,
            upstream: None,
        }
    }

    /// There is no usable answer of the upstream.
    pub(super) fn upstream(error: UpstreamError) -> Self {
        Self {
            upstream: Some(error),
            ..Self::new(error.status(), error.text())
        }
    }

    /// The answer to a request whose hook failed. It says nothing of the program.
    pub(super) fn hook_failed() -> Self {
        Self {
            hook_failed: true,
            ..Self::new(500, "internal error")
        }
    }
}

impl Context {
    pub(super) fn new(handle: Arc<Handle>, in_flight: InFlight) -> Self {
        let most_body = handle.config.limits.request_body.unwrap_or(u64::MAX);
        Self {
            handle,
            _in_flight: in_flight,
            state: Box::new(State {
                started: Instant::now(),
                route: None,
                site: None,
                captures: Captures::default(),
                pool: None,
                key: None,
                picked: None,
                refusal: None,
                seen: Seen::default(),
                body_bytes: 0,
                most_body,
                long_body: false,
                answered: false,
                informational: 0,
                attempts: 0,
                response_hooks_done: false,
                has_response: false,
                is_local: false,
                body_hooks_done: false,
                mirror_decided: false,
                rare: None,
            }),
        }
    }

    /// The label of logs.
    pub(super) fn label(&self) -> &str {
        let route = self.state.route;
        route.map_or(crate::metrics::NO_ROUTE, |route| {
            &self.handle.route(route).label
        })
    }
}

impl State {
    pub(super) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Whether the upstream's response is kept for hooks.
    pub(super) fn holds_response(&self) -> bool {
        let rare = self.rare.as_ref();
        rare.is_some_and(|rare| matches!(rare.response_body, Some(ResponseBody::Held(_))))
    }

    /// The hooks that run once the response is there, of the route, or of the site when no route fits.
    pub(super) fn later<'h>(&self, handle: &'h Handle) -> &'h Later {
        match (self.route, self.site) {
            (Some(route), _) => &handle.route(route).later,
            (None, Some(site)) => &handle.program.site(site).later,
            (None, None) => &handle.program.without_site,
        }
    }

    /// The response that `on_response` made in place of the upstream's.
    pub(super) fn take_replacement(&mut self) -> Option<Answer> {
        self.rare.as_mut()?.replacement.take()
    }
}
