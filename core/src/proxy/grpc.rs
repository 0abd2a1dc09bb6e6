//! What is particular about calls of gRPC: how long they may take, and how they are told of a failure.
//!
//! <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>

use std::time::{Duration, Instant};

use http::{HeaderValue, StatusCode, header};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use pingora_core::upstreams::peer::HttpPeer;
use pingora_error::Result;
use pingora_http::{RequestHeader, ResponseHeader};

use super::{
    context::{Refusal, State},
    deadline::Late,
    upstream,
};

/// What can't stand in a `grpc-message` as it is: all but the printable characters of ASCII, and the percent
/// sign.
const MESSAGE: &AsciiSet = &CONTROLS.add(b'%');

/// Whether a request is a call of gRPC.
pub(super) fn is_call(request: &RequestHeader) -> bool {
    let kind = request.headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| {
        let rest = kind.as_bytes().strip_prefix(b"application/grpc");
        // `application/grpc-web` is HTTP like any other.
        rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
    })
}

/// Bounds the waiting for a call's upstream by the time that the client gives it. The time goes on over
/// attempts, and between two messages no more is waited either: the whole call is to be done by then.
///
/// # Errors
/// When it is over already.
pub(super) fn bound(request: &RequestHeader, state: &mut State, peer: &mut HttpPeer) -> Result<()> {
    let Some(timeout) = timeout(request) else {
        return Ok(());
    };
    let Some(deadline) = state.started.checked_add(timeout) else {
        return Ok(());
    };
    state.rare().call_deadline = Some(deadline);
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(upstream::too_late(state, Late::Request));
    }
    let options = &mut peer.options;
    for limit in [
        &mut options.connection_timeout,
        &mut options.total_connection_timeout,
        &mut options.read_timeout,
    ] {
        *limit = Some(limit.map_or(left, |known| known.min(left)));
    }
    Ok(())
}

/// `grpc-timeout`: at most eight digits and a unit.
fn timeout(request: &RequestHeader) -> Option<Duration> {
    let value = request.headers.get("grpc-timeout")?;
    if !is_call(request) {
        return None;
    }
    let (unit, digits) = value.as_bytes().split_last()?;
    let is_number = matches!(digits.len(), 1..=8) && digits.iter().all(u8::is_ascii_digit);
    let number: u64 = std::str::from_utf8(digits)
        .ok()
        .filter(|_| is_number)?
        .parse()
        .ok()?;
    Some(match unit {
        b'H' => Duration::from_secs(number * 3600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

/// Makes of the answer to a request that can't be served what a client of gRPC takes for one: the status in
/// fields of a response without a body ("Trailers-Only"). Other fields stay.
///
/// # Errors
/// None but a bug: all values are valid.
pub(super) fn say(response: &mut ResponseHeader, state: &State, refusal: &Refusal) -> Result<()> {
    let is_over = state.rare.as_ref().is_some_and(|rare| {
        let deadline = rare.call_deadline;
        deadline.is_some_and(|deadline| deadline <= Instant::now())
    });
    let status = match refusal.status {
        504 if is_over => 4,
        status => status_of(status),
    };
    let message = utf8_percent_encode(&refusal.reason, MESSAGE).to_string();
    response.set_status(StatusCode::OK)?;
    response.remove_header(&header::CONTENT_LENGTH);
    let kind = HeaderValue::from_static("application/grpc");
    response.insert_header(header::CONTENT_TYPE, kind)?;
    response.insert_header("grpc-status", status)?;
    response.insert_header("grpc-message", message)
}

/// The status of gRPC for one of HTTP: what clients make of it by themselves
/// (`doc/http-grpc-status-mapping.md`), and for those that it doesn't tell apart what fits.
fn status_of(status: u16) -> u16 {
    match status {
        400 => 13,             // INTERNAL
        401 => 16,             // UNAUTHENTICATED
        403 => 7,              // PERMISSION_DENIED
        404 => 12,             // UNIMPLEMENTED
        413 | 431 => 8,        // RESOURCE_EXHAUSTED
        429 | 502..=504 => 14, // UNAVAILABLE
        _ => 2,                // UNKNOWN
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn request(kind: &str, time: &str) -> RequestHeader {
        let mut request = RequestHeader::build("POST", b"/a.B/C", None).unwrap();
        request.insert_header(header::CONTENT_TYPE, kind).unwrap();
        request.insert_header("grpc-timeout", time).unwrap();
        request
    }

    #[test]
    fn calls_are_told_from_other_requests() {
        for kind in [
            "application/grpc",
            "application/grpc+proto",
            "application/grpc;x=y",
        ] {
            assert!(is_call(&request(kind, "1S")), "{kind}");
        }
        for kind in [
            "application/grpc-web",
            "application/json",
            "application/grpcx",
        ] {
            assert!(!is_call(&request(kind, "1S")), "{kind}");
        }
    }

    #[test]
    fn times_have_a_unit_and_at_most_eight_digits() {
        let of = |time| timeout(&request("application/grpc", time));
        assert_eq!(of("1H"), Some(Duration::from_secs(3600)));
        assert_eq!(of("2M"), Some(Duration::from_secs(120)));
        assert_eq!(of("99999999S"), Some(Duration::from_secs(99_999_999)));
        assert_eq!(of("250m"), Some(Duration::from_millis(250)));
        assert_eq!(of("5u"), Some(Duration::from_micros(5)));
        assert_eq!(of("7n"), Some(Duration::from_nanos(7)));
        for wrong in [
            "",
            "S",
            "1",
            "1s",
            "-1S",
            "+1S",
            "123456789S",
            "1 S",
            "\u{663}S",
        ] {
            assert_eq!(of(wrong), None, "{wrong:?}");
        }
        assert_eq!(timeout(&request("text/plain", "1S")), None);
    }

    #[test]
    fn messages_are_encoded() {
        let encoded = utf8_percent_encode("100 % ü\n", MESSAGE).to_string();
        assert_eq!(encoded, "100 %25 %C3%BC%0A");
    }
}
