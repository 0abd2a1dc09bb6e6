//! A check by the gRPC health protocol: `grpc.health.v1.Health/Check`
//! (<https://github.com/grpc/grpc/blob/master/doc/health-checking.md>).
//!
//! The two messages have one field each, so they are written and read here: a code generator and its library
//! would be more to keep than these lines. The HTTP/2 is Pingora's.

use std::time::Duration;

use ::http::{HeaderMap, Uri, header};
use bytes::{BufMut, Bytes, BytesMut};
use pingora_core::protocols::http::client::HttpSession;
use pingora_core::protocols::http::v2::client::Http2Session;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_error::{ErrorType, OrErr as _, Result};
use pingora_http::RequestHeader;

use super::http::AGENT;
use super::probe::{Failure, Prober};

const PATH: &str = "/grpc.health.v1.Health/Check";

/// Bytes of an answer: it has two.
const MOST_ANSWER: usize = 4096;

/// `HealthCheckResponse.ServingStatus`, by number.
const STATUSES: [&str; 4] = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];

/// Asks for the health of `service`.
pub(super) async fn ask(
    prober: &Prober,
    peer: &HttpPeer,
    service: &str,
    host: &str,
    limit: Duration,
) -> Result<(), Failure> {
    let session = prober.sessions.get_http_session(peer).await;
    let (session, _) = session.map_err(|error| Failure::of_connection(&error))?;
    let HttpSession::H2(mut session) = session else {
        return Err(Failure::new("it doesn't speak HTTP/2"));
    };
    session.read_timeout = peer.options.read_timeout;
    session.write_timeout = peer.options.write_timeout;
    let answer = exchange(&mut session, peer.is_tls(), service, host, limit).await;
    judge(&answer.map_err(|error| Failure::in_use(&error))?)
}

/// What came back.
struct Answer {
    status: u16,
    grpc_status: Option<String>,
    body: Bytes,
}

async fn exchange(
    session: &mut Http2Session,
    tls: bool,
    service: &str,
    host: &str,
    limit: Duration,
) -> Result<Answer> {
    let mut request = RequestHeader::build("POST", PATH.as_bytes(), None)?;
    // With the scheme as it is: Pingora would write https for all.
    let uri = Uri::builder()
        .scheme(if tls { "https" } else { "http" })
        .authority(host)
        .path_and_query(PATH)
        .build()
        .or_err(ErrorType::InternalError, "making the request")?;
    request.set_uri(uri);
    request.insert_header(header::CONTENT_TYPE, "application/grpc")?;
    request.insert_header(header::TE, "trailers")?;
    request.insert_header(header::USER_AGENT, AGENT)?;
    request.insert_header("grpc-timeout", format!("{}m", limit.as_millis()))?;
    session.write_request_header(Box::new(request), false)?;
    session.write_request_body(message(service), true).await?;
    session.read_response_header().await?;
    let header = session.response_header();
    let status = header.map_or(0, |header| header.status.as_u16());
    // An answer that is only an error has everything in its header.
    let mut grpc_status = header.and_then(|header| grpc_status(&header.headers));
    let mut body = BytesMut::new();
    while let Some(part) = session.read_response_body().await? {
        body.extend_from_slice(&part[..part.len().min(MOST_ANSWER - body.len())]);
        if body.len() == MOST_ANSWER {
            break;
        }
    }
    if grpc_status.is_none() && body.len() < MOST_ANSWER {
        let trailers = session.read_trailers().await?;
        grpc_status = trailers.as_ref().and_then(self::grpc_status);
    }
    Ok(Answer {
        status,
        grpc_status,
        body: body.freeze(),
    })
}

fn grpc_status(fields: &HeaderMap) -> Option<String> {
    let value = fields.get("grpc-status")?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn judge(answer: &Answer) -> Result<(), Failure> {
    if answer.status != 200 {
        return Err(Failure::new(format!("status {}", answer.status)));
    }
    match answer.grpc_status.as_deref() {
        Some("0") => {}
        // What servers say of a service that they don't know, and of the protocol itself.
        Some("5") => return Err(Failure::new("grpc-status 5: the service is unknown")),
        Some("12") => return Err(Failure::new("grpc-status 12: it has no health service")),
        Some(other) => return Err(Failure::new(format!("grpc-status {other}"))),
        None => return Err(Failure::new("an answer without grpc-status")),
    }
    match serving_status(&answer.body) {
        Some(1) => Ok(()),
        Some(other) => {
            let name = usize::try_from(other)
                .ok()
                .and_then(|index| STATUSES.get(index));
            Err(Failure::new(match name {
                Some(name) => (*name).to_owned(),
                None => format!("serving status {other}"),
            }))
        }
        None => Err(Failure::new("a malformed answer")),
    }
}

/// `HealthCheckRequest { string service = 1 }` as a gRPC message: a byte for "not compressed", the length, the
/// field.
fn message(service: &str) -> Bytes {
    let mut field = BytesMut::new();
    if !service.is_empty() {
        field.put_u8(1 << 3 | 2);
        put_varint(&mut field, service.len() as u64);
        field.put_slice(service.as_bytes());
    }
    let mut message = BytesMut::new();
    message.put_u8(0);
    // A service's name has at most 1024 bytes.
    message.put_u32(u32::try_from(field.len()).unwrap_or(u32::MAX));
    message.put(field);
    message.freeze()
}

fn put_varint(into: &mut BytesMut, mut value: u64) {
    while value >= 0x80 {
        into.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    into.put_u8(value as u8);
}

/// The `status` of `HealthCheckResponse { ServingStatus status = 1 }`; unknown fields are passed over, as the
/// encoding wants it.
fn serving_status(body: &[u8]) -> Option<u64> {
    let (prefix, rest) = body.split_at_checked(5)?;
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]);
    if prefix[0] != 0 {
        return None;
    }
    let mut rest = rest.get(..usize::try_from(length).ok()?)?;
    // The default of a field that isn't there.
    let mut status = 0;
    while !rest.is_empty() {
        let tag = take_varint(&mut rest)?;
        let skipped = match tag & 7 {
            0 => {
                let value = take_varint(&mut rest)?;
                if tag >> 3 == 1 {
                    status = value;
                }
                0
            }
            1 => 8,
            2 => usize::try_from(take_varint(&mut rest)?).ok()?,
            5 => 4,
            _ => return None,
        };
        rest = rest.get(skipped..)?;
    }
    Some(status)
}

fn take_varint(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn framed(message: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend((message.len() as u32).to_be_bytes());
        bytes.extend(message);
        bytes
    }

    #[test]
    fn messages_are_as_the_encoding_wants_them() {
        assert_eq!(&message("")[..], [0, 0, 0, 0, 0]);
        assert_eq!(&message("ab")[..], [0, 0, 0, 0, 4, 0x0a, 2, b'a', b'b']);
        let long = message(&"x".repeat(300));
        assert_eq!(&long[..8], [0, 0, 0, 1, 47, 0x0a, 0xac, 2]);
    }

    #[test]
    fn answers_are_read() {
        for (body, expected) in [
            (framed(&[8, 1]), Some(1)),
            (framed(&[8, 2]), Some(2)),
            (framed(&[]), Some(0)),
            // Other fields around it: a varint, a text, fixed ones.
            (
                framed(&[16, 200, 1, 8, 1, 26, 2, b'h', b'i', 37, 1, 2, 3, 4]),
                Some(1),
            ),
            (framed(&[33, 1, 2, 3, 4, 5, 6, 7, 8, 8, 1]), Some(1)),
            // The last one counts.
            (framed(&[8, 1, 8, 3]), Some(3)),
            (vec![], None),
            (vec![0, 0, 0, 0], None),
            (vec![0, 0, 0, 0, 2, 8], None),
            (vec![1, 0, 0, 0, 2, 8, 1], None),
            (framed(&[8]), None),
            (framed(&[8, 0x80]), None),
            (framed(&[26, 200, 1]), None),
            (framed(&[11]), None),
            (framed(&[0x80; 11]), None),
        ] {
            assert_eq!(serving_status(&body), expected, "{body:?}");
        }
    }

    #[test]
    fn only_serving_is_well() {
        let answer = |status, grpc: Option<&str>, body: Vec<u8>| {
            let answer = Answer {
                status,
                grpc_status: grpc.map(str::to_owned),
                body: body.into(),
            };
            judge(&answer).map_err(|failure| failure.reason)
        };
        assert_eq!(answer(200, Some("0"), framed(&[8, 1])), Ok(()));
        for (status, grpc, body, expected) in [
            (200, Some("0"), framed(&[8, 2]), "NOT_SERVING"),
            (200, Some("0"), framed(&[]), "UNKNOWN"),
            (200, Some("0"), framed(&[8, 99]), "serving status 99"),
            (200, Some("0"), vec![], "a malformed answer"),
            (
                200,
                Some("5"),
                vec![],
                "grpc-status 5: the service is unknown",
            ),
            (
                200,
                Some("12"),
                vec![],
                "grpc-status 12: it has no health service",
            ),
            (200, Some("14"), vec![], "grpc-status 14"),
            (200, None, framed(&[8, 1]), "an answer without grpc-status"),
            (503, Some("0"), framed(&[8, 1]), "status 503"),
        ] {
            assert_eq!(answer(status, grpc, body), Err(expected.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(body in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = serving_status(&body);
            let _ = serving_status(&framed(&body));
        }

        #[test]
        fn a_message_says_what_it_was_given(service in "[a-zA-Z.]{1,400}") {
            let message = message(&service);
            let mut rest = &message[5..];
            prop_assert_eq!(take_varint(&mut rest), Some(10));
            prop_assert_eq!(take_varint(&mut rest), Some(service.len() as u64));
            prop_assert_eq!(rest, service.as_bytes());
        }
    }
}
