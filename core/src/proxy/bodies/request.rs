//! Reads the whole body of a request, before any upstream is contacted.

use bytes::{Bytes, BytesMut};
use http::{Version, header};
use pingora_error::{Error, ErrorType};
use pingora_http::RequestHeader;
use pingora_proxy::Session;

use super::{
    kept::{Full, Kept},
    replay,
};
use crate::{
    metrics::Limit,
    proxy::{
        context::{Refusal, State},
        failure, gates,
        hooks::Exchange,
        hygiene,
    },
};

/// What Pingora keeps of a body to send it again, in bytes.
const RETRY_BUFFER: usize = 64 * 1024;

/// All of a body that is kept must be there within so many times the time for one read: a client that
/// sends a byte now and then must not hold the room of others.
const READS: u32 = 4;

/// Room that is made in advance; the client's word about the length is not enough for more.
const FIRST_ROOM: usize = 64 * 1024;

/// The body of a request that hooks have.
#[derive(Debug)]
pub(in crate::proxy) struct RequestBody {
    /// What goes to the upstream.
    pub(in crate::proxy) bytes: Bytes,
    /// Whether the request came with a body, or a hook gave it one.
    framed: bool,
    /// Whether the request came without one.
    was_empty: bool,
    kept: Kept,
}

impl RequestBody {
    /// Replaces it.
    pub(in crate::proxy) fn set(&mut self, bytes: Bytes) {
        self.kept.set(bytes.len());
        self.framed |= !bytes.is_empty();
        self.bytes = bytes;
    }

    /// Whether there is one only because a hook has made it.
    pub(in crate::proxy) fn is_new(&self) -> bool {
        self.was_empty && !self.bytes.is_empty()
    }

    /// Frames the upstream's request accordingly.
    pub(in crate::proxy) fn frame(&self, upstream: &mut RequestHeader) {
        upstream.remove_header(&header::TRANSFER_ENCODING);
        if self.framed {
            let _ = upstream.insert_header(header::CONTENT_LENGTH, self.bytes.len());
        }
    }

    /// What is sent in place of `chunk`, of which `end` says whether it is the last one.
    pub(in crate::proxy) fn replace(&self, chunk: &mut Option<Bytes>, end: bool) {
        *chunk = match (end, self.bytes.is_empty()) {
            (true, false) => Some(self.bytes.clone()),
            (true, true) => None,
            (false, _) => Some(Bytes::new()),
        };
    }
}

/// Why a body was not read.
pub(in crate::proxy) enum Unread {
    /// This is answered.
    Refused(Refusal),
    /// There is nobody to answer to.
    ClientLeft,
}

/// Reads the body into the state of the request.
pub(in crate::proxy) async fn read(exchange: &mut Exchange<'_>) -> Result<(), Unread> {
    let Exchange {
        session,
        handle,
        state,
        ..
    } = exchange;
    let script = &handle.config.script;
    let most = usize::try_from(state.most_body).unwrap_or(usize::MAX);
    let limits = Bounds {
        body: script.body.min(most),
        bodies: script.bodies,
    };
    let time = handle.config.limits.request_read_timeout * READS;
    let whole = tokio::time::timeout(time, whole(session, limits)).await;
    let late = || Fault::Broken(Error::new_down(ErrorType::ReadTimedout));
    let body = match whole.unwrap_or_else(|_| Err(late())) {
        Ok(body) => body,
        Err(fault) => {
            // What is left of the body is not worth reading.
            session.set_keepalive(None);
            return Err(match fault {
                Fault::Full(Full::Body) => {
                    if most < script.body {
                        gates::count_long_body(handle, state.route);
                    } else {
                        handle.limit_passed(Limit::ScriptBody);
                    }
                    let found = &hygiene::BODY_TOO_LARGE;
                    Unread::Refused(Refusal::new(found.status, found.reason))
                }
                Fault::Unbounded => Unread::Refused(Refusal::new(
                    411,
                    "a body of more than 64 KiB needs a Content-Length with HTTP/2",
                )),
                Fault::Full(Full::Process) => {
                    handle.limit_passed(Limit::ScriptBodies);
                    Unread::Refused(Refusal::new(503, "too many bodies at a time"))
                }
                Fault::Broken(error) => {
                    let refusal = failure::refusal(&error.into_down());
                    refusal.map_or(Unread::ClientLeft, Unread::Refused)
                }
            });
        }
    };
    keep(state, body);
    Ok(())
}

fn keep(state: &mut State, body: RequestBody) {
    state.body_bytes = body.bytes.len() as u64;
    state.rare().request_body = Some(body);
}

#[derive(Debug, Clone, Copy)]
struct Bounds {
    body: usize,
    bodies: usize,
}

enum Fault {
    Full(Full),
    /// It is of a length that only its end tells, too long for what Pingora keeps, and not of HTTP/1.
    Unbounded,
    Broken(Box<Error>),
}

impl From<Full> for Fault {
    fn from(full: Full) -> Self {
        Self::Full(full)
    }
}

impl From<Box<Error>> for Fault {
    fn from(error: Box<Error>) -> Self {
        Self::Broken(error)
    }
}

async fn whole(session: &mut Session, bounds: Bounds) -> Result<RequestBody, Fault> {
    let mut kept = Kept::default();
    if session.is_body_empty() {
        let headers = &session.req_header().headers;
        return Ok(RequestBody {
            bytes: Bytes::new(),
            framed: headers.contains_key(header::CONTENT_LENGTH)
                || headers.contains_key(header::TRANSFER_ENCODING),
            was_empty: true,
            kept,
        });
    }
    let length = length_of(session.req_header());
    if length.is_some_and(|length| length > bounds.body) {
        return Err(Full::Body.into());
    }
    invite(session).await?;
    let mut bytes = BytesMut::with_capacity(length.unwrap_or_default().min(FIRST_ROOM));
    loop {
        // Pingora only sends on what stands in its buffer for sending again (see `replay`); a body
        // of a known length has only its end there, so that the buffer never overflows.
        if length.is_none_or(|length| length - bytes.len() <= RETRY_BUFFER) {
            session.enable_retry_buffering();
        }
        let Some(chunk) = session.read_request_body().await? else {
            break;
        };
        if length.is_none()
            && bytes.len() + chunk.len() > RETRY_BUFFER
            && session.as_http1().is_none()
        {
            return Err(Fault::Unbounded);
        }
        kept.grow(chunk.len(), bounds.body, bounds.bodies)?;
        bytes.extend_from_slice(&chunk);
        if length.is_some_and(|length| length <= bytes.len()) {
            break;
        }
    }
    if !session.is_body_empty() && session.get_retry_buffer().is_none() {
        replay::renew(session).await?;
    }
    Ok(RequestBody {
        bytes: bytes.freeze(),
        framed: true,
        was_empty: false,
        kept,
    })
}

fn length_of(header: &RequestHeader) -> Option<usize> {
    let length = header.headers.get(header::CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}

/// A client that waits for `100 Continue` is sent it: the upstream isn't asked (RFC 9110 section
/// 10.1.1).
async fn invite(session: &mut Session) -> Result<(), Box<Error>> {
    let header = session.req_header();
    let expects = header.headers.get(header::EXPECT);
    let Some(expects) = expects else {
        return Ok(());
    };
    let expects = expects.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if expects && header.version >= Version::HTTP_11 {
        session.write_continue_response().await?;
    }
    session.req_header_mut().remove_header(&header::EXPECT);
    Ok(())
}
