//! `respond(..)` and `redirect(..)`: a response made by the program.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};

/// A complete response. Cloning shares the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status, 200 to 599.
    pub status: StatusCode,
    /// The header fields in the order in which they were added.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body; its length is sent as Content-Length.
    pub body: Bytes,
}

/// Fields that say where a message ends; only the proxy sets them (RFC 9112 section 6).
const FRAMING: [HeaderName; 3] = [
    http::header::CONTENT_LENGTH,
    http::header::TRANSFER_ENCODING,
    http::header::CONNECTION,
];

impl Answer {
    /// A response with `status` and a body, which is text when it isn't empty.
    ///
    /// # Errors
    /// When `status` isn't 200 to 599, or a body is given where the status allows none
    /// (RFC 9110 sections 15.3.5 and 15.4.5).
    pub fn new(status: i64, body: impl Into<Bytes>) -> Result<Self, String> {
        let body = body.into();
        let status = status_code(status)?;
        if !body.is_empty() && matches!(status.as_u16(), 204 | 304) {
            return Err(format!("a {status} response has no body"));
        }
        let mut headers = Vec::new();
        if !body.is_empty() {
            headers.push((
                http::header::CONTENT_TYPE,
                HeaderValue::from_static("text/plain; charset=utf-8"),
            ));
        }
        Ok(Self {
            status,
            headers,
            body,
        })
    }

    /// A redirection to `target`.
    ///
    /// # Errors
    /// When `status` isn't 301, 302, 303, 307 or 308, or `target` can't stand in a header.
    pub fn redirect(status: i64, target: &str) -> Result<Self, String> {
        let status = redirect_status(status)?;
        let target = HeaderValue::from_str(target)
            .map_err(|_| "a redirect's target can't hold control characters".to_owned())?;
        Ok(Self {
            status,
            headers: vec![(http::header::LOCATION, target)],
            body: Bytes::new(),
        })
    }

    /// Adds a header field; one whose name is `content-type` replaces the one set for the body.
    ///
    /// # Errors
    /// When name or value can't stand in a header, or the field frames the message.
    pub fn add_header(&mut self, name: &str, value: &str) -> Result<(), String> {
        let name = header_name(name)?;
        let value = header_value(value)?;
        if name == http::header::CONTENT_TYPE {
            self.headers.retain(|(known, _)| known != name);
        }
        self.headers.push((name, value));
        Ok(())
    }

    /// The same answer, sharing nothing with this one whose count other threads may write.
    pub(crate) fn unshared(&self) -> Self {
        let value = |value: &HeaderValue| {
            // What was a value is one.
            HeaderValue::from_bytes(value.as_bytes()).unwrap_or_else(|_| value.clone())
        };
        Self {
            status: self.status,
            headers: self
                .headers
                .iter()
                .map(|(name, text)| (name.clone(), value(text)))
                .collect(),
            body: Bytes::copy_from_slice(&self.body),
        }
    }

    /// The first value of the header field `name`.
    pub fn header(&self, name: &HeaderName) -> Option<&HeaderValue> {
        self.headers
            .iter()
            .find_map(|(known, value)| (known == name).then_some(value))
    }
}

/// The status of a response that the program may make.
///
/// # Errors
/// When it isn't 200 to 599: 1xx are no final responses (RFC 9110 section 15.2).
pub fn status_code(status: i64) -> Result<StatusCode, String> {
    u16::try_from(status)
        .ok()
        .filter(|status| (200..600).contains(status))
        .and_then(|status| StatusCode::from_u16(status).ok())
        .ok_or_else(|| format!("{status} is no status of a response; use 200 to 599"))
}

/// The status of a redirection.
///
/// # Errors
/// When it isn't one that a client follows (RFC 9110 section 15.4).
pub fn redirect_status(status: i64) -> Result<StatusCode, String> {
    match status {
        301 | 302 | 303 | 307 | 308 => status_code(status),
        _ => Err(format!(
            "{status} is no redirect; use 301, 302, 303, 307 or 308"
        )),
    }
}

/// Parses a header name that a program may set.
///
/// # Errors
/// When it is no token (RFC 9110 section 5.1), or a field that frames the message.
pub fn header_name(name: &str) -> Result<HeaderName, String> {
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("`{name}` is no header name"))?;
    if FRAMING.contains(&parsed) {
        return Err(format!(
            "`{parsed}` belongs to the connection; the proxy sets it"
        ));
    }
    Ok(parsed)
}

/// Parses a header value.
///
/// # Errors
/// When it holds a control character such as a line end (RFC 9110 section 5.5).
pub fn header_value(value: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_str(value)
        .map_err(|_| "a header value can't hold control characters".to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_no_response() {
        assert!(Answer::new(101, "").is_err());
        assert!(Answer::new(600, "").is_err());
        assert!(Answer::new(204, "x").is_err());
        assert!(Answer::redirect(200, "/").is_err());
        assert!(Answer::redirect(302, "/a\r\nset-cookie: x=1").is_err());
    }

    #[test]
    fn headers_cannot_split_or_reframe() {
        let mut answer = Answer::new(200, "ok").unwrap();
        assert!(answer.add_header("x-a", "1\r\nx-b: 2").is_err());
        assert!(answer.add_header("x a", "1").is_err());
        assert!(answer.add_header("Content-Length", "1").is_err());
        answer.add_header("Content-Type", "text/html").unwrap();
        answer.add_header("set-cookie", "a=1").unwrap();
        answer.add_header("set-cookie", "b=2").unwrap();
        assert_eq!(answer.headers.len(), 3);
        assert_eq!(
            answer.header(&http::header::CONTENT_TYPE).unwrap(),
            "text/html"
        );
    }
}
