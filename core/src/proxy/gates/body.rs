//! How long a request's body may be: `.max_body` of its route, else `[limits] request_body`.

use edgewright_script::program::{Gate, Gates, RouteId, gate_answer};
use http::{StatusCode, header::CONTENT_LENGTH};

use super::{super::context::Refusal, Admission, Exchange, refuse};
use crate::{generation::Generation, metrics::Limit, proxy::hygiene::BODY_TOO_LARGE};

/// What holds for the body from here on, and whether its length says that it is too long. A body
/// without a length is measured as it comes.
pub(super) fn admit(gates: &Gates, exchange: &mut Exchange<'_>) -> Option<Admission> {
    let Some(most) = gates.max_body else {
        return exchange.state.long_body.then(|| refuse_long(exchange));
    };
    exchange.state.most_body = most;
    let length = exchange.session.req_header().headers.get(CONTENT_LENGTH);
    let length: u64 = length?.to_str().ok()?.parse().ok()?;
    gates.admit_length(length).err()?;
    // What follows on the connection is a body that nobody reads.
    exchange.session.set_keepalive(None);
    let answer = gate_answer(StatusCode::PAYLOAD_TOO_LARGE);
    Some(refuse(Gate::MaxBody, answer, exchange))
}

/// Refuses a body that is longer than `[limits] request_body`.
#[cold]
pub(super) fn refuse_long(exchange: &mut Exchange<'_>) -> Admission {
    exchange.handle.limit_passed(Limit::RequestBody);
    exchange.session.set_keepalive(None);
    let found = BODY_TOO_LARGE;
    tracing::info!("refused status={} reason={}", found.status, found.reason);
    Admission::Refuse(Refusal::new(found.status, found.reason))
}

/// The same for a request that fits no route: no `.max_body` can allow it.
pub(in crate::proxy) fn refuse_unrouted(exchange: &mut Exchange<'_>) -> Option<Admission> {
    exchange.state.long_body.then(|| refuse_long(exchange))
}

/// Counts a body that turned out to be longer than the route or `[limits]` allows.
#[cold]
pub(in crate::proxy) fn count_long_body(generation: &Generation, route: Option<RouteId>) {
    let gates = route.and_then(|route| generation.route(route).gates.as_deref());
    if gates.is_some_and(|gates| gates.max_body.is_some()) {
        generation.metrics_of(route).refused_by(Gate::MaxBody);
    } else {
        generation.limit_passed(Limit::RequestBody);
    }
}
