//! Responses that the proxy makes itself.

use std::{sync::Arc, time::SystemTime};

use bytes::Bytes;
use edgewright_script::{answer::Answer, engine::Verdict};
use http::{HeaderValue, Method, StatusCode, Version, header};
use pingora_error::{Error, ErrorType, Result};
use pingora_http::ResponseHeader;
use pingora_proxy::Session;

use super::{
    bodies::{self, Rewritten},
    compress,
    context::{Refusal, State},
    filters, grpc,
    hooks::{self, Stopped},
};
use crate::worker::Handle;

/// Sends an answer of the program, after the `on_response` hooks.
pub(super) async fn answer(
    session: &mut Session,
    handle: &Arc<Handle>,
    state: &mut State,
    answer: Answer,
) -> Result<()> {
    state.is_local = true;
    let (header, body) = finish(session, handle, state, answer).await?;
    write(session, header, body).await
}

/// Sends the answer to a request that can't be served, after the `on_response` hooks, unless a
/// hook has failed.
pub(super) async fn refuse(
    session: &mut Session,
    handle: &Arc<Handle>,
    state: &mut State,
    refusal: &Refusal,
) -> Result<()> {
    let text = format!("{} {}\n", refusal.status, refusal.reason);
    let made = Answer::new(i64::from(refusal.status), text).unwrap_or_else(|_| Answer {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        headers: Vec::new(),
        body: Bytes::new(),
    });
    if refusal.status >= 500 {
        let reason = &refusal.reason;
        let failure = &mut state.rare().failure;
        failure.get_or_insert_with(|| reason.clone().into_owned());
    }
    if refusal.hook_failed {
        state.response_hooks_done = true;
        state.body_hooks_done = true;
    }
    state.is_local = true;
    let (mut header, mut body) = finish(session, handle, state, made).await?;
    if grpc::is_call(session.req_header()) {
        grpc::say(&mut header, state, refusal)?;
        if session.req_header().version != Version::HTTP_2 {
            header.insert_header(header::CONTENT_LENGTH, 0)?;
        }
        body = Bytes::new();
    }
    write(session, header, body).await
}

/// Runs hooks and header filters over an answer. Each hook runs once for a request.
async fn finish(
    session: &mut Session,
    handle: &Arc<Handle>,
    state: &mut State,
    answer: Answer,
) -> Result<(Box<ResponseHeader>, Bytes)> {
    let mut header = header_of(&answer)?;
    let mut body = answer.body;
    let mut failed = false;
    match hooks::on_response(session, handle, state, &mut header, true).await {
        Ok(Verdict::Continue) => {}
        Ok(Verdict::Answer(other)) => {
            header = header_of(&other)?;
            body = other.body;
        }
        Err(Stopped::ClientLeft) => return Err(Error::new_down(ErrorType::ConnectionClosed)),
        Err(Stopped::Failed) => failed = true,
    }
    if !failed && !bodiless(header.status) {
        let ran = bodies::buffered(session, handle, state, &mut header, true, body.clone()).await;
        match ran {
            Ok(Rewritten::Body(rewritten)) => body = rewritten,
            Ok(Rewritten::Answer(other)) => {
                header = header_of(&other)?;
                body = other.body;
            }
            Err(Stopped::ClientLeft) => return Err(Error::new_down(ErrorType::ConnectionClosed)),
            Err(Stopped::Failed) => failed = true,
        }
    }
    if failed {
        let refusal = Refusal::hook_failed();
        header = Box::new(ResponseHeader::build(refusal.status, Some(4))?);
        body = Bytes::from(format!("{} {}\n", refusal.status, refusal.reason));
    }
    filters::add_response_fields(&mut header, state);
    if let Some(route) = state.route {
        filters::change_response(&mut header, handle.route(route), state);
    }
    let date = httpdate::fmt_http_date(SystemTime::now());
    if let Ok(date) = HeaderValue::try_from(date) {
        header.insert_header(header::DATE, date)?;
    }
    body = compress::whole(session, handle, state, &mut header, body)?;
    if !bodiless(header.status) {
        header.insert_header(header::CONTENT_LENGTH, HeaderValue::from(body.len()))?;
    }
    Ok((header, body))
}

fn header_of(answer: &Answer) -> Result<Box<ResponseHeader>> {
    let mut header = ResponseHeader::build(answer.status, Some(answer.headers.len() + 3))?;
    for (name, value) in &answer.headers {
        header.append_header(name.clone(), value.clone())?;
    }
    Ok(Box::new(header))
}

/// RFC 9110 sections 15.3.5 and 15.4.5.
fn bodiless(status: StatusCode) -> bool {
    matches!(status.as_u16(), 204 | 304)
}

/// Sends a response; `header` has the length of the body.
pub(super) async fn write(
    session: &mut Session,
    header: Box<ResponseHeader>,
    body: Bytes,
) -> Result<()> {
    let silent = session.req_header().method == Method::HEAD || bodiless(header.status);
    let end = silent || body.is_empty();
    session.write_response_header(header, end).await?;
    if end {
        return session.write_response_body(None, true).await;
    }
    session.write_response_body(Some(body), true).await
}
