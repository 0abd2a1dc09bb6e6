//! What of a request decides where it goes, so that equal requests go to the same place.

use std::{fmt, net::IpAddr};

use super::gates::shared_part;
use crate::{
    request::{Request, cookie_value, header_text, query_values},
    stable_hash::stable_hash,
    suggest::nearest,
};

/// What of a request is hashed: `hash_on` of a pool, `by` of a split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HashOn {
    /// The client's address; of an IPv6 address the first 64 bits, within which clients change it (RFC 8981).
    ClientIp,
    /// The first value of a header field, whose name is in lower case.
    Header(String),
    /// The value of a cookie.
    Cookie(String),
    /// The first value of a query parameter.
    Query(String),
    /// The path in its normal form, without the query.
    Path,
}

impl HashOn {
    /// How they are written, for messages.
    pub const FORMS: &'static str =
        "\"client_ip\", \"header NAME\", \"cookie NAME\", \"query NAME\" or \"path\"";

    /// Reads `"client_ip"`, `"header x-tenant"` and so on; a `:` is as good as a space, as in the `key` of limits.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (kind, name) = text.split_once([' ', ':']).unwrap_or((text, ""));
        let name = name.trim();
        match kind {
            "client_ip" | "ip" if kind == text => Ok(Self::ClientIp),
            "path" if kind == text => Ok(Self::Path),
            "header" | "cookie" | "query" if name.is_empty() => Err(format!(
                "`{kind}` needs a name: write \"{kind} {}\"",
                if kind == "header" { "x-tenant" } else { "id" }
            )),
            "header" => {
                let name = http::HeaderName::from_bytes(name.as_bytes())
                    .map_err(|_| format!("`{name}` is no header name"))?;
                Ok(Self::Header(name.as_str().to_owned()))
            }
            "cookie" => {
                crate::cookie::check(name, "")?;
                Ok(Self::Cookie(name.to_owned()))
            }
            "query" => Ok(Self::Query(name.to_owned())),
            _ => {
                let kinds = ["client_ip", "header", "cookie", "query", "path"];
                let hint = nearest(kind, kinds).map(|near| format!(" (did you mean `{near}`?)"));
                Err(format!(
                    "`{text}` can't be hashed on{}; write {}",
                    hint.unwrap_or_default(),
                    Self::FORMS
                ))
            }
        }
    }

    /// The hash of what this request has; `None` when it isn't there, or empty.
    pub fn key(&self, request: &dyn Request) -> Option<u64> {
        let some = |value: &[u8]| (!value.is_empty()).then(|| stable_hash(value));
        match self {
            Self::ClientIp => Some(match shared_part(request.client_ip()) {
                IpAddr::V4(address) => stable_hash(&address.octets()),
                IpAddr::V6(network) => stable_hash(&network.octets()),
            }),
            Self::Header(name) => some(request.header(name)?),
            Self::Query(name) => some(
                query_values(request.query_string(), name)
                    .next()?
                    .as_bytes(),
            ),
            Self::Path => some(request.path().as_bytes()),
            Self::Cookie(name) => {
                let lines = request.headers("cookie");
                let found = lines.into_iter().find_map(|line| {
                    cookie_value(&header_text(line), name).map(|value| some(value.as_bytes()))
                });
                found.flatten()
            }
        }
    }
}

impl fmt::Display for HashOn {
    /// As it is written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClientIp => f.write_str("client_ip"),
            Self::Header(name) => write!(f, "header {name}"),
            Self::Cookie(name) => write!(f, "cookie {name}"),
            Self::Query(name) => write!(f, "query {name}"),
            Self::Path => f.write_str("path"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::memory::MemoryRequest;

    fn key(text: &str, request: &MemoryRequest) -> Option<u64> {
        let hash_on = HashOn::parse(text).unwrap();
        assert_eq!(hash_on.to_string(), text);
        hash_on.key(request)
    }

    #[test]
    fn hashes_what_is_there() {
        let request = MemoryRequest::new("GET", "h", "/a?user=x+1&user=2&e=")
            .with_header("x-tenant", "acme")
            .with_header("x-tenant", "other")
            .with_header("cookie", "a=1")
            .with_header("cookie", "sid=\"s1\"; b=");
        for (text, value) in [
            ("header x-tenant", "acme"),
            ("cookie sid", "s1"),
            ("query user", "x 1"),
            ("path", "/a"),
        ] {
            assert_eq!(
                key(text, &request),
                Some(stable_hash(value.as_bytes())),
                "{text}"
            );
        }
        for text in [
            "header x-none",
            "cookie b",
            "cookie none",
            "query e",
            "query none",
        ] {
            assert_eq!(key(text, &request), None, "{text}");
        }
    }

    #[test]
    fn one_network_of_a_customer_is_one_client() {
        let from = |address: &str| {
            let request = MemoryRequest {
                client_ip: address.parse().unwrap(),
                ..MemoryRequest::new("GET", "h", "/")
            };
            key("client_ip", &request)
        };
        assert_eq!(from("2001:db8::1"), from("2001:db8::ffff:1"));
        assert_ne!(from("2001:db8::1"), from("2001:db8:0:1::1"));
        assert_eq!(from("192.0.2.1"), from("::ffff:192.0.2.1"));
        assert_ne!(from("192.0.2.1"), from("192.0.2.2"));
    }

    #[test]
    fn says_what_it_looks_like() {
        assert_eq!(
            HashOn::parse("header:X-A"),
            Ok(HashOn::Header("x-a".to_owned()))
        );
        assert_eq!(HashOn::parse("ip"), Ok(HashOn::ClientIp));
        for (text, expected) in [
            ("header", "write \"header x-tenant\""),
            ("cookie ", "`cookie` needs a name"),
            ("cookie a b", "`a b` is no name of a cookie"),
            ("header a b", "`a b` is no header name"),
            ("hedaer x-a", "did you mean `header`?"),
            ("client_ip 4", "write \"client_ip\", \"header NAME\""),
        ] {
            let error = HashOn::parse(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
