//! One connection: one request, one answer.

use super::endpoints::{self, App};
use bytes::{Buf, BytesMut};
use http::{Response, StatusCode};
use pingora_core::protocols::http::v1::server::HttpSession;
use pingora_core::protocols::l4::stream::Stream;
use pingora_http::ResponseHeader;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

/// How long, and for how many bytes, a client may go on sending what nobody wants. Closing while
/// its bytes arrive would reset the connection and could destroy the answer on its way.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: u64 = 1024 * 1024;

/// Serves `client` and closes it.
pub(super) async fn serve(mut client: TcpStream, app: &App) {
    // The header and the body of an answer are two writes, which must not wait for each other.
    let _ = client.set_nodelay(true);
    let deadline = Instant::now() + app.settings.read_timeout;
    let limit = app.settings.request_header;
    match timeout_at(deadline, read_head(&mut client, limit)).await {
        Ok(Ok(Head::Complete(head))) => answer(client, &head, app, deadline).await,
        Ok(Ok(Head::TooLarge)) => {
            refuse(client, "431 Request Header Fields Too Large", app).await;
        }
        Ok(Ok(Head::Gone)) => {}
        Ok(Err(error)) => tracing::debug!("admin: reading a request: {error}"),
        Err(_) => refuse(client, "408 Request Timeout", app).await,
    }
}

enum Head {
    /// All of the header, perhaps with the start of a body.
    Complete(BytesMut),
    TooLarge,
    /// The client closed the connection.
    Gone,
}

/// Reads up to the end of the header. Pingora's own reading takes up to 1 MiB with a time limit for
/// each piece but none for the whole, so it only gets to see a complete header.
async fn read_head(client: &mut TcpStream, limit: usize) -> io::Result<Head> {
    let mut head = BytesMut::with_capacity(1024);
    loop {
        let searched = head.len().saturating_sub(3);
        if client.read_buf(&mut head).await? == 0 {
            return Ok(Head::Gone);
        }
        if searched == 0 {
            // RFC 9112 section 2.2: empty lines before the request line are ignored.
            while head.first().is_some_and(|byte| b"\r\n".contains(byte)) {
                head.advance(1);
            }
        }
        match memchr::memmem::find(&head[searched..], b"\r\n\r\n") {
            Some(end) if searched + end <= limit => return Ok(Head::Complete(head)),
            None if head.len() <= limit => {}
            _ => return Ok(Head::TooLarge),
        }
    }
}

/// Says no to a client whose request can't be parsed yet.
async fn refuse(mut client: TcpStream, status: &str, app: &App) {
    let text = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    let write = async {
        client.write_all(text.as_bytes()).await?;
        client.shutdown().await
    };
    if let Ok(Ok(())) = timeout(app.settings.write_timeout, write).await {
        linger(&mut client).await;
    }
}

async fn answer(client: TcpStream, head: &[u8], app: &App, deadline: Instant) {
    let mut stream = Stream::from(client);
    stream.rewind(head);
    let mut session = HttpSession::new(Box::new(stream));
    let (response, has_body, _turn) = match timeout_at(deadline, session.read_request()).await {
        Ok(Ok(Some(_))) => {
            let has_body = !session.is_body_empty();
            let answer = endpoints::answer(app, session.req_header(), has_body).await;
            (answer.response, has_body, answer.turn)
        }
        Ok(Ok(None)) | Err(_) => return,
        Ok(Err(error)) => {
            tracing::debug!("admin: bad request: {error}");
            let bad = endpoints::text(StatusCode::BAD_REQUEST, "bad request\n");
            (bad, true, None)
        }
    };
    // After reading, since reading a request turns keep-alive on again.
    session.set_server_keepalive(None);
    match timeout(app.settings.write_timeout, write(&mut session, response)).await {
        Ok(Ok(())) if has_body => linger(&mut session.into_inner()).await,
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!("admin: writing an answer: {error}"),
        Err(_) => tracing::debug!("admin: a client did not read its answer in time"),
    }
}

async fn write(session: &mut HttpSession, response: Response<Vec<u8>>) -> pingora_core::Result<()> {
    let (mut parts, body) = response.into_parts();
    parts
        .headers
        .insert(http::header::CONTENT_LENGTH, body.len().into());
    let header = ResponseHeader::from(parts);
    session.write_response_header(Box::new(header)).await?;
    // The session knows when a response has no body to send (HEAD).
    session.write_body(&body).await?;
    session.finish_body().await?;
    session.shutdown().await;
    Ok(())
}

/// Reads and drops what the client still sends, up to a bound.
async fn linger(client: &mut (impl AsyncRead + Unpin)) {
    let rest = &mut client.take(LINGER_BYTES);
    // However it ends, the connection is closed now.
    let _ = timeout(LINGER, tokio::io::copy(rest, &mut tokio::io::sink())).await;
}
