//! What a failure of an upstream means, and what the client is told of it.

use std::time::Duration;

use pingora_core::upstreams::peer::HttpPeer;
use pingora_error::{Error, ErrorSource, ErrorType, RetryType};
use pingora_proxy::Session;

use super::{
    MOST_LOGGED,
    admit::asked_again,
    context::{Context, Refusal, State},
    deadline::Late,
    retry::{self, Decision},
    upstream,
};
use crate::{
    metrics::{ConnectFailure, Limit, Metrics, Retried, UpstreamError},
    pools::{Fault, Outcome, classify_connect_error},
    worker::Handle,
};
use edgewright_script::program::RetryCause;

/// Counts a connection that could not be made, and says whether another is tried: nobody has got the
/// request, so that is safe for all of them.
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
    if let Some(fault) = Fault::of_connect(reason) {
        upstream::report(handle, state, Outcome::Failed(fault));
    }
    let failure = match reason {
        ConnectFailure::PortExhausted => UpstreamError::PortExhausted,
        ConnectFailure::FdExhausted => UpstreamError::FdExhausted,
        ConnectFailure::Timeout => UpstreamError::ConnectTimeout,
        ConnectFailure::Refused | ConnectFailure::Tls | ConnectFailure::Other => {
            UpstreamError::Connect
        }
    };
    // Another try needs what has just run out.
    let is_ours = matches!(
        failure,
        UpstreamError::PortExhausted | UpstreamError::FdExhausted
    );
    let after = (!is_ours).then_some(Retried::After(RetryCause::Connect));
    let again = failed(handle, state, failure, after, reason.name(), true);
    error.set_retry(again);
    error
}

/// Decides whether a request is sent again after a connection failed in use. Only when the
/// upstream can't have acted on it twice: see [`retry::is_repeatable`]. Never when the time for all attempts
/// is up, nor once the header of a response has come: the rest of another one must not follow it.
pub(super) fn in_use(
    peer: &HttpPeer,
    session: &mut Session,
    error: Box<Error>,
    context: &mut Context,
    reused: bool,
) -> Box<Error> {
    let Context { handle, state, .. } = context;
    let mut error = error.more_context(format!("Peer: {peer}"));
    // Pingora's own opinion: it knows the errors of its protocols, but not what is safe for a request
    // (pingora #979).
    let suggested = match error.retry {
        RetryType::ReusedOnly => reused,
        RetryType::Decided(retry) => retry,
    };
    if is_status(&error) && suggested {
        // It was decided when the header came.
        return error;
    }
    error.set_retry(false);
    if state.refusal.is_some() {
        return error;
    }
    let late = state.rare.as_ref().and_then(|rare| rare.deadlines.passed());
    if state.has_response {
        if late == Some(Late::Request) {
            state.refusal = Some(Refusal::upstream(UpstreamError::RequestTimeout));
        }
        return error;
    }
    if late.is_none() && *error.esource() != ErrorSource::Upstream {
        return error;
    }
    let (failure, cause) = classify(&error, late);
    let is_stale = match error.etype() {
        // Pingora only marks failed reads; a write can fail on a connection closed meanwhile too.
        ErrorType::WriteError => reused,
        _ => suggested,
    };
    if let Some(fault) = fault(session, &error, late, reused) {
        upstream::report(handle, state, Outcome::Failed(fault));
    }
    let after = if is_stale && late.is_none() {
        Some(Retried::Stale)
    } else {
        cause.map(Retried::After)
    };
    let repeatable = retry::is_repeatable(session);
    let again = failed(handle, state, failure, after, failure.name(), repeatable);
    error.set_retry(again);
    error
}

/// What the failure of a connection in use says of its endpoint; `None` when it may not be to blame.
fn fault(session: &mut Session, error: &Error, late: Option<Late>, reused: bool) -> Option<Fault> {
    match (late, error.etype()) {
        (Some(_), _) => Some(Fault::Timeout),
        // It may have waited for a client that is slow to send.
        (None, ErrorType::ReadTimedout) if !session.as_mut().is_body_done() => None,
        (None, ErrorType::ReadTimedout | ErrorType::WriteTimedout) => Some(Fault::Timeout),
        (None, ErrorType::InvalidHTTPHeader) => Some(Fault::Broken),
        (None, ErrorType::HTTPStatus(_) | ErrorType::InternalError) => None,
        // It may have closed the connection while it was idle, as it may.
        (None, _) if reused => None,
        (None, _) => Some(Fault::Closed),
    }
}

/// Whether the error stands for a response of the upstream's own that the client is not to get.
fn is_status(error: &Error) -> bool {
    matches!(error.etype(), ErrorType::HTTPStatus(_)) && *error.esource() == ErrorSource::Upstream
}

/// Notes a failed attempt, and whether another follows.
fn failed(
    handle: &Handle,
    state: &mut State,
    failure: UpstreamError,
    after: Option<Retried>,
    last_error: &'static str,
    repeatable: bool,
) -> bool {
    let mut refusal = Refusal::upstream(failure);
    if asked_again(handle, state).is_some() {
        state.rare().last_error = Some(last_error);
    }
    let decision = match after {
        Some(after) => retry::decide(handle, state, after, repeatable),
        None => Decision::Final,
    };
    if decision == Decision::OverBudget {
        let spent = UpstreamError::RetryBudget;
        refusal.reason = format!("{}; {}", refusal.reason, spent.text()).into();
        refusal.upstream = Some(spent);
    }
    state.refusal = Some(refusal);
    decision == Decision::Again
}

/// What a connection failed of before there was a response header, and what that is in the words of `on`.
fn classify(error: &Error, late: Option<Late>) -> (UpstreamError, Option<RetryCause>) {
    use UpstreamError as E;
    match (late, error.etype()) {
        (Some(Late::FirstByte), _) | (None, ErrorType::ReadTimedout) => {
            (E::FirstByteTimeout, Some(RetryCause::Timeout))
        }
        (Some(late), _) => (late.into(), None),
        (None, ErrorType::WriteTimedout) => (E::WriteTimeout, None),
        (None, ErrorType::ConnectionClosed | ErrorType::ReadError | ErrorType::WriteError) => {
            (E::Reset, Some(RetryCause::Reset))
        }
        (None, _) => (E::Broken, None),
    }
}

/// What the client is told of an error that nobody else has said anything of. `None` when there is
/// nobody to tell.
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
        (_, ErrorSource::Upstream) if timed_out => {
            Refusal::upstream(UpstreamError::FirstByteTimeout)
        }
        (_, ErrorSource::Upstream) => Refusal::upstream(UpstreamError::Broken),
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

/// Counts what the request has failed of, for good, if that was its upstream.
pub(super) fn count(handle: &Handle, state: &mut State, refusal: Option<&Refusal>) {
    if let (Some(failure), Some(pool)) = (refusal.and_then(|refusal| refusal.upstream), state.pool)
    {
        handle.pool(pool).1.failed(failure);
        state.rare().upstream_error = Some(failure);
    }
}

/// Counts a response that the client has a part of and gets no more.
pub(super) fn count_cut(handle: &Handle, state: &mut State, error: &Error) {
    let broken = *error.esource() == ErrorSource::Upstream;
    let broken = broken.then(|| Refusal::upstream(UpstreamError::Broken));
    let refusal = state.refusal.take().or(broken);
    count(handle, state, refusal.as_ref());
}

/// The word for what the request has failed of.
pub(super) fn reason(state: &State) -> &'static str {
    let rare = state.rare.as_ref();
    let error = rare.and_then(|rare| rare.upstream_error);
    error.map_or("other", UpstreamError::name)
}

/// Stops the clocks of a request that is over.
pub(super) fn end(state: &mut State) {
    if let Some(rare) = &mut state.rare {
        rare.deadlines.end();
    }
}

/// Tells of a request that has ended with an error: in the log, unless it is the client's.
#[cold]
pub(super) fn tell(
    error: &Error,
    status: Option<u16>,
    duration: Duration,
    context: &Context,
    metrics: &Metrics,
) {
    if *error.esource() == ErrorSource::Downstream {
        if *error.etype() == ErrorType::WriteTimedout {
            metrics.limit_hit(Limit::ResponseWriteTimeout);
        }
        tracing::debug!("client error route={} error={error}", context.label());
        return;
    }
    if matches!(error.etype(), ErrorType::HTTPStatus(status) if *status < 500) {
        return;
    }
    // An upstream's bytes may stand in it.
    let error: String = error.to_string().chars().take(MOST_LOGGED).collect();
    tracing::warn!(
        "request failed route={} status={} reason={} attempts={} after={:.3}s error={error}",
        context.label(),
        status.unwrap_or(0),
        reason(&context.state),
        context.state.attempts,
        duration.as_secs_f64(),
    );
}
