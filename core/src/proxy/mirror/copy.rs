//! The header of a copy.

use http::{HeaderName, HeaderValue, Method, Version, header};
use pingora_http::RequestHeader;

use crate::proxy::loops;

/// Says that a request is a copy whose answer nobody sees.
const MARK: HeaderName = HeaderName::from_static("x-edgewright-mirror");

/// What belongs to the connection of the original (RFC 9110 section 7.6.1), frames its body, or asks for
/// an interim response.
const OF_THE_ORIGINAL: [HeaderName; 7] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The header of a copy of the request that `upstream` begins. `None` when copies are going in circles.
pub(super) fn header(upstream: &RequestHeader) -> Option<Box<RequestHeader>> {
    let passed = loops::passed(&upstream.headers)?;
    let mut copy = Box::new(upstream.clone());
    copy.set_version(Version::HTTP_11);
    for name in OF_THE_ORIGINAL {
        copy.remove_header(&name);
    }
    copy.remove_header("keep-alive");
    copy.remove_header("proxy-connection");
    if !copy.headers.contains_key(header::HOST)
        && let Some(authority) = upstream.uri.authority()
    {
        // Only HTTP/2 says it there.
        let _ = copy.insert_header(header::HOST, authority.as_str());
    }
    let _ = copy.insert_header(loops::CDN_LOOP, passed);
    let _ = copy.insert_header(MARK, HeaderValue::from_static("1"));
    Some(copy)
}

/// Says how long the body of a copy is, where a server may expect one (RFC 9110 section 8.6).
pub(super) fn frame(copy: &mut RequestHeader, length: usize) {
    let may_have_body = [Method::POST, Method::PUT, Method::PATCH].contains(&copy.method);
    if may_have_body || length > 0 {
        let _ = copy.insert_header(header::CONTENT_LENGTH, length);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn copied(method: &str, fields: &[(&'static str, &'static str)], length: usize) -> Vec<String> {
        let mut original = RequestHeader::build(method, b"/a?b=c", None).unwrap();
        for (name, value) in fields {
            original.append_header(*name, *value).unwrap();
        }
        let mut copy = header(&original).unwrap();
        frame(&mut copy, length);
        assert_eq!(copy.uri.to_string(), "/a?b=c");
        assert_eq!(copy.version, Version::HTTP_11);
        let fields = copy.headers.iter();
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        let mut fields: Vec<_> = fields.map(|(n, v)| format!("{n}: {}", text(v))).collect();
        fields.sort();
        fields
    }

    #[test]
    fn what_belongs_to_the_original_stays_with_it() {
        let fields = [
            ("host", "a.test"),
            ("cookie", "a=b"),
            ("x-one", "1"),
            ("x-one", "2"),
            ("connection", "keep-alive"),
            ("keep-alive", "timeout=5"),
            ("expect", "100-continue"),
            ("transfer-encoding", "chunked"),
            ("x-edgewright-mirror", "forged"),
        ];
        let expected = [
            "cdn-loop: edgewright",
            "content-length: 7",
            "cookie: a=b",
            "host: a.test",
            "x-edgewright-mirror: 1",
            "x-one: 1",
            "x-one: 2",
        ];
        assert_eq!(copied("POST", &fields, 7), expected);
    }

    #[test]
    fn the_length_is_said_where_a_body_may_be() {
        let has_length = |method, length| {
            let fields = copied(method, &[("content-length", "3")], length);
            fields
                .iter()
                .any(|field| *field == format!("content-length: {length}"))
        };
        assert!(!has_length("GET", 0) && has_length("GET", 3));
        assert!(has_length("POST", 0) && has_length("DELETE", 3));
    }

    #[test]
    fn circles_end() {
        let mut original = RequestHeader::build("GET", b"/", None).unwrap();
        for _ in 0..3 {
            let copy = header(&original).unwrap();
            original = *copy;
        }
        assert!(header(&original).is_none());
    }
}
