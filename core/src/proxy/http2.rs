//! What a request of HTTP/2 is brought to, so that all that follows finds it where HTTP/1 has it.

use http::{HeaderValue, header};
use pingora_http::RequestHeader;

/// Puts the authority into the Host, where routes, hooks and upstreams look for it, and makes one of several
/// Cookie fields: clients may take them apart, and what is no HTTP/2 wants them together (RFC 9113 section
/// 8.2.3).
pub(super) fn settle(request: &mut RequestHeader) {
    if let Some(authority) = request.uri.authority()
        && !request.headers.contains_key(header::HOST)
        && let Ok(host) = HeaderValue::try_from(authority.as_str())
    {
        let _ = request.insert_header(header::HOST, host);
    }
    let mut cookies = request.headers.get_all(header::COOKIE).into_iter();
    if let (Some(first), Some(second)) = (cookies.next(), cookies.next()) {
        let mut joined = first.as_bytes().to_vec();
        for more in std::iter::once(second).chain(cookies) {
            joined.extend_from_slice(b"; ");
            joined.extend_from_slice(more.as_bytes());
        }
        if let Ok(joined) = HeaderValue::try_from(joined) {
            let _ = request.insert_header(header::COOKIE, joined);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_authority_is_the_host_and_cookies_are_one() {
        let mut request = RequestHeader::build("GET", b"/", None).unwrap();
        request.set_uri("https://a.test:8443/x".parse().unwrap());
        for cookie in ["a=1", "b=2; c=3", "d=4"] {
            request.append_header(header::COOKIE, cookie).unwrap();
        }
        settle(&mut request);
        assert_eq!(request.headers[header::HOST], "a.test:8443");
        let cookies: Vec<_> = request.headers.get_all(header::COOKIE).iter().collect();
        assert_eq!(cookies, ["a=1; b=2; c=3; d=4"]);
    }
}
