//! The first look at a request, before anything else: its time limits, and what no edge should pass on.

use http::{Version, header};
use pingora_error::Result;
use pingora_proxy::Session;

use super::{
    Shared,
    context::{Context, Refusal},
    http2, hygiene, refused,
};

/// Sets the limits of the client's connection, and refuses what [`hygiene`] finds.
pub(super) fn look(shared: &Shared, session: &mut Session, context: &mut Context) -> Result<()> {
    let limits = &context.handle.config.limits;
    session.set_read_timeout(Some(limits.request_read_timeout));
    session.set_write_timeout(Some(limits.response_write_timeout));
    session.set_total_drain_timeout(Some(limits.request_read_timeout));
    // 0 is Pingora's "for ever"; a connection that is to be closed stays so.
    if shared.lifecycle.is_ending() {
        session.set_keepalive(None);
    } else if session.get_keepalive() == Some(0) {
        session.set_keepalive(Some(limits.keepalive_timeout.as_secs()));
    }
    if session.req_header().version == Version::HTTP_10 {
        // It knows no 1xx responses (RFC 9110 section 15.2).
        session.set_ignore_info_resp(true);
    }
    let raw = session
        .as_http1()
        .map(|http1| http1.get_headers_raw_bytes());
    let header = session.req_header();
    let checked = match &raw {
        Some(raw) => {
            let head = hygiene::Head {
                raw,
                method: &header.method,
                http_1_1: header.version >= Version::HTTP_11,
            };
            hygiene::check(head, limits)
        }
        None => hygiene::check_http2(header, limits),
    };
    let found = match checked {
        Ok(seen) => {
            context.state.seen = seen;
            if raw.is_none() {
                http2::settle(session.req_header_mut());
            }
            if let Some(most) = limits.request_body
                && seen.length
            {
                let header = session.req_header();
                let length = header.headers.get(header::CONTENT_LENGTH);
                let length = length.and_then(|value| value.to_str().ok()?.parse().ok());
                // Refused when the route is known, which may have a bound of its own.
                context.state.long_body = length.is_some_and(|length: u64| length > most);
            }
            return Ok(());
        }
        Err(found) => found,
    };
    if let Some(limit) = found.limit {
        shared.metrics.limit_hit(limit);
    }
    tracing::info!("refused status={} reason={}", found.status, found.reason);
    context.state.refusal = Some(Refusal::new(found.status, found.reason));
    // What follows on this connection may not be what it seems.
    session.set_keepalive(None);
    Err(refused(found.status))
}
