//! The header of a call.

use edgewright_script::outbound::Outgoing;
use http::{
    HeaderValue, Method,
    header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING, USER_AGENT},
};
use pingora_http::RequestHeader;

/// Who calls, unless the program says something else.
const AGENT: HeaderValue = HeaderValue::from_static("edgewright");

/// The header as it is sent. `Host` is the call's own, else `authority`. The length is always
/// said where a server might expect a body (RFC 9110 section 8.6), so a request is never chunked.
pub(super) fn header(
    call: &Outgoing,
    authority: &str,
) -> pingora_error::Result<Box<RequestHeader>> {
    let size = call.headers.len() + 3;
    let mut header = RequestHeader::build(call.method.clone(), call.target.as_bytes(), Some(size))?;
    let given = |name| call.headers.iter().find(|(given, _)| given == name);
    match given(&HOST) {
        Some((_, host)) => header.append_header(HOST, host)?,
        None => header.append_header(HOST, authority)?,
    };
    if given(&USER_AGENT).is_none() {
        header.append_header(USER_AGENT, AGENT)?;
    }
    for (name, value) in &call.headers {
        // What frames the message is said below; a second word about it would be smuggling.
        if ![HOST, CONTENT_LENGTH, TRANSFER_ENCODING].contains(name) {
            header.append_header(name, value)?;
        }
    }
    let may_have_body = [Method::POST, Method::PUT, Method::PATCH].contains(&call.method);
    if may_have_body || !call.body.is_empty() {
        header.append_header(CONTENT_LENGTH, call.body.len())?;
    }
    Ok(Box::new(header))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use bytes::Bytes;
    use edgewright_script::outbound::Recipient;
    use http::{HeaderName, header::ACCEPT};
    use pingora_core::protocols::http::v1::client::http_req_header_to_wire;
    use std::time::Duration;

    fn wire(method: Method, headers: &[(HeaderName, &'static str)], body: &'static str) -> String {
        let call = Outgoing {
            recipient: Recipient::Server {
                tls: false,
                host: "api.test".to_owned(),
                port: 80,
            },
            method,
            target: "/a%20b?c=d".to_owned(),
            headers: headers
                .iter()
                .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
                .collect(),
            body: Bytes::from_static(body.as_bytes()),
            timeout: Duration::from_secs(1),
            retries: 0,
        };
        let header = header(&call, "api.test").unwrap();
        let bytes = http_req_header_to_wire(&header).unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn a_plain_call_says_host_and_agent_only() {
        assert_eq!(
            wire(Method::GET, &[], ""),
            "GET /a%20b?c=d HTTP/1.1\r\nHost: api.test\r\nuser-agent: edgewright\r\n\r\n"
        );
    }

    #[test]
    fn the_programs_own_fields_win() {
        let headers = [
            (ACCEPT, "a"),
            (HOST, "other.test"),
            (ACCEPT, "b"),
            (USER_AGENT, "mine"),
            (CONTENT_LENGTH, "7"),
            (TRANSFER_ENCODING, "chunked"),
        ];
        assert_eq!(
            wire(Method::GET, &headers, ""),
            "GET /a%20b?c=d HTTP/1.1\r\nHost: other.test\r\naccept: a\r\naccept: b\r\n\
             user-agent: mine\r\n\r\n"
        );
    }

    #[test]
    fn the_length_is_said_where_a_body_may_be() {
        for method in [Method::POST, Method::PUT, Method::PATCH] {
            assert!(wire(method, &[], "").ends_with("\r\nContent-Length: 0\r\n\r\n"));
        }
        assert!(wire(Method::DELETE, &[], "ab").ends_with("\r\nContent-Length: 2\r\n\r\n"));
        assert!(!wire(Method::DELETE, &[], "").contains("Length"));
    }
}
