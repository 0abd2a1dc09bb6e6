//! The same checks for requests of HTTP/2, which have no text of their own: over the fields as they were
//! decoded.
//!
//! The `h2` crate has refused what is malformed by itself (RFC 9113 section 8.1.1): unknown and repeated
//! pseudo-header fields, capitals in names, fields of the connection. Pingora has looked at the authority: there
//! is one, and a Host says the same.

use http::uri::PathAndQuery;
use pingora_http::RequestHeader;

use super::{Refusal, Seen, bad, check_host, check_method, over};
use crate::{config::Limits, metrics::Limit};

/// Checks the header of one request.
///
/// # Errors
/// With the first thing that is wrong.
pub fn check_http2(header: &RequestHeader, limits: &Limits) -> Result<Seen, Refusal> {
    check_method(&header.method)?;
    let target = header.uri.path_and_query().map_or("", PathAndQuery::as_str);
    if target.len() > limits.uri {
        return Err(over(414, "the request target is too long", Limit::Uri));
    }
    if !(target.starts_with('/') || target == "*" && header.method == http::Method::OPTIONS) {
        return Err(bad("the request target is no path"));
    }
    let mut seen = Seen::default();
    let authority = header.uri.authority();
    if let Some(authority) = authority {
        seen.odd_host = check_host(authority.as_str().as_bytes())?;
    }
    let has_authority = authority.is_some();
    let size = header.method.as_str().len() + target.len();
    let size = size + authority.map_or(0, |authority| authority.as_str().len());
    let fields = check_fields(header, &mut seen)?;
    if size + fields.bytes > limits.request_header {
        return Err(over(
            431,
            "the request's header is too large",
            Limit::RequestHeader,
        ));
    }
    if fields.count > limits.request_headers {
        return Err(over(
            431,
            "the request has too many header fields",
            Limit::RequestHeaders,
        ));
    }
    if fields.hosts > 1 || (fields.hosts == 0 && !has_authority) {
        return Err(bad("a request names exactly one host"));
    }
    Ok(seen)
}

#[derive(Default)]
struct Fields {
    count: usize,
    /// As lines of HTTP/1 they would have so many.
    bytes: usize,
    hosts: usize,
}

fn check_fields(header: &RequestHeader, seen: &mut Seen) -> Result<Fields, Refusal> {
    let mut fields = Fields::default();
    let (mut lengths, mut authorizations) = (0, 0);
    for (name, value) in &header.headers {
        let (text, value) = (name.as_str(), value.as_bytes());
        fields.count += 1;
        fields.bytes += text.len() + value.len() + 4;
        match text {
            "host" => {
                fields.hosts += 1;
                seen.odd_host |= check_host(value)?;
            }
            "content-length" => {
                lengths += 1;
                if lengths > 1 || value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
                    return Err(bad("the Content-Length is no number"));
                }
            }
            "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade" => {
                return Err(bad("a field of the connection (RFC 9113 section 8.2.2)"));
            }
            "te" if !value.eq_ignore_ascii_case(b"trailers") => {
                return Err(bad("TE can only be trailers (RFC 9113 section 8.2.2)"));
            }
            "expect" if !value.eq_ignore_ascii_case(b"100-continue") => {
                return Err(Refusal {
                    status: 417,
                    reason: "the only expectation is 100-continue",
                    limit: None,
                });
            }
            "authorization" => authorizations += 1,
            "forwarded" => seen.claims = true,
            _ => {
                seen.claims |= text.starts_with("x-forwarded-") || text.starts_with("x-real-ip");
                seen.odd_claims |= text.starts_with("x_")
                    || text.starts_with("x-forwarded_")
                    || text.starts_with("x-real_");
            }
        }
    }
    seen.repeated_authorization = authorizations > 1;
    seen.length = lengths > 0;
    Ok(fields)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn request(method: &str, uri: &str, fields: &[(&'static str, &str)]) -> RequestHeader {
        let mut header = RequestHeader::build(method, b"/", None).unwrap();
        header.set_uri(uri.parse().unwrap());
        header.set_version(http::Version::HTTP_2);
        for (name, value) in fields {
            header.append_header(*name, *value).unwrap();
        }
        header
    }

    fn status(method: &str, uri: &str, fields: &[(&'static str, &str)]) -> u16 {
        let checked = check_http2(&request(method, uri, fields), &Limits::default());
        checked.map_or_else(|refusal| refusal.status, |_| 200)
    }

    fn with(fields: &[(&'static str, &str)]) -> u16 {
        status("GET", "http://a/", fields)
    }

    #[test]
    fn ordinary_requests_pass() {
        assert_eq!(with(&[]), 200);
        assert_eq!(with(&[("te", "trailers"), ("content-length", "0")]), 200);
        assert_eq!(with(&[("host", "a"), ("expect", "100-continue")]), 200);
        assert_eq!(status("POST", "https://A.b.:8443/x?y", &[]), 200);
        assert_eq!(status("GET", "/", &[("host", "a")]), 200);
    }

    #[test]
    fn what_http_1_is_refused_for_is_refused() {
        for fields in [
            &[("connection", "close")][..],
            &[("transfer-encoding", "chunked")],
            &[("upgrade", "websocket")],
            &[("te", "gzip")],
            &[("content-length", "1"), ("content-length", "1")],
            &[("content-length", "+1")],
            &[("host", "a"), ("host", "a")],
            &[("host", "a b")],
        ] {
            assert_eq!(with(fields), 400, "{fields:?}");
        }
        assert_eq!(status("GET", "/", &[]), 400, "no host at all");
        assert_eq!(status("get", "http://a/", &[]), 400);
        assert_eq!(status("TRACE", "http://a/", &[]), 405);
        assert_eq!(with(&[("expect", "more")]), 417);
    }

    #[test]
    fn sizes_are_bounded() {
        assert_eq!(with(&[("x", "y"); 100]), 200);
        assert_eq!(with(&[("x", "y"); 101]), 431);
        assert_eq!(with(&[("x", &"y".repeat(33 * 1024))]), 431);
        let long = format!("http://a/{}", "a".repeat(8 * 1024));
        assert_eq!(status("GET", &long, &[]), 414);
    }

    #[test]
    fn claims_and_odd_hosts_are_seen() {
        let seen = |uri: &str, fields: &[(&'static str, &str)]| {
            check_http2(&request("GET", uri, fields), &Limits::default()).unwrap()
        };
        assert_eq!(seen("http://a/", &[("x-api-key", "1")]), Seen::default());
        assert!(seen("http://a/", &[("x-forwarded-for", "1")]).claims);
        assert!(seen("http://a/", &[("x_forwarded_for", "1")]).odd_claims);
        assert!(seen("http://A/", &[]).odd_host);
        let twice = [("authorization", "a"), ("authorization", "b")];
        assert!(seen("http://a/", &twice).repeated_authorization);
    }
}
