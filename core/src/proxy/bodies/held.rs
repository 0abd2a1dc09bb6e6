//! A response that is kept, header and all, until hooks have seen its whole body.
//!
//! Pingora writes the header to the client before it reads the body, and its filter of the body can't
//! wait. So the header is kept back: what Pingora is given in its place is an interim response, which
//! the session is told not to send. When the upstream's response has ended well, the hooks run, and
//! header and body are written like an answer of the proxy's own. Until then the response can still
//! become another one.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use edgewright_script::{answer::Answer, engine::Verdict};
use http::header;
use pingora_error::Result;
use pingora_http::ResponseHeader;
use pingora_proxy::Session;

use super::{
    coding::Decoder,
    kept::Kept,
    response::{BodyFault, ResponseBody, is_wanted, refusal},
};
use crate::{
    proxy::{
        compress,
        context::{Refusal, State},
        hooks::{self, Body, Exchange, Stopped},
        local,
    },
    worker::Handle,
};

/// Status of an interim response (RFC 8297) that nobody gets.
const INTERIM: u16 = 103;

/// A response that is kept.
pub(in crate::proxy) struct Held {
    header: Box<ResponseHeader>,
    body: BytesMut,
    decoder: Decoder,
    /// Whether anything of the body has come: an empty one is coded in no way, whatever its header says.
    has_begun: bool,
    kept: Kept,
}

impl Held {
    /// Takes the header of the response; an interim one that isn't sent stands in its place.
    pub(super) fn take(
        session: &mut Session,
        response: &mut ResponseHeader,
        decoder: Decoder,
    ) -> Result<Self> {
        let interim = ResponseHeader::build(INTERIM, Some(0))?;
        session.set_ignore_info_resp(true);
        Ok(Self {
            header: Box::new(std::mem::replace(response, interim)),
            body: BytesMut::new(),
            decoder,
            has_begun: false,
            kept: Kept::default(),
        })
    }

    /// Takes a piece of the body.
    pub(super) fn push(
        &mut self,
        piece: &[u8],
        body: usize,
        bodies: usize,
    ) -> Result<(), BodyFault> {
        self.has_begun |= !piece.is_empty();
        let decoded = self.decoder.push(piece).map_err(BodyFault::from)?;
        self.kept
            .grow(decoded.len(), body, bodies)
            .map_err(BodyFault::Full)?;
        self.body.extend_from_slice(&decoded);
        Ok(())
    }

    fn finish(
        mut self,
        body: usize,
        bodies: usize,
    ) -> Result<(Box<ResponseHeader>, Whole), BodyFault> {
        let rest = if self.has_begun {
            self.decoder.finish().map_err(BodyFault::from)?
        } else {
            Bytes::new()
        };
        self.kept
            .grow(rest.len(), body, bodies)
            .map_err(BodyFault::Full)?;
        self.body.extend_from_slice(&rest);
        let whole = Whole {
            bytes: self.body.freeze(),
            _kept: self.kept,
        };
        Ok((self.header, whole))
    }
}

/// A body, counted as long as it is kept.
struct Whole {
    bytes: Bytes,
    _kept: Kept,
}

/// What has become of a response whose hooks had its body.
pub(in crate::proxy) enum Rewritten {
    /// It has this body.
    Body(Bytes),
    /// A hook put another response in its place.
    Answer(Answer),
}

/// Runs the body hooks over a whole body; each runs once for a request.
pub(in crate::proxy) async fn buffered(
    session: &mut Session,
    handle: &Arc<Handle>,
    state: &mut State,
    header: &mut ResponseHeader,
    is_local: bool,
    mut body: Bytes,
) -> Result<Rewritten, Stopped> {
    let later = state.later(handle);
    if !is_wanted(later) || std::mem::replace(&mut state.body_hooks_done, true) {
        return Ok(Rewritten::Body(body));
    }
    for hook in &later.on_response_body {
        let mut exchange = Exchange {
            body: Some(Body {
                bytes: body,
                is_last: true,
            }),
            ..Exchange::response(session, handle, state, header, is_local)
        };
        let verdict = hooks::run(hook.hook, &mut exchange).await?;
        body = exchange.body.map(|body| body.bytes).unwrap_or_default();
        if let Verdict::Answer(answer) = verdict {
            return Ok(Rewritten::Answer(answer));
        }
    }
    Ok(Rewritten::Body(body))
}

/// Sends a response that was kept, now that all of it is there.
///
/// # Errors
/// When the client can't be written to.
pub(in crate::proxy) async fn release(
    session: &mut Session,
    handle: &Arc<Handle>,
    state: &mut State,
) -> Result<()> {
    let kept = state
        .rare
        .as_mut()
        .and_then(|rare| rare.response_body.take());
    let Some(ResponseBody::Held(held)) = kept else {
        return Ok(());
    };
    let script = &handle.config.script;
    let (mut header, whole) = match held.finish(script.body, script.bodies) {
        Ok(whole) => whole,
        Err(fault) => {
            let refusal = refusal(handle, state, fault);
            return local::refuse(session, handle, state, &refusal).await;
        }
    };
    let ran = buffered(
        session,
        handle,
        state,
        &mut header,
        false,
        whole.bytes.clone(),
    )
    .await;
    match ran {
        Ok(Rewritten::Body(body)) => {
            let body = compress::whole(session, handle, state, &mut header, body)?;
            header.insert_header(header::CONTENT_LENGTH, body.len())?;
            local::write(session, header, body).await
        }
        Ok(Rewritten::Answer(answer)) => local::answer(session, handle, state, answer).await,
        Err(Stopped::Failed) => {
            local::refuse(session, handle, state, &Refusal::hook_failed()).await
        }
        Err(Stopped::ClientLeft) => {
            session.set_keepalive(None);
            Ok(())
        }
    }
}
