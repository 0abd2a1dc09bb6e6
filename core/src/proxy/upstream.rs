//! The upstream's side: which endpoint, what a failure means, what may be tried again.

use std::{os::fd::RawFd, time::Instant};

use pingora_core::{protocols::Digest, upstreams::peer::HttpPeer};
use pingora_error::{Error, ErrorSource, ErrorType, OrErr as _, Result};
use pingora_proxy::Session;

use super::{
    admit::asked_again,
    connection,
    context::{Context, Refusal},
    deadline::Deadline,
    grpc,
};
use crate::{
    config::Protocol,
    metrics::ConnectFailure,
    pools::{Wish, classify_connect_error},
};

/// Connections that are tried for one request. Nothing was sent when a connection can't be made,
/// so trying another is always safe.
pub(super) const CONNECT_ATTEMPTS: u8 = 3;

/// Chooses an endpoint; the peer is ready-made, only cloned.
pub(super) fn peer(session: &Session, context: &mut Context) -> Result<Box<HttpPeer>> {
    let Context { handle, state, .. } = context;
    let Some(pool) = state.pool else {
        return Err(Error::explain(
            ErrorType::InternalError,
            "no pool was chosen",
        ));
    };
    let (pool, _) = handle.pool(pool);
    if let Some(failed) = state.picked.take() {
        state.rare().tried.push(failed.endpoint());
    }
    let rare = state.rare.as_deref();
    let wish = Wish {
        avoid: rare.map_or(&[], |rare| &rare.tried),
        ..Wish::default()
    };
    let picked = match pool.select(&wish) {
        Ok(picked) => picked,
        Err(unavailable) => {
            let reason = format!("pool {}: {unavailable}", pool.name());
            state.refusal = Some(Refusal::new(503, reason));
            return Err(Error::new_in(ErrorType::HTTPStatus(503)));
        }
    };
    state.attempts += 1;
    let mut peer = Box::new(picked.peer().clone());
    connection::prepare(session, handle, pool.config(), &picked, &mut peer);
    state.picked = Some(picked);
    let upgrade = state.seen.upgrade && session.is_upgrade_req();
    if upgrade {
        state.rare().upgrade = true;
        connection::prepare_upgrade(&pool.config().timeouts, &mut peer);
    }
    if pool.config().protocol != Protocol::Http1 {
        grpc::bound(session.req_header(), state, &mut peer)?;
    }
    let timeout = state.route.and_then(|route| handle.route(route).timeout);
    // What reads have is the tunnel's; the answer is waited for as for any other.
    let timeout = timeout.or_else(|| upgrade.then_some(pool.config().timeouts.read));
    if let Some(timeout) = timeout {
        let now = Instant::now();
        let deadline = *state.rare().deadline.get_or_insert(now + timeout);
        let left = deadline.saturating_duration_since(now);
        // The connection is cut when the time is over: others must not be cut with it.
        peer.options.max_h2_streams = 1;
        if left.is_zero() {
            state.refusal = Some(Refusal::late());
            return Err(Error::new_up(ErrorType::ReadTimedout));
        }
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

/// Counts a connection that stands, and watches the route's `.timeout` on it.
pub(super) fn connected(
    fd: RawFd,
    reused: bool,
    digest: Option<&Digest>,
    context: &mut Context,
) -> Result<()> {
    let Context { handle, state, .. } = context;
    connection::look_at(fd, reused, digest, state);
    // An earlier endpoint's failure is no longer what the client would be told.
    state.refusal = None;
    if let Some(pool) = state.pool {
        handle.pool(pool).1.connected(reused);
    }
    if let Some(rare) = &mut state.rare
        && let Some(deadline) = rare.deadline
    {
        rare.watch = None;
        let watch = Deadline::watch(fd, deadline).or_err(
            ErrorType::InternalError,
            "watching the deadline of a connection",
        )?;
        rare.watch = Some(watch);
    }
    Ok(())
}

/// Counts a connection that could not be made, and says whether another is tried.
pub(super) fn connect_failed(context: &mut Context, mut error: Box<Error>) -> Box<Error> {
    let Context { handle, state, .. } = context;
    let reason = classify_connect_error(&error);
    if let Some(pool) = state.pool {
        let (pool, metrics) = handle.pool(pool);
        metrics.connect_failed(reason);
        tracing::warn!(
            "upstream connect failure pool={} endpoint={} reason={} attempt={} error={error}",
            pool.name(),
            state.picked.as_ref().map_or("", |picked| picked.address()),
            reason.name(),
            state.attempts,
        );
    }
    if asked_again(handle, state).is_some() {
        state.rare().last_error = Some(reason.name());
    }
    match reason {
        // Another try needs what has just run out.
        ConnectFailure::PortExhausted => {
            state.refusal = Some(Refusal::new(503, "no free port towards the upstream"));
        }
        ConnectFailure::FdExhausted => {
            state.refusal = Some(Refusal::new(503, "out of open files"));
        }
        ConnectFailure::Timeout => {
            state.refusal = Some(Refusal::new(504, "the upstream did not accept in time"));
            error.set_retry(state.attempts < CONNECT_ATTEMPTS);
        }
        ConnectFailure::Refused | ConnectFailure::Tls | ConnectFailure::Other => {
            state.refusal = Some(Refusal::new(502, "the upstream can't be reached"));
            error.set_retry(state.attempts < CONNECT_ATTEMPTS);
        }
    }
    error
}

/// Decides whether a request is sent again after a connection failed in use. Only when the
/// upstream can't have acted on it twice: the method is idempotent (RFC 9110 section 9.2.2), all
/// of the body that was sent can be sent again, and the connection was a kept one that the
/// upstream had probably closed while it was idle. Never when it was cut for being late, nor once the
/// header of a response has come: the rest of another one must not follow it.
pub(super) fn failed_in_use(
    peer: &HttpPeer,
    session: &Session,
    error: Box<Error>,
    reused: bool,
    is_final: bool,
) -> Box<Error> {
    let mut error = error.more_context(format!("Peer: {peer}"));
    if is_final {
        error.set_retry(false);
        return error;
    }
    let replayable =
        session.req_header().method.is_idempotent() && !session.as_ref().retry_buffer_truncated();
    if !replayable {
        error.set_retry(false);
    } else if reused && *error.etype() == ErrorType::WriteError {
        // Pingora only marks failed reads; a write can fail on a connection closed meanwhile too.
        error.set_retry(true);
    } else {
        error.retry.decide_reuse(reused);
    }
    error
}

/// What the client is told of an error. `None` when there is nobody to tell.
pub(super) fn refusal(error: &Error) -> Option<Refusal> {
    let timed_out = matches!(
        error.etype(),
        ErrorType::ReadTimedout
            | ErrorType::WriteTimedout
            | ErrorType::ConnectTimedout
            | ErrorType::TLSHandshakeTimedout
    );
    Some(match (error.etype(), error.esource()) {
        (ErrorType::HTTPStatus(413), _) => Refusal::new(413, "the request's body is too large"),
        (ErrorType::HTTPStatus(status), _) => Refusal::new(*status, "the request failed"),
        (_, ErrorSource::Upstream) if timed_out => Refusal::late(),
        (_, ErrorSource::Upstream) => Refusal::new(502, "the upstream's answer can't be used"),
        (_, ErrorSource::Downstream) if timed_out => {
            Refusal::new(408, "the request did not arrive in time")
        }
        (
            ErrorType::WriteError | ErrorType::ReadError | ErrorType::ConnectionClosed,
            ErrorSource::Downstream,
        ) => return None,
        (_, ErrorSource::Downstream) => Refusal::new(400, "the request can't be read"),
        _ => Refusal::new(500, "internal error"),
    })
}
