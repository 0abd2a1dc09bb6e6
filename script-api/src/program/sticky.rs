//! `.sticky(..)`: a cookie that keeps a client where it was sent to.

use data_encoding::BASE64URL_NOPAD;

use crate::{
    cookie::{self, Attributes},
    request::{Request, cookie_value, header_text},
    stable_hash::StampKey,
};

/// Kinds of stamps: one of a pool can't be taken for one of an address.
const OF_POOL: u8 = 1;

/// Bytes of the stamps.
const LENGTH: usize = 16;

/// Characters of the value: the stamps as base64url without padding.
const VALUE: usize = 22;

/// The cookie of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sticky {
    name: String,
    attributes: Attributes,
    /// Whether it goes over TLS only; `None` for as the request came.
    secure: Option<bool>,
    key: StampKey,
}

/// What a cookie says: which pool, and which of its endpoints. Stamps are digests: who has one doesn't know what it stands
/// for, and they stay the same over restarts and on all replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamps {
    /// Of the pool's name.
    pub pool: u64,
    /// Of the endpoint's address.
    pub target: u64,
}

impl Sticky {
    /// A cookie called `name`; `secure` overrides what the attributes say.
    ///
    /// # Errors
    /// When clients would refuse it.
    pub fn new(
        name: &str,
        attributes: Attributes,
        secure: Option<bool>,
        key: StampKey,
    ) -> Result<Self, String> {
        let attributes = Attributes {
            secure: secure.unwrap_or_default(),
            ..attributes
        };
        let longest = "x".repeat(VALUE);
        cookie::line(name, &longest, &attributes)?;
        Ok(Self {
            name: name.to_owned(),
            attributes,
            secure,
            key,
        })
    }

    /// The name of the cookie.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key of its stamps.
    pub fn key(&self) -> &StampKey {
        &self.key
    }

    /// The stamp of a pool.
    pub fn of_pool(&self, name: &str) -> u64 {
        self.key.stamp(OF_POOL, name)
    }

    /// What the request's cookie says; `None` when it has none that is one of these. The first one of several counts.
    pub fn read(&self, request: &dyn Request) -> Option<Stamps> {
        let lines = request.headers("cookie");
        lines.into_iter().find_map(|line| {
            let line = header_text(line);
            Some(Stamps::parse(cookie_value(&line, &self.name)?))
        })?
    }

    /// The Set-Cookie line for a response to a request that came over TLS, or not.
    ///
    /// # Errors
    /// None that [`Sticky::new`] has not found.
    pub fn line(&self, stamps: Stamps, over_tls: bool) -> Result<String, String> {
        let value = stamps.to_string();
        match self.secure {
            None if over_tls => {
                let attributes = Attributes {
                    secure: true,
                    ..self.attributes.clone()
                };
                cookie::line(&self.name, &value, &attributes)
            }
            _ => cookie::line(&self.name, &value, &self.attributes),
        }
    }
}

impl Stamps {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; LENGTH];
        if text.len() != VALUE {
            return None;
        }
        BASE64URL_NOPAD
            .decode_mut(text.as_bytes(), &mut bytes)
            .ok()?;
        let both = u128::from_be_bytes(bytes);
        Some(Self {
            pool: (both >> 64) as u64,
            target: both as u64,
        })
    }
}

impl std::fmt::Display for Stamps {
    /// As it stands in a cookie.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let both = (u128::from(self.pool) << 64) | u128::from(self.target);
        f.write_str(&BASE64URL_NOPAD.encode(&both.to_be_bytes()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::memory::MemoryRequest;

    fn sticky(secure: Option<bool>) -> Sticky {
        Sticky::new("lb", Attributes::default(), secure, StampKey::PUBLIC).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let sticky = sticky(None);
        let stamps = Stamps {
            pool: sticky.of_pool("web"),
            target: u64::MAX,
        };
        let line = sticky.line(stamps, false).unwrap();
        assert_eq!(line, format!("lb={stamps}; Path=/; HttpOnly; SameSite=Lax"));
        let sent = |cookie: &str| {
            let mut request = MemoryRequest::new("GET", "h", "/");
            request.set_header(http::header::COOKIE, cookie.parse().unwrap());
            sticky.read(&request)
        };
        assert_eq!(sent(&format!("a=b; lb={stamps}")), Some(stamps));
        assert_eq!(sent(&format!("lb=x; lb={stamps}")), None);
        for bad in [
            "lb=",
            "lb=AAAA",
            "lb=AAAAAAAAAAAAAAAAAAAAA=",
            "lb=AAAAAAAAAAAAAAAAAAAAAB",
            "a=b",
        ] {
            assert_eq!(sent(bad), None, "{bad}");
        }
        assert_eq!(sent(&format!("lb={stamps}A")), None);
    }

    #[test]
    fn it_is_secure_where_the_request_was_unless_told() {
        let stamps = Stamps { pool: 1, target: 2 };
        let is_secure = |secure, over_tls| {
            let line = sticky(secure).line(stamps, over_tls).unwrap();
            line.contains("; Secure")
        };
        assert!(is_secure(None, true) && !is_secure(None, false));
        assert!(is_secure(Some(true), false) && !is_secure(Some(false), true));
        let refused = Sticky::new("__Host-lb", Attributes::default(), None, StampKey::PUBLIC);
        assert!(refused.unwrap_err().contains("__Host-lb"));
    }
}
