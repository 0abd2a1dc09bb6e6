//! Requests that are refused before anything else looks at them.
//!
//! Pingora's parser accepts more than an edge should, and drops what shows it: the checks run over
//! the header block exactly as it was received.

mod http2;

use http::Method;
use memchr::{memchr, memchr2, memrchr};

use crate::{config::Limits, metrics::Limit};
pub use http2::check_http2;

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The status of the answer.
    pub status: u16,
    /// What is wrong; sent to the client.
    pub reason: &'static str,
    /// The limit that was hit, if it was one.
    pub limit: Option<Limit>,
}

const fn bad(reason: &'static str) -> Refusal {
    Refusal {
        status: 400,
        reason,
        limit: None,
    }
}

const fn over(status: u16, reason: &'static str, limit: Limit) -> Refusal {
    Refusal {
        status,
        reason,
        limit: Some(limit),
    }
}

/// The body is longer than `[limits] request_body`.
pub const BODY_TOO_LARGE: Refusal =
    over(413, "the request's body is too large", Limit::RequestBody);

/// The longest method; the longest registered one has 17 letters
/// (RFC 9110 section 16.1.1 and its registry).
const METHOD_LENGTH: usize = 32;

/// What the checks need to know of a request.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// Request line and header lines as received.
    pub raw: &'a [u8],
    /// The method, as parsed.
    pub method: &'a Method,
    /// Whether the version is HTTP/1.1 or later.
    pub http_1_1: bool,
}

/// What the checks saw by the way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// A field by which the client could claim to be a proxy: Forwarded, X-Forwarded-*, X-Real-IP.
    pub claims: bool,
    /// A field that begins like one of these, with underscores.
    pub odd_claims: bool,
    /// The Host is not in its normal form: capitals, a dot at its end, an IPv6 address.
    pub odd_host: bool,
    /// A Connection field names other fields.
    pub nominates: bool,
    /// There is more than one Authorization field.
    pub repeated_authorization: bool,
    /// There is an Upgrade field.
    pub upgrade: bool,
    /// There is a Content-Length.
    pub length: bool,
}

/// Checks one request head.
///
/// # Errors
/// With the first thing that is wrong.
pub fn check(head: Head<'_>, limits: &Limits) -> Result<Seen, Refusal> {
    check_method(head.method)?;
    if head.raw.len() > limits.request_header {
        return Err(over(
            431,
            "the request's header is too large",
            Limit::RequestHeader,
        ));
    }
    let (request_line, fields) = next_line(without_empty_lines(head.raw))?;
    let is_path = check_target(request_line, head.method, limits)?;
    // Only a plain path in HTTP/1.0 may come without a host.
    check_fields(fields, head.http_1_1 || !is_path, limits)
}

fn check_method(method: &Method) -> Result<(), Refusal> {
    match *method {
        Method::GET
        | Method::POST
        | Method::PUT
        | Method::HEAD
        | Method::DELETE
        | Method::OPTIONS
        | Method::PATCH => Ok(()),
        Method::TRACE => Err(Refusal {
            status: 405,
            reason: "TRACE is not allowed",
            limit: None,
        }),
        _ if method.as_str().len() > METHOD_LENGTH => Err(bad("the method is too long")),
        _ if method
            .as_str()
            .bytes()
            .any(|byte| byte.is_ascii_lowercase()) =>
        {
            Err(bad("methods are written in upper case"))
        }
        _ => Ok(()),
    }
}

/// Without the empty lines before the request line, as clients send one after a body (RFC 9112 section 2.2). The parser
/// takes any number of them; more than two are a sign of something else.
fn without_empty_lines(raw: &[u8]) -> &[u8] {
    let once = |raw| <[u8]>::strip_prefix(raw, b"\r\n").unwrap_or(raw);
    once(once(raw))
}

/// Splits off one line. Its end must be CR LF: a bare LF is where parsers disagree
/// (RFC 9112 section 2.2 and its security considerations).
fn next_line(raw: &[u8]) -> Result<(&[u8], &[u8]), Refusal> {
    match memchr(b'\n', raw) {
        None => Ok((raw, &[])),
        Some(end) => match raw[..end].strip_suffix(b"\r") {
            Some(line) => Ok((line, &raw[end + 1..])),
            None => Err(bad("a line ends without CR")),
        },
    }
}

/// The target is a path, or an absolute http URI; `*` only asks for OPTIONS
/// (RFC 9112 section 3.2). Gives whether it is a path.
fn check_target(line: &[u8], method: &Method, limits: &Limits) -> Result<bool, Refusal> {
    // Between the method and the version stands the target, without a space of its own.
    let target = line
        .get(method.as_str().len() + 1..)
        .map(|rest| &rest[..memrchr(b' ', rest).unwrap_or(rest.len())])
        .unwrap_or_default();
    if memchr2(b' ', b'#', target).is_some() {
        return Err(bad("the request target has a space or a `#`"));
    }
    if target.len() > limits.uri {
        return Err(over(414, "the request target is too long", Limit::Uri));
    }
    let absolute = || {
        let scheme_end = target
            .windows(3)
            .take(6)
            .position(|window| window == b"://");
        scheme_end.is_some_and(|end| {
            let scheme = &target[..end];
            scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https")
        })
    };
    match target.first() {
        Some(b'/') => Ok(true),
        Some(b'*') if target.len() == 1 && method == Method::OPTIONS => Ok(true),
        Some(_) if absolute() => Ok(false),
        _ => Err(bad("the request target is no path")),
    }
}

fn check_fields(mut fields: &[u8], host_needed: bool, limits: &Limits) -> Result<Seen, Refusal> {
    let mut seen = Seen::default();
    let (mut count, mut hosts, mut lengths, mut codings) = (0, 0, 0, 0);
    let mut authorizations = 0;
    while !fields.is_empty() {
        let (line, rest) = next_line(fields)?;
        fields = rest;
        if line.is_empty() {
            break;
        }
        count += 1;
        // Few fields begin with these letters, so most lines cost a comparison.
        match line[0] | 0x20 {
            b'h' => {
                if let Some(value) = value_of(line, b"host") {
                    hosts += 1;
                    seen.odd_host |= check_host(value)?;
                }
            }
            b'c' => {
                if let Some(value) = value_of(line, b"connection") {
                    seen.nominates |= !is_plain_connection(value);
                } else if let Some(value) = value_of(line, b"content-length") {
                    lengths += 1;
                    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
                        return Err(bad("the Content-Length is no number"));
                    }
                }
            }
            b'a' => authorizations += u32::from(value_of(line, b"authorization").is_some()),
            b't' => {
                if let Some(value) = value_of(line, b"transfer-encoding") {
                    codings += 1;
                    if !value.eq_ignore_ascii_case(b"chunked") {
                        return Err(Refusal {
                            status: 501,
                            reason: "the only transfer coding is chunked",
                            limit: None,
                        });
                    }
                }
            }
            b'e' => {
                if let Some(value) = value_of(line, b"expect")
                    && !value.eq_ignore_ascii_case(b"100-continue")
                {
                    return Err(Refusal {
                        status: 417,
                        reason: "the only expectation is 100-continue",
                        limit: None,
                    });
                }
            }
            b'u' => seen.upgrade |= value_of(line, b"upgrade").is_some(),
            b'f' => seen.claims |= value_of(line, b"forwarded").is_some(),
            b'x' => {
                seen.claims |=
                    begins_with(line, b"x-forwarded-") || begins_with(line, b"x-real-ip");
                // CGI and WSGI take one spelling for the other.
                seen.odd_claims |= begins_with(line, b"x_")
                    || begins_with(line, b"x-forwarded_")
                    || begins_with(line, b"x-real_");
            }
            _ => {}
        }
    }
    if count > limits.request_headers {
        return Err(over(
            431,
            "the request has too many header fields",
            Limit::RequestHeaders,
        ));
    }
    if lengths + codings > 1 {
        return Err(bad("the length of the body is ambiguous"));
    }
    if hosts > 1 || (hosts == 0 && host_needed) {
        return Err(bad("a request names exactly one host"));
    }
    seen.repeated_authorization = authorizations > 1;
    seen.length = lengths > 0;
    Ok(seen)
}

fn begins_with(line: &[u8], name: &[u8]) -> bool {
    line.get(..name.len())
        .is_some_and(|found| found.eq_ignore_ascii_case(name))
}

/// The value of a header line when its name is `name`, without white space around it.
fn value_of<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let (found, rest) = line.split_at_checked(name.len())?;
    if !found.eq_ignore_ascii_case(name) {
        return None;
    }
    rest.strip_prefix(b":").map(<[u8]>::trim_ascii)
}

/// Whether a Connection field names nothing but what it is about itself.
pub(super) fn is_plain_connection(value: &[u8]) -> bool {
    [&b"keep-alive"[..], b"close", b"upgrade"]
        .iter()
        .any(|plain| value.eq_ignore_ascii_case(plain))
}

/// Whether a host is odd, that is not in its normal form. It is a name or address with or without a
/// port (RFC 9110 section 7.2); anything else is where two parsers could see two hosts.
fn check_host(value: &[u8]) -> Result<bool, Refusal> {
    const NO_HOST: Refusal = bad("the Host is no host");
    let (name, port, is_address) = match value.strip_prefix(b"[") {
        Some(rest) => {
            let end = memchr(b']', rest).ok_or(NO_HOST)?;
            (&rest[..end], &rest[end + 1..], true)
        }
        None => {
            let end = memchr(b':', value).unwrap_or(value.len());
            (&value[..end], &value[end..], false)
        }
    };
    let port_is_fine = port.is_empty()
        || port
            .strip_prefix(b":")
            .is_some_and(|digits| digits.iter().all(u8::is_ascii_digit));
    if !port_is_fine {
        return Err(NO_HOST);
    }
    if is_address {
        let address = std::str::from_utf8(name).ok();
        let address = address.and_then(|text| text.parse::<std::net::Ipv6Addr>().ok());
        return address.map(|_| true).ok_or(NO_HOST);
    }
    let (mut odd, mut before) = (false, InName::Dot);
    for &byte in name {
        let this = IN_NAME[usize::from(byte)];
        match this {
            InName::Plain => {}
            InName::Capital => odd = true,
            // A label of no length.
            InName::Dot if before == InName::Dot => return Err(NO_HOST),
            InName::Dot => {}
            InName::Nothing => return Err(NO_HOST),
        }
        before = this;
    }
    if name.is_empty() {
        return Err(NO_HOST);
    }
    // A dot at the end is that of the root.
    Ok(odd || before == InName::Dot)
}

/// What a byte is in a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InName {
    Nothing,
    Plain,
    Capital,
    Dot,
}

/// Of each byte: each request has a host to look at.
const IN_NAME: [InName; 256] = {
    let mut table = [InName::Nothing; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = match byte as u8 {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => InName::Plain,
            b'A'..=b'Z' => InName::Capital,
            b'.' => InName::Dot,
            _ => InName::Nothing,
        };
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn status(raw: &str) -> u16 {
        status_of(raw, raw.split(' ').next().unwrap_or_default())
    }

    fn status_of(raw: &str, method: &str) -> u16 {
        let Ok(method) = Method::from_bytes(method.as_bytes()) else {
            return 400;
        };
        let head = Head {
            raw: raw.as_bytes(),
            method: &method,
            http_1_1: raw.contains("HTTP/1.1"),
        };
        check(head, &Limits::default()).map_or_else(|refusal| refusal.status, |_| 200)
    }

    fn with(fields: &str) -> u16 {
        status(&format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"))
    }

    #[test]
    fn ordinary_requests_pass() {
        assert_eq!(with(""), 200);
        assert_eq!(
            with("Content-Length: 0\r\nAccept: */*\r\nTE: trailers\r\n"),
            200
        );
        assert_eq!(
            with("Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n"),
            200
        );
        assert_eq!(status("GET http://a/x HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
        assert_eq!(status("OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"), 200);
        assert_eq!(status("GET / HTTP/1.1\r\nHost: A.b.:80\r\n\r\n"), 200);
        assert_eq!(status("GET / HTTP/1.0\r\n\r\n"), 200);
        for (empty, expected) in [
            ("\r\n", 200),
            ("\r\n\r\n", 200),
            ("\r\n\r\n\r\n", 400),
            ("\n", 400),
        ] {
            let raw = format!("{empty}GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(status_of(&raw, "GET"), expected, "{raw:?}");
        }
        assert_eq!(
            status("PROPFIND /x HTTP/1.1\r\nHost: a_b.c:80\r\n\r\n"),
            200
        );
    }

    #[test]
    fn ambiguous_bodies_are_refused() {
        for fields in [
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: 1\r\ncontent-length: 1\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: 1, 1\r\n",
            "Content-Length: +1\r\n",
            "Content-Length:\r\n",
            "X: y\nContent-Length: 3\r\n",
        ] {
            assert_eq!(with(fields), 400, "{fields:?}");
        }
        assert_eq!(with("Transfer-Encoding: gzip, chunked\r\n"), 501);
    }

    #[test]
    fn targets_hosts_and_methods() {
        for raw in [
            "GET a HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: \r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a,b/c\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a:80:80\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a:x\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: :80\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: ::1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: [a.b]\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a..b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: .a\r\n\r\n",
            "GET http://a/ HTTP/1.0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
            "get / HTTP/1.1\r\nHost: a\r\n\r\n",
            "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1\r\nHost: a\r\n\r\n",
        ] {
            assert_eq!(status(raw), 400, "{raw:?}");
        }
        assert_eq!(status("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n"), 405);
        assert_eq!(with("Expect: foo\r\n"), 417);
    }

    #[test]
    fn claims_are_seen() {
        let seen = |fields: &str| {
            let head = Head {
                raw: format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
                    .into_bytes()
                    .leak(),
                method: &Method::GET,
                http_1_1: true,
            };
            check(head, &Limits::default()).map(|seen| seen.claims)
        };
        assert_eq!(seen("X-Api-Key: 1\r\nFrom: a\r\n"), Ok(false));
        for field in [
            "forwarded: x",
            "X-FORWARDED-FOR: x",
            "x-forwarded-port: 1",
            "X-Real-IP: 1",
        ] {
            assert_eq!(seen(&format!("{field}\r\n")), Ok(true), "{field}");
        }
    }

    #[test]
    fn repeated_credentials_are_seen() {
        let seen = |fields: &str| {
            let raw = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
            let head = Head {
                raw: raw.as_bytes(),
                method: &Method::GET,
                http_1_1: true,
            };
            check(head, &Limits::default()).map(|seen| seen.repeated_authorization)
        };
        assert_eq!(seen("Accept: a\r\nAccept: b\r\n"), Ok(false));
        assert_eq!(seen("Authorization: a\r\nAuthorizations: b\r\n"), Ok(false));
        assert_eq!(
            seen("Authorization: a\r\nX: y\r\nAUTHORIZATION:\r\n"),
            Ok(true)
        );
    }

    #[test]
    fn sizes_are_bounded() {
        assert_eq!(with(&"X: y\r\n".repeat(99)), 200);
        assert_eq!(with(&"X: y\r\n".repeat(100)), 431);
        assert_eq!(with(&format!("X: {}\r\n", "y".repeat(33 * 1024))), 431);
        let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(8 * 1024));
        assert_eq!(status(&long), 414);
    }
}
