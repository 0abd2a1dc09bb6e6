//! What is done with the body of a response that hooks are to see.

use std::sync::Arc;

use bytes::Bytes;
use edgewright_script::program::Later;
use http::{HeaderName, HeaderValue, Method, header};
use pingora_error::{Error, ErrorType, Result};
use pingora_http::ResponseHeader;
use pingora_proxy::Session;

use super::{
    coding::{Coding, Decoder, Fault},
    held::Held,
    kept::Full,
    stream::Streams,
};
use crate::{
    metrics::Limit,
    proxy::{
        context::{Refusal, State},
        refused,
    },
    worker::Handle,
};

/// A body on its way from the upstream to the client.
pub(in crate::proxy) enum ResponseBody {
    /// All of it is kept, and the header too, until it is there.
    Held(Box<Held>),
    /// It is handed on in pieces.
    Streams(Box<Streams>),
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Held(_) => "Held",
            Self::Streams(_) => "Streams",
        })
    }
}

/// Fields that are about the bytes of the body as the upstream sent it.
const OF_THE_BYTES: [HeaderName; 2] = [header::CONTENT_LENGTH, header::ACCEPT_RANGES];

/// The same, by names that have no constant (RFC 9530; RFC 1864; RFC 3230).
const DIGESTS: [&str; 4] = ["content-digest", "repr-digest", "digest", "content-md5"];

/// Whether a response to such a request with such a status has a body (RFC 9110 section 6.4.1).
pub(in crate::proxy) fn has_body(session: &Session, response: &ResponseHeader) -> bool {
    session.req_header().method != Method::HEAD
        && !matches!(response.status.as_u16(), 100..200 | 204 | 304)
}

/// Prepares for the body of the upstream's response, whose header is as it is sent otherwise.
pub(in crate::proxy) fn prepare(
    session: &mut Session,
    handle: &Arc<Handle>,
    state: &mut State,
    response: &mut ResponseHeader,
) -> Result<()> {
    let later = state.later(handle);
    if later.on_response_body.is_empty() || response.status.as_u16() == 101 {
        return Ok(());
    }
    let Some(coding) = Coding::of(&response.headers) else {
        // The client gets what it can decode, and this can't.
        tracing::warn!(
            "body hooks not run route={} reason=\"a content coding that can't be undone\" coding={:?}",
            handle.metrics_of(state.route).label(),
            response.headers.get(header::CONTENT_ENCODING),
        );
        return Ok(());
    };
    forget_the_bytes(response, coding);
    if !has_body(session, response) {
        return Ok(());
    }
    let most = handle.config.script.body;
    let decoder = Decoder::new(coding, most)
        .map_err(|error| Error::because(ErrorType::InternalError, "a decoder", error))?;
    let prepared = if later.streams() {
        let streams = Streams::new(later, decoder, response.clone());
        if session.req_header().version == http::Version::HTTP_10 {
            // It knows no chunks: the end of the connection is the end of the body.
            session.set_keepalive(None);
        } else {
            response.insert_header(header::TRANSFER_ENCODING, "chunked")?;
        }
        ResponseBody::Streams(Box::new(streams))
    } else {
        ResponseBody::Held(Box::new(Held::take(session, response, decoder)?))
    };
    state.rare().response_body = Some(prepared);
    Ok(())
}

/// Removes what will no longer be true of the body once hooks have changed it.
fn forget_the_bytes(response: &mut ResponseHeader, coding: Coding) {
    for name in &OF_THE_BYTES {
        response.remove_header(name);
    }
    for name in DIGESTS {
        response.remove_header(name);
    }
    response.remove_header(&header::TRANSFER_ENCODING);
    if coding != Coding::Identity {
        response.remove_header(&header::CONTENT_ENCODING);
    }
    weaken_tag(response);
}

/// A body that is not what the upstream sent is another representation of the same thing, so the tag can
/// only be a weak one (RFC 9110 section 8.8.1).
pub(in crate::proxy) fn weaken_tag(response: &mut ResponseHeader) {
    let weak = response.headers.get(header::ETAG).and_then(|tag| {
        let tag = tag.as_bytes();
        (!tag.starts_with(b"W/"))
            .then(|| HeaderValue::from_bytes(&[b"W/", tag].concat()).ok())
            .flatten()
    });
    if let Some(weak) = weak {
        let _ = response.insert_header(header::ETAG, weak);
    }
}

/// Takes a piece of the body and puts in its place what the client gets of it now.
pub(in crate::proxy) fn pass(
    session: &mut Session,
    handle: &Arc<Handle>,
    state: &mut State,
    body: &mut Option<Bytes>,
    end: bool,
) -> Result<()> {
    let Some(prepared) = state
        .rare
        .as_mut()
        .and_then(|rare| rare.response_body.take())
    else {
        return Ok(());
    };
    let piece = body.take().unwrap_or_default();
    match prepared {
        ResponseBody::Held(mut held) => {
            let script = &handle.config.script;
            let pushed = held.push(&piece, script.body, script.bodies);
            state.rare().response_body = Some(ResponseBody::Held(held));
            if let Err(fault) = pushed {
                return Err(given_up(handle, state, fault));
            }
            if end && !session.is_body_done() {
                // The client is still sending what the upstream has answered already. Whoever waits for
                // the answer first, as with `Expect`, would wait for ever.
                state.answered = true;
                return Err(refused(200));
            }
            Ok(())
        }
        ResponseBody::Streams(mut streams) => {
            let passed = streams.pass(session, handle, state, &piece, end);
            state.rare().response_body = Some(ResponseBody::Streams(streams));
            match passed {
                Ok(bytes) => {
                    *body = Some(bytes).filter(|bytes| !bytes.is_empty());
                    Ok(())
                }
                Err(Lost::Told) => {
                    state.refusal = Some(Refusal::hook_failed());
                    Err(refused(500))
                }
                Err(Lost::Fault(fault)) => Err(given_up(handle, state, fault)),
            }
        }
    }
}

/// Tells of a body that can't be taken; the client is told too, while nothing was sent.
fn given_up(handle: &Handle, state: &mut State, fault: BodyFault) -> Box<Error> {
    let refusal = refusal(handle, state, fault);
    let status = refusal.status;
    if let Some(rare) = &mut state.rare {
        rare.response_body = None;
    }
    state.refusal = Some(refusal);
    refused(status)
}

/// Why nothing can be made of a body.
pub(in crate::proxy) enum Lost {
    /// A hook failed, which was told.
    Told,
    /// The body can't be taken.
    Fault(BodyFault),
}

/// Why a body can't be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum BodyFault {
    Full(Full),
    Broken,
}

impl From<Fault> for BodyFault {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::TooLarge => Self::Full(Full::Body),
            Fault::Broken => Self::Broken,
        }
    }
}

/// Counts and tells of a body that can't be taken. What a hook must not miss is not passed on.
pub(super) fn refusal(handle: &Handle, state: &State, fault: BodyFault) -> Refusal {
    let (limit, status, reason) = match fault {
        BodyFault::Full(Full::Body) => (
            Some(Limit::ScriptBody),
            500,
            "the upstream's response is too large for its hooks",
        ),
        BodyFault::Full(Full::Process) => {
            (Some(Limit::ScriptBodies), 503, "too many bodies at a time")
        }
        BodyFault::Broken => (None, 502, "the upstream's answer can't be decoded"),
    };
    if let Some(limit) = limit {
        handle.limit_passed(limit);
    }
    let route = handle.metrics_of(state.route);
    tracing::error!(
        "body not passed on route={} reason={reason:?}",
        route.label()
    );
    Refusal {
        hook_failed: true,
        ..Refusal::new(status, reason)
    }
}

/// The hooks of a response whose body is at hand run on it, whatever they were made for.
pub(super) fn is_wanted(later: &Later) -> bool {
    !later.on_response_body.is_empty()
}
