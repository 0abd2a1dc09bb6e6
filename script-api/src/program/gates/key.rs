//! Whom a limit counts for.

use std::net::{IpAddr, Ipv6Addr};

use crate::{
    request::{Request, cookie_value, header_text, query_values},
    state::Key,
    suggest::nearest,
};

/// What of a request tells those apart who are counted one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateKey {
    /// The client's address; of an IPv6 address the first 64 bits, because whoever has one address
    /// has all of these (RFC 6177).
    Ip,
    /// The first value of a header field, whose name is in lower case.
    Header(String),
    /// The first value of a query parameter.
    Query(String),
    /// The value of a cookie.
    Cookie(String),
    /// The host that is asked for.
    Host,
    /// Nothing: all requests of a route count together.
    Route,
}

impl GateKey {
    /// How keys are written, for messages.
    const FORMS: &'static str =
        "\"ip\", \"header:NAME\", \"query:NAME\", \"cookie:NAME\", \"host\" or \"route\"";

    /// Reads `"ip"`, `"header:x-api-key"` and so on.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (kind, name) = text.split_once(':').unwrap_or((text, ""));
        let named = matches!(kind, "header" | "query" | "cookie");
        if named && name.is_empty() {
            return Err(format!(
                "`{kind}` needs a name: write \"{kind}:{}\"",
                if kind == "header" {
                    "x-api-key"
                } else {
                    "name"
                }
            ));
        }
        match kind {
            "header" => {
                let name = http::HeaderName::from_bytes(name.as_bytes())
                    .map_err(|_| format!("`{name}` is no header name"))?;
                Ok(Self::Header(name.as_str().to_owned()))
            }
            "query" => Ok(Self::Query(name.to_owned())),
            "cookie" => Ok(Self::Cookie(name.to_owned())),
            _ if text == "ip" => Ok(Self::Ip),
            _ if text == "host" => Ok(Self::Host),
            _ if text == "route" => Ok(Self::Route),
            _ => {
                let kinds = ["ip", "header", "query", "cookie", "host", "route"];
                let hint = nearest(kind, kinds).map(|near| format!(" (did you mean `{near}`?)"));
                Err(format!(
                    "there is no key `{text}`{}; write {}",
                    hint.unwrap_or_default(),
                    Self::FORMS
                ))
            }
        }
    }

    /// Gives `run` the key of this request. Who lacks what tells him apart is counted by his address,
    /// and no value that a client can send is taken for an address: so leaving a key out gains
    /// nothing, and nobody can use up what others have.
    pub(super) fn with<R>(
        &self,
        request: &dyn Request,
        label: &str,
        run: impl FnOnce(&Key<'_>) -> R,
    ) -> R {
        let found = match self {
            Self::Ip => return run(&Key::from(&*address_text(request.client_ip()))),
            Self::Route => return run(&Key::from(label)),
            Self::Host => return run(&Key::from(request.host())),
            Self::Header(name) => request.header(name).map(header_text),
            Self::Query(name) => {
                let value = query_values(request.query_string(), name).next();
                return match value.filter(|value| !value.is_empty()) {
                    Some(value) => run(&Key::from(&*value)),
                    None => run(&absent(request)),
                };
            }
            Self::Cookie(name) => {
                for line in request.headers("cookie") {
                    let line = header_text(line);
                    let value = cookie_value(&line, name);
                    if let Some(value) = value.filter(|value| !value.is_empty()) {
                        return run(&Key::from(value));
                    }
                }
                return run(&absent(request));
            }
        };
        match found.filter(|value| !value.is_empty()) {
            Some(value) => run(&Key::from(&*value)),
            None => run(&absent(request)),
        }
    }
}

impl std::fmt::Display for GateKey {
    /// As the program writes it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ip => f.write_str("ip"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::Cookie(name) => write!(f, "cookie:{name}"),
            Self::Host => f.write_str("host"),
            Self::Route => f.write_str("route"),
        }
    }
}

/// The key of a client by his address.
fn address_text(address: IpAddr) -> String {
    match shared_part(address) {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(network) => format!("{network}/64"),
    }
}

fn absent(request: &dyn Request) -> Key<'static> {
    Key::instead_of(shared_part(request.client_ip()))
}

/// What of an address its holder can't choose.
pub(in crate::program) fn shared_part(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(network))
        }
        v4 => v4,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::memory::MemoryRequest;

    fn key(text: &str, request: &MemoryRequest) -> Vec<u8> {
        let key = GateKey::parse(text).unwrap();
        assert_eq!(key.to_string(), text);
        key.with(request, "/label", |key| key.as_bytes().to_vec())
    }

    fn from(address: &str) -> MemoryRequest {
        MemoryRequest {
            client_ip: address.parse().unwrap(),
            ..MemoryRequest::new("GET", "h", "/?a=x+1&a=2&e=")
        }
    }

    #[test]
    fn finds_what_tells_clients_apart() {
        let request = from("192.0.2.1")
            .with_header("x-key", "k1")
            .with_header("x-key", "k2")
            .with_header("cookie", "b=; a=1")
            .with_header("cookie", "s=z");
        assert_eq!(key("ip", &request), b"192.0.2.1");
        assert_eq!(key("header:x-key", &request), b"k1");
        assert_eq!(key("query:a", &request), b"x 1");
        assert_eq!(key("cookie:s", &request), b"z");
        assert_eq!(key("host", &request), b"h");
        assert_eq!(key("route", &request), b"/label");
    }

    #[test]
    fn one_network_of_a_customer_is_one_client() {
        assert_eq!(key("ip", &from("2001:db8::1")), b"2001:db8::/64");
        assert_eq!(key("ip", &from("2001:db8::ffff:1")), b"2001:db8::/64");
        assert_eq!(key("ip", &from("2001:db8:0:1::1")), b"2001:db8:0:1::/64");
        assert_eq!(key("ip", &from("::ffff:192.0.2.1")), b"192.0.2.1");
    }

    #[test]
    fn who_has_no_key_is_counted_by_his_address_and_nobody_can_pass_for_him() {
        let request = from("192.0.2.1").with_header("x-empty", "");
        let absent = key("header:x-key", &request);
        for also in ["header:x-empty", "query:b", "query:e", "cookie:a"] {
            assert_eq!(key(also, &request), absent, "{also}");
        }
        let other = from("192.0.2.2").with_header("x-key", "192.0.2.1");
        assert_ne!(key("header:x-key", &other), absent);
        assert!(std::str::from_utf8(&absent).is_err());
        assert_ne!(key("header:x-none", &from("192.0.2.2")), absent);
    }

    #[test]
    fn says_what_a_key_looks_like() {
        for (text, expected) in [
            (
                "header",
                "`header` needs a name: write \"header:x-api-key\"",
            ),
            ("cookie:", "`cookie` needs a name"),
            ("header:a b", "`a b` is no header name"),
            ("hoast", "did you mean `host`?"),
            ("ip:4", "write \"ip\", \"header:NAME\""),
        ] {
            let error = GateKey::parse(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
