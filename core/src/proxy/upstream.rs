//! The upstream's side: which endpoint, by when, and what is noted of its connection.

use std::{
    os::fd::RawFd,
    time::{Duration, Instant},
};

use pingora_core::{
    protocols::{ALPN, Digest},
    upstreams::peer::HttpPeer,
};
use pingora_error::{Error, ErrorType, Result};
use pingora_proxy::Session;

use super::{
    affinity,
    bodies::request::RequestBody,
    connection,
    context::{Context, Refusal, State},
    deadline::Late,
    grpc, refused,
};
use crate::{
    config::Protocol,
    metrics::UpstreamError,
    pools::{Outcome, Picked, Pool, Unavailable},
    worker::Handle,
};

/// The pool that a request goes to.
pub(super) fn pool_of<'h>(handle: &'h Handle, state: &State) -> Result<&'h Pool> {
    match state.pool {
        Some(pool) => Ok(&handle.pool(pool).0),
        None => Err(Error::explain(
            ErrorType::InternalError,
            "no pool was chosen",
        )),
    }
}

/// Chooses an endpoint of a pool without bounds.
pub(super) fn peer(session: &Session, context: &mut Context) -> Result<Box<HttpPeer>> {
    let Context { handle, state, .. } = context;
    let pool = pool_of(handle, state)?;
    match pool.select(&affinity::wish(handle, state)) {
        Ok(picked) => ready(session, handle, state, picked),
        Err(unavailable) => Err(no_target(state, pool, unavailable)),
    }
}

/// The answer to a request whose pool has no endpoint.
pub(super) fn no_target(state: &mut State, pool: &Pool, unavailable: Unavailable) -> Box<Error> {
    let reason = format!("pool {}: {unavailable}", pool.name());
    let refusal = Refusal::upstream(match unavailable {
        Unavailable::Unhealthy => UpstreamError::AllUnhealthy,
        _ => UpstreamError::NoTarget,
    });
    let status = refusal.status;
    state.refusal = Some(Refusal {
        reason: reason.into(),
        ..refusal
    });
    refused(status)
}

/// Begins an attempt: the peer is ready-made, only cloned.
pub(super) fn ready(
    session: &Session,
    handle: &Handle,
    state: &mut State,
    picked: Picked,
) -> Result<Box<HttpPeer>> {
    let pool = pool_of(handle, state)?;
    if pool.wants_latencies() {
        state.rare().waits_since = Some(Instant::now());
    }
    let pool = pool.config();
    state.attempts += 1;
    let mut peer = Box::new(picked.peer().clone());
    connection::prepare(session, handle, pool, &picked, &mut peer);
    connection::prepare_fields(&session.req_header().headers, &mut peer);
    state.picked = Some(picked);
    if state.seen.upgrade && session.is_upgrade_req() {
        state.rare().upgrade = true;
        connection::prepare_upgrade(&pool.timeouts, &mut peer);
    }
    if pool.protocol != Protocol::Http1 {
        grpc::bound(session.req_header(), state, &mut peer)?;
        let rare = state.rare.as_ref();
        let body = rare.and_then(|rare| rare.request_body.as_ref());
        if body.is_some_and(RequestBody::is_new) {
            // Pingora would end the request with its header, which announces a body.
            if pool.protocol == Protocol::Http2 {
                state.refusal = Some(Refusal::hook_failed());
                tracing::error!(
                    "a hook has given a body to a request without one, which can't be sent in HTTP/2"
                );
                return Err(refused(500));
            }
            peer.options.alpn = ALPN::H1;
        }
    }
    let left = set_deadlines(handle, state)?;
    if let Some(rare) = &state.rare
        && rare.deadlines.is_any()
    {
        // The connection is cut when the time is over: others must not be cut with it.
        peer.options.max_h2_streams = 1;
    }
    if let Some(left) = left {
        let options = &mut peer.options;
        for limit in [
            &mut options.connection_timeout,
            &mut options.total_connection_timeout,
        ] {
            *limit = Some(limit.map_or(left, |known| known.min(left)));
        }
    }
    Ok(peer)
}

/// Notes by when the response must be there, and gives the time that is left for connecting, if that is bounded.
///
/// # Errors
/// When there is none left.
pub(super) fn set_deadlines(handle: &Handle, state: &mut State) -> Result<Option<Duration>> {
    let route = state.route.and_then(|route| handle.route(route).timeout);
    let timeouts = &pool_of(handle, state)?.config().timeouts;
    // What reads of a tunnel have is the tunnel's; its answer is waited for as for any other.
    let is_upgrade = state.rare.as_ref().is_some_and(|rare| rare.upgrade);
    let route = route.or_else(|| is_upgrade.then_some(timeouts.read));
    if route.is_none() && timeouts.first_byte.is_none() && timeouts.request.is_none() {
        return Ok(None);
    }
    let request = timeouts.request.map(|time| state.started + time);
    let deadlines = &mut state.rare().deadlines;
    deadlines.set(route, timeouts.first_byte, request);
    let Some((time, late)) = deadlines.next() else {
        return Ok(None);
    };
    let left = time.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(too_late(state, late));
    }
    Ok(Some(left))
}

/// The answer to a request whose time is up before an attempt could begin.
pub(super) fn too_late(state: &mut State, late: Late) -> Box<Error> {
    let refusal = Refusal::upstream(late.into());
    let status = refusal.status;
    state.refusal = Some(refusal);
    refused(status)
}

impl From<Late> for UpstreamError {
    fn from(late: Late) -> Self {
        match late {
            Late::Route => Self::RouteTimeout,
            Late::FirstByte => Self::FirstByteTimeout,
            Late::Request => Self::RequestTimeout,
        }
    }
}

/// Takes in that the header of a final response has come, whoever gets it.
pub(super) fn answered(context: &Context, status: u16) {
    report(&context.handle, &context.state, Outcome::Answered(status));
}

/// Tells the pool what the request has come to at the endpoint that it has.
pub(super) fn report(handle: &Handle, state: &State, outcome: Outcome) {
    let rare = state.rare.as_ref();
    let since = rare.and_then(|rare| rare.waits_since);
    let latency = since.map(|since| since.elapsed());
    if let (Ok(pool), Some(picked)) = (pool_of(handle, state), &state.picked) {
        pool.report(picked, outcome, latency);
    }
}

/// Counts a connection that stands, and watches the request's times on it.
pub(super) fn connected(
    fd: RawFd,
    reused: bool,
    digest: Option<&Digest>,
    session: &mut Session,
    context: &mut Context,
) -> Result<()> {
    let Context { handle, state, .. } = context;
    connection::look_at(fd, reused, digest, state);
    // An earlier endpoint's failure is no longer what the client would be told.
    state.refusal = None;
    state.informational = 0;
    if let Some(pool) = state.pool {
        handle.pool(pool).1.connected(reused);
    }
    let Some(rare) = &mut state.rare else {
        return Ok(());
    };
    if rare.request_body.is_none() {
        // What was sent on another connection is read again.
        state.body_bytes = 0;
    }
    if let Err(error) = rare.deadlines.connected(fd, session) {
        state.refusal = Some(Refusal::upstream(UpstreamError::FdExhausted));
        let context = "watching the times of a connection";
        return Err(Error::because(ErrorType::InternalError, context, error));
    }
    if session.is_body_empty() {
        // With HTTP/2 the header says so, and the filter of the body, which notes it else, is not asked.
        rare.sent();
    }
    Ok(())
}
