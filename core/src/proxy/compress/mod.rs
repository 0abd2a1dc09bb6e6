//! `.compress`: responses of a route that are compressed for clients that want it.

pub(super) mod accepted;
mod encoder;

use bytes::Bytes;
use edgewright_script::program::{Compress, ContentCoding};
use http::{HeaderValue, Version, header};
use pingora_error::{Error, ErrorType, Result};
use pingora_http::ResponseHeader;
use pingora_proxy::Session;

use super::{bodies, context::State};
use crate::generation::Generation;
use encoder::Encoder;

/// Codes the body of the upstream's response.
pub(super) struct Compressing(Option<Encoder>);

impl std::fmt::Debug for Compressing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Compressing")
    }
}

fn broken(error: std::io::Error) -> Box<Error> {
    Error::because(ErrorType::InternalError, "compressing", error)
}

/// Prepares for the body of the upstream's response, whose header is as it is sent otherwise.
pub(super) fn prepare(
    session: &Session,
    generation: &Generation,
    state: &mut State,
    response: &mut ResponseHeader,
) -> Result<()> {
    if compress_of(generation, state).is_none() {
        return Ok(());
    }
    let length = response.headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    let Some(coding) = chosen(session, generation, state, response, length) else {
        return Ok(());
    };
    // Nothing tells the client where a body without a length ends but chunks, or the connection's end.
    if session.req_header().version == Version::HTTP_10 || !bodies::has_body(session, response) {
        return Ok(());
    }
    mark(response, coding)?;
    response.remove_header(&header::CONTENT_LENGTH);
    response.insert_header(header::TRANSFER_ENCODING, "chunked")?;
    let encoder = Encoder::new(coding).map_err(broken)?;
    state.rare().compressing = Some(Compressing(Some(encoder)));
    Ok(())
}

/// Codes a piece of the body.
pub(super) fn pass(state: &mut State, body: &mut Option<Bytes>, end: bool) -> Result<()> {
    let compressing = state
        .rare
        .as_mut()
        .and_then(|rare| rare.compressing.as_mut());
    let Some(Compressing(encoder)) = compressing else {
        return Ok(());
    };
    let piece = body.take().unwrap_or_default();
    let coded = match encoder {
        Some(_) if end => {
            let encoder = encoder.take();
            encoder.map_or_else(|| Ok(Bytes::new()), |encoder| encoder.finish(&piece))
        }
        Some(encoder) if !piece.is_empty() => encoder.push(&piece),
        _ => Ok(Bytes::new()),
    };
    *body = Some(coded.map_err(broken)?).filter(|coded| !coded.is_empty());
    Ok(())
}

/// Codes a body that is at hand as a whole, and marks its header.
pub(super) fn whole(
    session: &Session,
    generation: &Generation,
    state: &State,
    response: &mut ResponseHeader,
    body: Bytes,
) -> Result<Bytes> {
    let length = Some(body.len() as u64);
    let Some(coding) = chosen(session, generation, state, response, length) else {
        return Ok(body);
    };
    if session.req_header().version == Version::HTTP_10 {
        return Ok(body);
    }
    mark(response, coding)?;
    Encoder::new(coding)
        .and_then(|encoder| encoder.finish(&body))
        .map_err(broken)
}

fn compress_of<'g>(generation: &'g Generation, state: &State) -> Option<&'g Compress> {
    generation.route(state.route?).compress.as_deref()
}

/// The coding of a response, whose body has this length when it is known; `None` when it stays as it is. Says to caches that it depends on the request.
fn chosen(
    session: &Session,
    generation: &Generation,
    state: &State,
    response: &mut ResponseHeader,
    length: Option<u64>,
) -> Option<ContentCoding> {
    let compress = compress_of(generation, state)?;
    if !fits(compress, response) {
        return None;
    }
    add_vary(response);
    if length.is_some_and(|length| length < compress.min.max(1)) {
        return None;
    }
    let headers = &session.req_header().headers;
    // A hook that has the body asked the upstream for no coding; the client's wish is kept.
    let wished = headers.get_all(header::ACCEPT_ENCODING).into_iter();
    let wished = wished.filter_map(|line| line.to_str().ok());
    accepted::best(wished, &compress.codings)
}

/// Whether a response may be compressed at all.
fn fits(compress: &Compress, response: &ResponseHeader) -> bool {
    let headers = &response.headers;
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let as_it_is = headers
        .get_all(header::CACHE_CONTROL)
        .into_iter()
        .any(|line| {
            let line = line.to_str().unwrap_or_default();
            let mut words = line.split(',').map(str::trim);
            words.any(|word| word.eq_ignore_ascii_case("no-transform"))
        });
    !as_it_is
        && !matches!(response.status.as_u16(), 100..200 | 204 | 206 | 304)
        && !headers.contains_key(header::CONTENT_ENCODING)
        && !headers.contains_key(header::CONTENT_RANGE)
        && text(header::CONTENT_TYPE).is_some_and(|given| compress.takes(given))
}

fn add_vary(response: &mut ResponseHeader) {
    let known = response
        .headers
        .get_all(header::VARY)
        .into_iter()
        .any(|line| {
            let line = line.to_str().unwrap_or_default();
            let mut names = line.split(',').map(str::trim);
            names.any(|name| name == "*" || name.eq_ignore_ascii_case("accept-encoding"))
        });
    if !known {
        let _ = response.append_header(header::VARY, "accept-encoding");
    }
}

/// Says what the body will be.
fn mark(response: &mut ResponseHeader, coding: ContentCoding) -> Result<()> {
    response.insert_header(header::CONTENT_ENCODING, coding.name())?;
    response.remove_header(&header::ACCEPT_RANGES);
    bodies::weaken_tag(response);
    Ok(())
}
