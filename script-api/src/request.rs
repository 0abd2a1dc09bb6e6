//! The request as a program sees it.

pub mod cookies;
pub mod query;
mod values;

pub use values::{MOST_BYTES, MOST_VALUES, NoRoom, Values};

use std::{borrow::Cow, net::IpAddr, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use thiserror::Error;

use crate::state::Slot;

/// Slots that one request may hold.
pub const MOST_SLOTS: usize = 16;

/// What is known of the way that a request took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts<'a> {
    /// The pool that was chosen.
    pub pool: Option<&'a str>,
    /// The address of the endpoint that was tried last.
    pub upstream: Option<&'a str>,
    /// Connections to upstreams that were tried or used.
    pub attempts: u8,
    /// Time since the request's header was there.
    pub duration: Duration,
    /// Time until the header of the upstream's response was there, from the same beginning.
    pub upstream_duration: Option<Duration>,
    /// Bytes of the body that the client was sent so far.
    pub bytes_sent: u64,
    /// Why the request failed, when it did. Only known when everything is over.
    pub error: Option<Cow<'a, str>>,
}

/// Which attempt to reach an upstream a `.to` function is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt<'a> {
    /// 1 for the first one.
    pub number: u32,
    /// Why the one before it failed; `None` for the first one.
    pub last_error: Option<&'a str>,
}

/// Where requests of a pool can go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The pool.
    pub pool: String,
    /// `10.0.0.1:8080`, `[fd00::1]:8080` or `unix:/run/app.sock`.
    pub address: String,
    /// Requests that it has now.
    pub active: usize,
    /// Whether it has failed this request.
    pub failed: bool,
}

/// A request that a program can look at and change. The proxy implements it over the server's own
/// request, without copying; [`crate::memory::MemoryRequest`] holds one in memory.
pub trait Request {
    /// The method as sent, such as `GET`.
    fn method(&self) -> &str;
    /// `http` or `https`.
    fn scheme(&self) -> &str;
    /// The host in its normal form, without a port; empty when there is none.
    fn host(&self) -> &str;
    /// The path in its normal form, without the query.
    fn path(&self) -> &str;
    /// The path as it was sent, without the query.
    fn raw_path(&self) -> &str;
    /// What stands behind the `?`, as sent or as a hook has set it; empty when there is none.
    fn query_string(&self) -> &str;
    /// The client's address: the peer's, or what trusted proxies say.
    fn client_ip(&self) -> IpAddr;
    /// The address of the other end of the connection.
    fn peer_ip(&self) -> IpAddr;
    /// `HTTP/1.0`, `HTTP/1.1` or `HTTP/2`.
    fn protocol(&self) -> &str;
    /// The text that the route's pattern captured under `name`, percent-encoded as in the path.
    fn param(&self, name: &str) -> Option<&str>;
    /// All captures, in the order of the pattern.
    fn params(&self) -> Vec<(&str, &str)>;
    /// The first value of a header field.
    fn header(&self, name: &str) -> Option<&[u8]>;
    /// The same, of a field whose name is parsed already.
    fn field(&self, name: &HeaderName) -> Option<&[u8]>;
    /// All values of a header field, in order.
    fn headers(&self, name: &str) -> Vec<&[u8]>;
    /// Replaces all values of a header field.
    fn set_header(&mut self, name: HeaderName, value: HeaderValue);
    /// Adds a value to a header field.
    fn add_header(&mut self, name: HeaderName, value: HeaderValue);
    /// Removes a header field.
    fn remove_header(&mut self, name: &HeaderName);
    /// Sets the path that the upstream gets. `path` is in normal form; the query stays.
    fn set_path(&mut self, path: &str);
    /// What is known of the way that it took.
    fn facts(&self) -> Facts<'_>;
    /// Which attempt to reach an upstream a `.to` function is asked for.
    fn attempt(&self) -> Attempt<'_>;
    /// Where requests can go now, for all pools.
    fn targets(&self) -> Vec<Target>;
    /// The whole body, in `on_request_body` and from then on; `None` when it was not read.
    fn body(&self) -> Option<&Bytes>;
    /// Replaces the body that goes to the upstream.
    fn set_body(&mut self, body: Bytes);
    /// Sets what stands behind the `?`; with an empty text there is no `?`. It holds nothing that can't
    /// stand in a query.
    ///
    /// # Errors
    /// When path and query would be longer than a target can be; then all stays as it was.
    fn set_query_string(&mut self, query: &str) -> Result<(), TargetTooLong>;
    /// How the client's connection is encrypted; `None` when it isn't.
    fn tls(&self) -> Option<Tls<'_>>;
    /// What hooks have left for later ones.
    fn values(&self) -> Option<&Values>;
    /// The same, for leaving something.
    fn values_mut(&mut self) -> &mut Values;
    /// An identifier of this request, made when it is first asked for.
    fn id(&mut self) -> String;
    /// Keeps a slot until the request has ended, however it ends. False when it holds [`MOST_SLOTS`]
    /// already; the slot is given back then.
    fn hold(&mut self, slot: Slot) -> bool;
}

/// Bytes of the longest target, which is what the `http` crate holds.
pub const LONGEST_TARGET: usize = 65_534;

/// Path and query together are too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a path and its query have {LONGEST_TARGET} bytes together at the most, not {0}")]
pub struct TargetTooLong(pub usize);

/// How a connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tls<'a> {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'a str,
    /// The cipher suite, by its name at IANA.
    pub cipher: &'a str,
    /// The name that the client asked for (SNI), in lower case; `None` when it asked for none, as one that connects
    /// to an address does.
    pub sni: Option<&'a str>,
}

/// A header's bytes as text: UTF-8 when they are that, else byte by byte as ISO 8859-1, so that no
/// value is lost or can pass for another (RFC 9110 section 5.5).
pub fn header_text(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(value.iter().map(|&byte| char::from(byte)).collect()),
    }
}

/// The decoded values of `name` in a query string, in order (application/x-www-form-urlencoded:
/// `+` is a space; bytes that are no UTF-8 become U+FFFD).
pub fn query_values<'q>(query: &'q str, name: &'q str) -> impl Iterator<Item = Cow<'q, str>> + 'q {
    query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .filter(move |(key, _)| !key.is_empty() && form_decode(key) == name)
        .map(|(_, value)| form_decode(value))
}

/// Decodes one name or value of a query string or form.
pub(crate) fn form_decode(text: &str) -> Cow<'_, str> {
    if text.contains('+') {
        let spaced = text.replace('+', " ");
        Cow::Owned(percent_decode_str(&spaced).decode_utf8_lossy().into_owned())
    } else {
        percent_decode_str(text).decode_utf8_lossy()
    }
}

/// The value of the first cookie called `name` in one Cookie header (RFC 6265 section 5.4); quotes
/// around a value are not part of it, and white space is that of ASCII only: who changes or removes
/// the cookie, and the filter `.jwt`, must find the same one.
pub fn cookie_value<'c>(header: &'c str, name: &str) -> Option<&'c str> {
    header
        .split(';')
        .filter_map(|pair| pair.trim_ascii().split_once('='))
        .find(|(key, _)| key.trim_ascii_end() == name)
        .map(|(_, value)| {
            let value = value.trim_ascii_start();
            value
                .strip_prefix('"')
                .and_then(|inner| inner.strip_suffix('"'))
                .unwrap_or(value)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_queries_decoded() {
        let values: Vec<_> = query_values("a=1&b=x+y&%61=2&&c&a=%20%zz", "a").collect();
        assert_eq!(values, ["1", "2", " %zz"]);
        assert_eq!(query_values("a=1&c", "c").collect::<Vec<_>>(), [""]);
        assert_eq!(query_values("b=x+y%2B", "b").collect::<Vec<_>>(), ["x y+"]);
        assert_eq!(query_values("", "").count(), 0);
    }

    #[test]
    fn reads_cookies() {
        let header = "a=1; beta=\"1\";c = 3 ; a=2; flag";
        assert_eq!(cookie_value(header, "a"), Some("1"));
        assert_eq!(cookie_value(header, "beta"), Some("1"));
        assert_eq!(cookie_value(header, "c"), Some("3"));
        assert_eq!(cookie_value(header, "flag"), None);
        assert_eq!(cookie_value(header, "A"), None);
        // `cookies::without` doesn't find these either.
        assert_eq!(cookie_value("\u{a0}a=1; a\u{85}=2", "a"), None);
        assert_eq!(cookies::without("\u{a0}a=1".as_bytes(), "a"), None);
    }

    #[test]
    fn keeps_bytes_that_are_no_utf8() {
        assert_eq!(header_text(b"caf\xe9"), "caf\u{e9}");
        assert_eq!(header_text("caf\u{e9}".as_bytes()), "caf\u{e9}");
    }
}
