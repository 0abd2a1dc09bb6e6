//! One request and its answer on one connection.

use bytes::BytesMut;
use edgewright_script::{
    engine::Arriving,
    outbound::{CallFailureKind, Incoming, fields_size},
};
use http::{
    HeaderMap, HeaderName, StatusCode,
    header::{CONNECTION, CONTENT_LENGTH, TE, TRAILER, TRANSFER_ENCODING, UPGRADE},
};
use memchr::memmem;
use pingora_core::protocols::http::v1::client::HttpSession;
use pingora_error::{Error, ErrorType};
use pingora_http::RequestHeader;

use super::failure::{Failure, Progress};

/// Interim responses (1xx) before the answer.
const MOST_INTERIM: usize = 16;

/// Room that is made for a body in advance; a server's word about its length is not enough for
/// more.
const FIRST_ROOM: usize = 64 * 1024;

/// Bytes of a body that is thrown away which are read to use the connection again.
const MOST_DISCARDED: usize = 16 * 1024 * 1024;

/// Why there is no answer, and what can have come of the request.
pub(super) enum Fault {
    /// Its header was not sent whole: nobody can have acted upon it.
    Unsent(Failure),
    /// It was sent, and the connection ended before the header of an answer was whole.
    Unanswered(Failure),
    /// Trying again would not help, or not be right.
    Final(Failure),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Unsent(failure) | Fault::Unanswered(failure) | Fault::Final(failure) => failure,
        }
    }
}

/// An answer.
pub(super) struct Answer {
    pub(super) incoming: Incoming,
    /// Both messages were whole and their ends certain, so the connection can be used again if its
    /// server wants that.
    pub(super) clean: bool,
}

/// The header of an answer, whose body comes next.
struct Head {
    status: StatusCode,
    headers: HeaderMap,
    /// As in [`Answer`], so far.
    clean: bool,
}

/// Sends a request and reads its answer, a body of `most_body` bytes at most.
pub(super) async fn exchange(
    session: &mut HttpSession,
    header: Box<RequestHeader>,
    body: &[u8],
    most_body: usize,
    progress: &mut Progress,
) -> Result<Answer, Fault> {
    let head = send(session, header, body, progress).await?;
    let mut headers = head.headers;
    remove_fields_of_the_connection(&mut headers);
    progress.now("reading the answer of ");
    let mut arriving = Arriving::default();
    if !arriving.add(fields_size(&headers)) {
        return Err(Fault::Final(no_room()));
    }
    let body = read_body(session, &headers, most_body, &mut arriving, progress).await;
    Ok(Answer {
        incoming: Incoming {
            status: head.status,
            headers,
            body: body.map_err(Fault::Final)?.freeze(),
            arriving,
        },
        clean: head.clean,
    })
}

/// Sends a request, and reads its answer only to have it read. Gives whether the connection can be used
/// again, if its server wants that. The rest of a very long body is not waited for.
pub(super) async fn discard(
    session: &mut HttpSession,
    header: Box<RequestHeader>,
    body: &[u8],
    progress: &mut Progress,
) -> Result<bool, Fault> {
    let head = send(session, header, body, progress).await?;
    progress.now("reading the answer of ");
    let mut read = 0;
    while !session.is_body_done() {
        match session.read_body_ref().await {
            Ok(None) => break,
            Ok(Some(part)) => read += part.len(),
            Err(error) => return Err(Fault::Final(Failure::in_use(&error, progress))),
        }
        if read > MOST_DISCARDED {
            return Ok(false);
        }
    }
    Ok(head.clean)
}

/// Sends a request, and reads the header of its answer.
async fn send(
    session: &mut HttpSession,
    header: Box<RequestHeader>,
    body: &[u8],
    progress: &mut Progress,
) -> Result<Head, Fault> {
    progress.now("sending the request to ");
    let written = session.write_request_header(header).await;
    written.map_err(|error| Fault::Unsent(Failure::in_use(&error, progress)))?;
    let sent = write_body(session, body).await;
    // A server may answer before it has read everything, and close. Such an answer counts.
    let unsent = sent.err().map(|error| Failure::in_use(&error, progress));
    let sent = unsent.is_none();
    progress.now("waiting for the answer of ");
    match (read_header(session, progress).await, unsent) {
        (Ok(()), _) => {}
        (Err(Fault::Unanswered(_)), Some(failure)) => return Err(Fault::Unanswered(failure)),
        (Err(fault), _) => return Err(fault),
    }
    let (status, headers) = final_header(session, progress)?;
    progress.answered(status.as_u16());
    let clean = sent && !has_two_framings(session, &headers);
    Ok(Head {
        status,
        headers,
        clean,
    })
}

async fn write_body(session: &mut HttpSession, body: &[u8]) -> pingora_error::Result<()> {
    if !body.is_empty() {
        session.write_body(body).await?;
    }
    session.finish_body().await?;
    Ok(())
}

/// Reads on until the header of the final response is there.
async fn read_header(session: &mut HttpSession, progress: &Progress) -> Result<(), Fault> {
    for interim in 0..=MOST_INTERIM {
        session.read_response().await.map_err(|error| {
            let failure = Failure::in_use(&error, progress);
            if interim == 0 && is_end(&error) {
                Fault::Unanswered(failure)
            } else {
                Fault::Final(failure)
            }
        })?;
        match session.get_status() {
            Some(StatusCode::SWITCHING_PROTOCOLS) => {
                return Err(broken("it switches protocols, which nobody asked for"));
            }
            Some(status) if status.is_informational() => {}
            _ => return Ok(()),
        }
    }
    Err(broken("it sends one interim response after the other"))
}

/// The connection ended, one way or the other.
fn is_end(error: &Error) -> bool {
    matches!(
        error.etype(),
        ErrorType::ConnectionClosed | ErrorType::ReadError
    )
}

fn broken(cause: &str) -> Fault {
    Fault::Final(Failure::new(CallFailureKind::Broken, cause))
}

fn final_header(
    session: &HttpSession,
    progress: &Progress,
) -> Result<(StatusCode, HeaderMap), Fault> {
    let Some(header) = session.resp_header() else {
        return Err(broken("there is no answer"));
    };
    let codings = header.headers.get_all(TRANSFER_ENCODING);
    let mut codings = codings.iter();
    // Whatever else there is can't be undone here (RFC 9112 section 6.1).
    let readable = match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => coding.as_bytes().eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => false,
    };
    if !readable {
        let cause = format!("a transfer coding other than chunked while {progress}");
        return Err(broken(&cause));
    }
    Ok((header.status, header.headers.clone()))
}

/// It is chunked and has a length too, which Pingora leaves out: somebody on the way may have
/// counted in another way, and what comes next on the connection can't be trusted (RFC 9112
/// section 6.3).
fn has_two_framings(session: &HttpSession, headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING) && {
        let received = session.get_headers_raw_bytes().to_ascii_lowercase();
        memmem::find(&received, b"\ncontent-length").is_some()
    }
}

/// What says nothing about the answer itself (RFC 9110 section 7.6.1).
fn remove_fields_of_the_connection(headers: &mut HeaderMap) {
    let lines = headers.get_all(CONNECTION);
    let nominated: Vec<HeaderName> = lines
        .iter()
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .filter(|name| *name != CONTENT_LENGTH)
        .collect();
    for name in nominated {
        headers.remove(name);
    }
    for name in [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(name);
    }
    headers.remove("keep-alive");
    headers.remove("proxy-connection");
}

/// The whole body.
///
/// # Errors
/// When it is longer than `most_body`, as soon as that is known, or when it doesn't end where its
/// framing says.
async fn read_body(
    session: &mut HttpSession,
    headers: &HeaderMap,
    most_body: usize,
    arriving: &mut Arriving,
    progress: &Progress,
) -> Result<BytesMut, Failure> {
    // What answers HEAD, 204 and 304 have none, whatever their length says.
    if session.is_body_done() {
        return Ok(BytesMut::new());
    }
    let too_large = || {
        let cause = format!("the answer's body is larger than {most_body} bytes");
        Failure::new(CallFailureKind::TooLarge, cause)
    };
    let length = headers.get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > most_body as u64) {
        return Err(too_large());
    }
    let room = length.map_or(0, |length| length.min(FIRST_ROOM as u64) as usize);
    let mut body = BytesMut::with_capacity(room);
    loop {
        match session.read_body_ref().await {
            Ok(None) => return Ok(body),
            Ok(Some(part)) if part.len() > most_body - body.len() => return Err(too_large()),
            Ok(Some(part)) if !arriving.add(part.len()) => return Err(no_room()),
            Ok(Some(part)) => body.extend_from_slice(part),
            Err(error) => return Err(Failure::in_use(&error, progress)),
        }
    }
}

fn no_room() -> Failure {
    let cause =
        "all waiting hooks and their answers hold more than `[script] waiting_memory` allows";
    Failure::new(CallFailureKind::TooLarge, cause)
}
