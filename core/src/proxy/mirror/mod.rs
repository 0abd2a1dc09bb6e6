//! `.mirror`: copies of a route's requests for another pool.
//!
//! What is copied is what the route's own upstream gets: after all hooks and filters, with the body when
//! it is not too long. The client and the original never wait for a copy: it is put together by the way,
//! sent by a task of its own once the body is there, and sent once. There are only so many at a time
//! (`[limits] mirrors`), each with a bounded body, so the memory that they take is bounded too.

mod copy;
mod slots;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use edgewright_script::program::{Mirror, RouteId};
use http::{Method, header};
use pingora_http::RequestHeader;
use pingora_proxy::Session;

use super::context::State;
use crate::{
    metrics::{Limit, MirrorOutcome},
    worker::Handle,
};
use slots::Slot;
pub(crate) use slots::in_flight;

/// A copy whose body is still arriving.
#[derive(Debug)]
pub(super) struct Collecting {
    header: Box<RequestHeader>,
    body: BytesMut,
    _slot: Slot,
}

/// Decides whether a request is copied, once for all of its attempts, and begins with it.
/// `upstream` is the header that the route's own upstream gets.
pub(super) fn prepare(
    session: &mut Session,
    handle: &Arc<Handle>,
    state: &mut State,
    upstream: &RequestHeader,
) {
    let Some(route) = state.route else { return };
    let Some(mirror) = &handle.route(route).mirror else {
        return;
    };
    if state.mirror_decided {
        // Another attempt sends the body from its beginning again.
        if let Some(collecting) = collecting(state) {
            collecting.body.clear();
        }
        return;
    }
    state.mirror_decided = true;
    if !mirror.rules.picks(fastrand::u64(..)) {
        return;
    }
    let count = |outcome| handle.metrics_of(Some(route)).mirrored(outcome);
    if session.is_upgrade_req() || upstream.method == Method::CONNECT {
        // What follows is no body, and nobody could answer both sides.
        return count(MirrorOutcome::Skipped);
    }
    let Some(header) = copy::header(upstream) else {
        return count(MirrorOutcome::Skipped);
    };
    if declared_length(upstream).is_some_and(|length| length > mirror.rules.body as u64) {
        return count(MirrorOutcome::Body);
    }
    let Some(slot) = Slot::take(handle.config.limits.mirrors) else {
        handle.limit_passed(Limit::Mirrors);
        return count(MirrorOutcome::Dropped);
    };
    let held = state.rare.as_ref();
    let held = held.and_then(|rare| rare.request_body.as_ref());
    let whole = match held {
        // Hooks have had it: it is all there.
        Some(body) => Some(body.bytes.clone()),
        None => session.is_body_empty().then(Bytes::new),
    };
    match whole {
        Some(body) if body.len() > mirror.rules.body => count(MirrorOutcome::Body),
        Some(body) => send(handle, route, header, body, slot),
        None => {
            state.rare().mirror = Some(Collecting {
                header,
                body: BytesMut::new(),
                _slot: slot,
            });
        }
    }
}

/// Takes in a piece of the body that goes to the route's own upstream. `end` says that it is the last.
pub(super) fn pass(handle: &Arc<Handle>, state: &mut State, piece: Option<&Bytes>, end: bool) {
    let (Some(route), Some(collecting)) = (state.route, collecting(state)) else {
        return;
    };
    let Some(Mirror { rules, .. }) = &handle.route(route).mirror else {
        return;
    };
    let piece = piece.map_or(&[][..], |piece| piece);
    if piece.len() > rules.body - collecting.body.len() {
        state.rare().mirror = None;
        return handle.metrics_of(Some(route)).mirrored(MirrorOutcome::Body);
    }
    collecting.body.extend_from_slice(piece);
    if end && let Some(done) = state.rare().mirror.take() {
        let Collecting {
            header,
            body,
            _slot: slot,
        } = done;
        send(handle, route, header, body.freeze(), slot);
    }
}

/// The request is over. A body that never came whole is not sent.
pub(super) fn finish(handle: &Handle, state: &mut State) {
    let unfinished = state.rare.as_mut().and_then(|rare| rare.mirror.take());
    if unfinished.is_some() {
        let metrics = handle.metrics_of(state.route);
        metrics.mirrored(MirrorOutcome::Incomplete);
    }
}

fn collecting(state: &mut State) -> Option<&mut Collecting> {
    state.rare.as_mut()?.mirror.as_mut()
}

fn declared_length(header: &RequestHeader) -> Option<u64> {
    let length = header.headers.get(header::CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}

/// Sends a copy on the worker's runtime, beside its requests.
fn send(
    handle: &Arc<Handle>,
    route: RouteId,
    mut header: Box<RequestHeader>,
    body: Bytes,
    slot: Slot,
) {
    let handle = handle.clone();
    copy::frame(&mut header, body.len());
    tokio::spawn(async move {
        let Some(mirror) = &handle.route(route).mirror else {
            return;
        };
        let (pool, metrics) = handle.pool(mirror.pool);
        let client = handle.client();
        let sent = client.send_copy(pool, metrics, header, &body, mirror.rules.timeout);
        let outcome = match sent.await {
            Ok(()) => MirrorOutcome::Ok,
            Err(failure) => MirrorOutcome::Failed(failure.kind),
        };
        handle.metrics_of(Some(route)).mirrored(outcome);
        drop(slot);
    });
}
