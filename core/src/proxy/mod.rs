//! Pingora's phases, driving the program.
//!
//! The way of a request: [`hygiene`] refuses what no edge should pass on; [`admit`] finds the
//! normal form, the route, asks its [`gates`], runs the hooks and chooses the destination; [`upstream`] chooses the
//! endpoint; [`filters`] change headers and paths on the way out and back; [`local`] writes what
//! the proxy answers itself.

mod admit;
mod affinity;
mod attempts;
mod auth;
mod bodies;
mod client;
mod compress;
mod connection;
mod context;
mod deadline;
mod early;
mod failure;
mod filters;
#[doc(hidden)]
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gates;
mod grpc;
mod hooks;
mod http2;
pub mod hygiene;
mod local;
mod log;
pub(crate) mod loops;
mod mirror;
mod path;
mod presence;
mod retry;
mod upstream;
mod view;

use std::{
    os::fd::RawFd,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bytes::Bytes;
use edgewright_script::engine::Verdict;
use http::{Version, header};
use pingora_core::{modules::http::HttpModules, protocols::Digest, upstreams::peer::HttpPeer};
use pingora_error::{Error, ErrorSource, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::{FailToProxy, ProxyHttp, Session};
use tokio::sync::watch;

pub(crate) use auth::{ForwardAnswers, verify_password};
pub(crate) use bodies::kept_bytes;
pub(crate) use client::is_trusted;
pub use context::Context;
pub(crate) use mirror::in_flight as mirrors_in_flight;

use crate::{
    in_force::InForce,
    lifecycle::Lifecycle,
    metrics::{Limit, Metrics},
    outbound::Client,
    worker,
};
use admit::Admission;
use context::Refusal;
use hooks::Stopped;

/// What all requests share.
pub struct Shared {
    /// The generation in force.
    pub generation: InForce,
    /// Told when another one goes live.
    pub swapped: watch::Sender<()>,
    /// Counters of the process.
    pub metrics: Arc<Metrics>,
    /// Starting, serving or ending.
    pub lifecycle: Arc<Lifecycle>,
}

/// The proxy of one worker.
pub struct Edge {
    shared: Arc<Shared>,
    client: Arc<Client>,
}

impl Edge {
    /// A proxy that serves with the generation in `shared`, whose hooks make their calls with
    /// `client`.
    pub fn new(shared: Arc<Shared>, client: Client) -> Self {
        let client = Arc::new(client);
        Self { shared, client }
    }

    /// What it shares with the other workers.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// What makes the calls of its hooks.
    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }
}

/// An error that only says: what is to be answered stands in the context.
fn refused(status: u16) -> Box<Error> {
    Error::new_in(ErrorType::HTTPStatus(status))
}

/// The end of a request whose client left while a hook waited.
fn client_left() -> Box<Error> {
    Error::new_down(ErrorType::ConnectionClosed)
}

#[async_trait]
impl ProxyHttp for Edge {
    type CTX = Context;

    fn new_ctx(&self) -> Context {
        let handle = worker::current(&self.shared.generation, &self.client);
        Context::new(handle, self.shared.metrics.begin_request())
    }

    /// None: by default Pingora sets up a compression module for each request, switched off.
    fn init_downstream_modules(&self, _modules: &mut HttpModules) {}

    async fn early_request_filter(
        &self,
        session: &mut Session,
        context: &mut Context,
    ) -> Result<()> {
        early::look(&self.shared, session, context)
    }

    async fn request_filter(&self, session: &mut Session, context: &mut Context) -> Result<bool> {
        match admit::admit(session, context).await {
            Admission::Proxy => {
                let config = &context.handle.config;
                if config.server.forwarded_headers {
                    if context.state.seen.odd_claims {
                        client::remove_odd_claims(session.req_header_mut());
                    }
                    client::forward(session, &config.trusted_proxies, context.state.seen.claims);
                }
                Ok(false)
            }
            Admission::Answer(answer) => {
                let Context { handle, state, .. } = context;
                // Boxed, so that requests that are passed on don't carry its state.
                Box::pin(local::answer(session, handle, state, answer)).await?;
                Ok(true)
            }
            Admission::Refuse(refusal) => {
                let Context { handle, state, .. } = context;
                Box::pin(local::refuse(session, handle, state, &refusal)).await?;
                Ok(true)
            }
            Admission::ClientLeft => Err(client_left()),
        }
    }

    async fn upstream_peer(
        &self,
        session: &mut Session,
        context: &mut Context,
    ) -> Result<Box<HttpPeer>> {
        attempts::peer(session, context).await
    }

    fn fail_to_connect(
        &self,
        _session: &mut Session,
        _peer: &HttpPeer,
        context: &mut Context,
        error: Box<Error>,
    ) -> Box<Error> {
        failure::connect_failed(context, error)
    }

    async fn connected_to_upstream(
        &self,
        session: &mut Session,
        reused: bool,
        _peer: &HttpPeer,
        fd: RawFd,
        digest: Option<&Digest>,
        context: &mut Context,
    ) -> Result<()> {
        upstream::connected(fd, reused, digest, session, context)
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        upstream: &mut RequestHeader,
        context: &mut Context,
    ) -> Result<()> {
        let Context { handle, state, .. } = context;
        filters::change_request(handle, state, upstream).map_err(|reason| {
            state.refusal = Some(Refusal::new(400, reason.to_string()));
            refused(400)
        })?;
        connection::say_last(state, upstream);
        mirror::prepare(session, handle, state, upstream);
        Ok(())
    }

    async fn request_body_filter(
        &self,
        session: &mut Session,
        body: &mut Option<Bytes>,
        end: bool,
        context: &mut Context,
    ) -> Result<()> {
        if session.was_upgraded() {
            // What follows is no body but the other protocol.
            return Ok(());
        }
        connection::let_go(&mut context.state);
        if let Some(rare) = &mut context.state.rare {
            if end {
                rare.sent();
            }
            if let Some(whole) = &rare.request_body {
                whole.replace(body, end);
                return Ok(());
            }
        }
        let Context { handle, state, .. } = context;
        state.body_bytes += body.as_ref().map_or(0, |chunk| chunk.len() as u64);
        if state.body_bytes > state.most_body {
            gates::count_long_body(handle, state.route);
            return Err(Error::new_down(ErrorType::HTTPStatus(413)));
        }
        if state.mirror_decided {
            mirror::pass(handle, state, body.as_ref(), end);
        }
        Ok(())
    }

    async fn upstream_response_filter(
        &self,
        session: &mut Session,
        response: &mut ResponseHeader,
        context: &mut Context,
    ) -> Result<()> {
        let status = response.status.as_u16();
        if status == 101
            && !(session.is_upgrade_req() && connection::is_wanted(session.req_header(), response))
        {
            // What nobody asked for would become a tunnel past everything.
            return Err(Error::new_up(ErrorType::InvalidHTTPHeader));
        }
        if !response.status.is_informational() || status == 101 {
            upstream::answered(context, status);
            if let Some(error) = retry::after_status(session, context, response.status) {
                return Err(error);
            }
            context.state.has_response = true;
            if let Some(rare) = &mut context.state.rare {
                rare.retry = None;
                // A tunnel lasts as long as its ends want.
                match status {
                    101 => rare.deadlines.end(),
                    _ => rare.deadlines.answered(),
                }
            }
        }
        if !response.status.is_informational()
            && log::is_interested(&context.handle, &context.state)
        {
            context.state.rare().upstream_answered = Some(Instant::now());
        }
        if response.status.is_informational() {
            context.state.informational += 1;
            if context.state.informational > MOST_INFORMATIONAL {
                return Err(Error::new_up(ErrorType::InvalidHTTPHeader));
            }
        }
        filters::clean_response(response)
            .map_err(|reason| Error::explain(ErrorType::InvalidHTTPHeader, reason).into_up())
    }

    async fn response_filter(
        &self,
        session: &mut Session,
        response: &mut ResponseHeader,
        context: &mut Context,
    ) -> Result<()> {
        if response.status.is_informational() && response.status.as_u16() != 101 {
            return Ok(());
        }
        if session.req_header().version == Version::HTTP_10 {
            // HTTP/1.0 knows no chunks: the end of the connection is the end of the body.
            response.remove_header(&header::TRANSFER_ENCODING);
            if !response.headers.contains_key(header::CONTENT_LENGTH) {
                session.set_keepalive(None);
            }
        }
        if self.shared.lifecycle.is_ending() {
            session.set_keepalive(None);
        }
        if response.status.as_u16() == 101 {
            // From here on the client is silent for as long as it likes; the pool's `tunnel` ends a connection
            // on which nothing happens, and writes have their own limit.
            session.set_read_timeout(None);
        }
        let Context { handle, state, .. } = context;
        let Some(route) = state.route.map(|route| handle.route(route)) else {
            return Ok(());
        };
        if !route.on_response.is_empty() {
            let said = hooks::on_response(session, handle, state, response, false);
            // Boxed, so that requests without hooks don't carry its state.
            match Box::pin(said).await {
                Ok(Verdict::Continue) => {}
                Ok(Verdict::Answer(answer)) => {
                    let status = answer.status.as_u16();
                    state.rare().replacement = Some(answer);
                    state.answered = true;
                    return Err(refused(status));
                }
                Err(Stopped::Failed) => {
                    state.refusal = Some(Refusal::hook_failed());
                    return Err(refused(500));
                }
                Err(Stopped::ClientLeft) => return Err(client_left()),
            }
        }
        filters::add_response_fields(response, state);
        if route.sticky.is_some() {
            affinity::set_cookie(session, handle, state, response);
        }
        filters::change_response(response, route, state);
        bodies::response::prepare(session, handle, state, response)?;
        compress::prepare(session, handle, state, response)
    }

    fn response_body_filter(
        &self,
        session: &mut Session,
        body: &mut Option<Bytes>,
        end: bool,
        context: &mut Context,
    ) -> Result<Option<Duration>> {
        let Context { handle, state, .. } = context;
        if state
            .rare
            .as_ref()
            .is_some_and(|rare| rare.response_body.is_some())
        {
            bodies::response::pass(session, handle, state, body, end)?;
        }
        compress::pass(state, body, end)?;
        Ok(None)
    }

    fn error_while_proxy(
        &self,
        peer: &HttpPeer,
        session: &mut Session,
        error: Box<Error>,
        context: &mut Context,
        reused: bool,
    ) -> Box<Error> {
        failure::in_use(peer, session, error, context, reused)
    }

    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        context: &mut Context,
    ) -> FailToProxy {
        let Context { handle, state, .. } = context;
        let begun = session
            .response_written()
            .is_some_and(|written| !written.status.is_informational());
        if begun || session.was_upgraded() {
            failure::count_cut(handle, state, error);
            // The client has a part of the upstream's answer: it must not look complete. In a tunnel an answer of
            // the proxy would be a part of the other protocol.
            return FailToProxy {
                error_code: 0,
                can_reuse_downstream: false,
            };
        }
        if *error.esource() == ErrorSource::Downstream && *error.etype() == ErrorType::ReadTimedout
        {
            self.shared.metrics.limit_hit(Limit::RequestReadTimeout);
        }
        // Pingora closes the connection after this; the client is to know.
        session.set_keepalive(None);
        if state.holds_response() && *error.etype() == ErrorType::HTTPStatus(200) {
            // It is all there, only the client has not sent all of its own.
            let released = bodies::release(session, handle, state).await;
            if let Err(error) = released {
                tracing::debug!("the client left before its answer: {error}");
            }
            return FailToProxy {
                error_code: 200,
                can_reuse_downstream: false,
            };
        }
        let (status, written) = if let Some(answer) = state.take_replacement() {
            let status = answer.status.as_u16();
            (status, local::answer(session, handle, state, answer).await)
        } else {
            let refusal = state.refusal.take().or_else(|| failure::refusal(error));
            failure::count(handle, state, refusal.as_ref());
            let Some(refusal) = refusal else {
                return FailToProxy {
                    error_code: 0,
                    can_reuse_downstream: false,
                };
            };
            let written = local::refuse(session, handle, state, &refusal).await;
            (refusal.status, written)
        };
        if let Err(error) = written {
            tracing::debug!("the client left before its answer: {error}");
        }
        FailToProxy {
            error_code: status,
            can_reuse_downstream: false,
        }
    }

    async fn logging(&self, session: &mut Session, error: Option<&Error>, context: &mut Context) {
        failure::end(&mut context.state);
        if error.is_none() && context.state.holds_response() {
            let Context { handle, state, .. } = context;
            // Boxed, so that requests without hooks don't carry its state.
            let released = Box::pin(bodies::release(session, handle, state)).await;
            if let Err(error) = released {
                session.set_keepalive(None);
                if *error.etype() == ErrorType::WriteTimedout {
                    self.shared.metrics.limit_hit(Limit::ResponseWriteTimeout);
                }
                let left = error.etype().as_str().to_owned();
                context.state.rare().failure = Some(left);
                tracing::debug!("the client left before its answer: {error}");
            }
        }
        let status = session
            .response_written()
            .map(|header| header.status.as_u16());
        let duration = context.state.started.elapsed();
        let metrics = context.handle.metrics_of(context.state.route);
        metrics.record(status.unwrap_or(CLIENT_LEFT), duration);
        if let Some(error) = error
            && !context.state.answered
        {
            failure::tell(error, status, duration, context, &self.shared.metrics);
        }
        if context.state.mirror_decided {
            mirror::finish(&context.handle, &mut context.state);
        }
        if log::has_hooks(&context.handle, &context.state) {
            let Context { handle, state, .. } = context;
            Box::pin(log::run(session, handle, state, error)).await;
        }
    }

    fn suppress_error_log(&self, _: &Session, _: &Context, _: &Error) -> bool {
        // `logging` tells of each error once, with the route.
        true
    }
}

/// Characters of an error in a log line.
const MOST_LOGGED: usize = 300;

/// Responses of 1xx that may come before one that counts.
const MOST_INFORMATIONAL: u8 = 16;

/// nginx's status for a client that closed the connection before it was answered.
const CLIENT_LEFT: u16 = 499;
