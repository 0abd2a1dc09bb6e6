//! Makes Pingora send a body that was read before the upstream was chosen.
//!
//! Pingora has no way for that (pingora #575, #349): what was read is gone, and the upstream waits for
//! ever. It does send on what stands in its buffer for sending again, through the filter of the
//! request's body; and the filter may put another body in its place. So all that is needed is that
//! the buffer holds something when the body has been read. It holds 64 KiB and takes nothing more
//! once it has overflowed, which only happens to a longer body without a `Content-Length`.

use std::mem;

use bytes::BytesMut;
use http::header;
use pingora_core::protocols::http::{ServerSession, v1::server::HttpSession};
use pingora_error::{Error, ErrorType, Result};
use pingora_proxy::Session;

/// A request whose body of one byte is still unread.
const REQUEST: &[u8] = b"POST / HTTP/1.1\r\nHost: placeholder\r\nContent-Length: 1\r\n\r\n.";

/// Gives the session a body that is still to be read, in place of the one that was: a new session over
/// the same connection, with the same header. The connection is closed after the response, since a next
/// request that came right behind the body went with the old session.
///
/// # Errors
/// When the client speaks something else than HTTP/1.
pub(super) async fn renew(session: &mut Session) -> Result<()> {
    if session.as_http1().is_none() {
        return Error::e_explain(
            ErrorType::InternalError,
            "only an HTTP/1 body without a length can be kept",
        );
    }
    let (nowhere, _) = tokio::io::duplex(1);
    let placeholder = ServerSession::new_http1(Box::new(nowhere));
    let old = match mem::replace(&mut *session.downstream_session, placeholder) {
        ServerSession::H1(old) => old,
        other => {
            *session.downstream_session = other;
            return Ok(());
        }
    };
    let request = old.req_header().clone();
    let timeouts = (
        old.get_read_timeout(),
        old.get_write_timeout(),
        old.get_total_drain_timeout(),
    );
    let mut new = HttpSession::new(old.into_inner());
    new.set_pipelined_prefix(BytesMut::from(REQUEST));
    new.read_request().await?;
    // From here on the framing of its own header counts, whatever the header becomes.
    if new.is_body_done() {
        return Error::e_explain(ErrorType::InternalError, "the body can't be sent on");
    }
    *new.req_header_mut() = request;
    new.req_header_mut()
        .remove_header(&header::TRANSFER_ENCODING);
    new.set_read_timeout(timeouts.0);
    new.set_write_timeout(timeouts.1);
    new.set_total_drain_timeout(timeouts.2);
    new.set_server_keepalive(None);
    *session.downstream_session = ServerSession::H1(new);
    Ok(())
}
