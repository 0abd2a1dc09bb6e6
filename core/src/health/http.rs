//! A check by a request: the status of the answer says it.

use std::ops::RangeInclusive;
use std::time::Duration;

use ::http::{Method, header};
use pingora_core::protocols::http::client::HttpSession;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_error::Result;
use pingora_http::RequestHeader;

use super::probe::{Failure, Prober};

/// Responses of 1xx before one that counts.
const MOST_INTERIM: usize = 16;

/// Bytes of a body that are read after the verdict, so that the server can end in peace.
const MOST_BODY: usize = 64 * 1024;

/// How long that may take.
const DRAIN: Duration = Duration::from_millis(100);

/// The name in `User-Agent`.
pub(super) const AGENT: &str = concat!("edgewright-health/", env!("CARGO_PKG_VERSION"));

pub(super) fn header(method: &Method, path: &str, host: &str) -> Result<RequestHeader, Failure> {
    let make = || {
        let mut request = RequestHeader::build(method.clone(), path.as_bytes(), None)?;
        request.insert_header(header::HOST, host)?;
        request.insert_header(header::USER_AGENT, AGENT)?;
        if method == Method::POST {
            request.insert_header(header::CONTENT_LENGTH, 0)?;
        }
        Ok(request)
    };
    make().map_err(|error: pingora_error::BError| {
        Failure::new(format!(
            "the request can't be made: {}",
            error.etype().as_str()
        ))
    })
}

/// Sends a request, and looks at the status of what comes back. Redirects aren't followed.
pub(super) async fn ask(
    prober: &Prober,
    peer: &HttpPeer,
    mut request: RequestHeader,
    well: &[RangeInclusive<u16>],
) -> Result<(), Failure> {
    let session = prober.sessions.get_http_session(peer).await;
    let (mut session, _) = session.map_err(|error| Failure::of_connection(&error))?;
    session.set_read_timeout(peer.options.read_timeout);
    session.set_write_timeout(peer.options.write_timeout);
    if session.as_http1().is_some() {
        // HTTP/2 knows no such field.
        let added = request.insert_header(header::CONNECTION, "close");
        added.map_err(|error| Failure::in_use(&error))?;
    }
    let status = exchange(&mut session, request).await;
    let status = status.map_err(|error| Failure::in_use(&error))?;
    if status < 200 {
        // There is no answer whose body could be read.
        return Err(Failure::new(format!("status {status}")));
    }
    // Its outcome says nothing.
    let _ = tokio::time::timeout(DRAIN, drain(&mut session)).await;
    if well.iter().any(|range| range.contains(&status)) {
        Ok(())
    } else {
        Err(Failure::new(format!("status {status}")))
    }
}

async fn exchange(session: &mut HttpSession, request: RequestHeader) -> Result<u16> {
    session.write_request_header(Box::new(request)).await?;
    session.finish_request_body().await?;
    for _ in 0..MOST_INTERIM {
        session.read_response_header().await?;
        let status = session
            .response_header()
            .map_or(0, |header| header.status.as_u16());
        if status >= 200 || session.as_http1().is_none() {
            return Ok(status);
        }
    }
    Ok(0)
}

async fn drain(session: &mut HttpSession) -> Result<()> {
    let mut read = 0;
    while let Some(part) = session.read_response_body().await? {
        read += part.len();
        if read > MOST_BODY {
            break;
        }
    }
    Ok(())
}
