//! `.cors(..)`: which pages of other origins may use a route (the Fetch standard, "CORS protocol").

use std::time::Duration;

use http::{HeaderName, HeaderValue, header};

/// What browsers are told of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cors {
    /// Who may.
    pub origins: Origins,
    /// Whether cookies and the like may go along.
    pub credentials: bool,
    /// The methods, with commas between, or `*`.
    pub methods: HeaderValue,
    /// The request's fields besides those that are always allowed, with commas between, or `*`.
    pub headers: Option<HeaderValue>,
    /// The response's fields that a page may read, with commas between, or `*`.
    pub expose: Option<HeaderValue>,
    /// How long a browser may keep the answer to a preflight; without it, 5 seconds.
    pub max_age: Option<Duration>,
}

/// Origins that may use a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origins {
    /// All, so nobody need be told which.
    Any,
    /// These.
    Listed(Vec<Origin>),
}

/// An origin as browsers write it, or all that differ in their first label only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// All of it, or with a wildcard what stands before it: `https://`.
    start: String,
    /// With a wildcard what stands behind it: `.example.com:8443`.
    end: Option<String>,
}

/// Fields of a response that this protocol is about; an upstream's own are replaced.
pub const CORS_FIELDS: [HeaderName; 6] = [
    header::ACCESS_CONTROL_ALLOW_ORIGIN,
    header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
    header::ACCESS_CONTROL_ALLOW_METHODS,
    header::ACCESS_CONTROL_ALLOW_HEADERS,
    header::ACCESS_CONTROL_EXPOSE_HEADERS,
    header::ACCESS_CONTROL_MAX_AGE,
];

const ANY: HeaderValue = HeaderValue::from_static("*");

impl Cors {
    /// The value of Access-Control-Allow-Origin for a request with this Origin; `None` when it has
    /// none that is allowed.
    pub fn allowed(&self, origin: Option<&HeaderValue>) -> Option<HeaderValue> {
        let listed = match &self.origins {
            Origins::Any => return Some(ANY),
            Origins::Listed(listed) => listed,
        };
        let origin = origin?;
        let text = origin.to_str().ok()?;
        let fits = listed.iter().any(|listed| listed.fits(text));
        fits.then(|| origin.clone())
    }

    /// Whether the response depends on the request's Origin, and caches must know.
    pub fn varies(&self) -> bool {
        matches!(self.origins, Origins::Listed(_))
    }

    /// The fields of a response to a request from an origin that is allowed, as [`Cors::allowed`] has
    /// it.
    pub fn fields(&self, allowed: HeaderValue, preflight: bool) -> Vec<(HeaderName, HeaderValue)> {
        let mut fields = vec![(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed)];
        if self.credentials {
            let yes = HeaderValue::from_static("true");
            fields.push((header::ACCESS_CONTROL_ALLOW_CREDENTIALS, yes));
        }
        if !preflight {
            let expose = self.expose.clone();
            fields.extend(expose.map(|names| (header::ACCESS_CONTROL_EXPOSE_HEADERS, names)));
            return fields;
        }
        fields.push((header::ACCESS_CONTROL_ALLOW_METHODS, self.methods.clone()));
        let headers = self.headers.clone();
        fields.extend(headers.map(|names| (header::ACCESS_CONTROL_ALLOW_HEADERS, names)));
        let max_age = self
            .max_age
            .map(|time| HeaderValue::from(super::limit::whole_seconds(time)));
        fields.extend(max_age.map(|seconds| (header::ACCESS_CONTROL_MAX_AGE, seconds)));
        fields
    }
}

impl Origin {
    /// Reads `https://app.example`, `http://localhost:3000` or `https://*.example.com`, where `*` is one
    /// label of the name.
    ///
    /// # Errors
    /// When no browser would send that, or it would let in more than it says.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((scheme, authority)) = text.split_once("://") else {
            return Err(match text {
                "null" => "the origin `null` is that of any page in a sandbox or a local file: \
                           whoever writes a page could use it"
                    .to_owned(),
                "*" => "`*` stands alone: `origins: \"*\"`".to_owned(),
                _ => {
                    format!("`{text}` is no origin: it has a scheme, as in \"https://{text}\"")
                }
            });
        };
        let authority_end = authority.find(['/', '?', '#']);
        if let Some(end) = authority_end {
            return Err(format!(
                "an origin ends with the host or port: write \"{scheme}://{}\"",
                &authority[..end]
            ));
        }
        let lower = text.to_ascii_lowercase();
        if lower != text {
            return Err(format!(
                "browsers send origins in lower case: write \"{lower}\""
            ));
        }
        let default_port = match scheme {
            "http" => ":80",
            "https" => ":443",
            _ => "",
        };
        if let Some(bare) = authority.strip_suffix(default_port)
            && !default_port.is_empty()
        {
            return Err(format!(
                "browsers leave out the port of the scheme: write \"{scheme}://{bare}\""
            ));
        }
        let wildcard = authority.strip_prefix("*.");
        let named = wildcard.unwrap_or(authority);
        if !is_scheme(scheme) || !is_authority(named) {
            return Err(format!(
                "`{text}` is no origin: write \"https://app.example\", \"http://localhost:3000\" or, \
                 for one label of any name, \"https://*.example.com\""
            ));
        }
        let Some(domain) = wildcard else {
            return Ok(Self {
                start: text.to_owned(),
                end: None,
            });
        };
        if !domain.contains('.') {
            return Err(format!(
                "`{text}` would let in everybody who has a name below `{domain}`"
            ));
        }
        Ok(Self {
            start: format!("{scheme}://"),
            end: Some(format!(".{domain}")),
        })
    }

    fn fits(&self, origin: &str) -> bool {
        let Some(end) = &self.end else {
            return self.start == origin;
        };
        let label = origin
            .strip_prefix(self.start.as_str())
            .and_then(|rest| rest.strip_suffix(end.as_str()));
        label.is_some_and(is_label)
    }
}

/// RFC 3986 section 3.1, in lower case.
fn is_scheme(text: &str) -> bool {
    let known = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.')
    };
    text.starts_with(|first: char| first.is_ascii_lowercase()) && text.bytes().all(known)
}

/// Host and port as they stand in an origin; an IPv6 address has brackets.
fn is_authority(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    if port.is_some_and(|port| port.starts_with('0') || port.parse::<u16>().is_err()) {
        return false;
    }
    if let Some(address) = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        return address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    !host.is_empty() && host.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    !label.is_empty()
        && label
            .bytes()
            .all(|byte| known(byte) || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn listed(texts: &[&str]) -> Cors {
        let origins = texts.iter().map(|text| Origin::parse(text).unwrap());
        Cors {
            origins: Origins::Listed(origins.collect()),
            credentials: true,
            methods: HeaderValue::from_static("GET"),
            headers: None,
            expose: Some(HeaderValue::from_static("x-total")),
            max_age: Some(Duration::from_secs(60)),
        }
    }

    fn allows(cors: &Cors, origin: &'static str) -> bool {
        let value = HeaderValue::from_static(origin);
        let allowed = cors.allowed(Some(&value));
        assert!(allowed.is_none() || allowed == Some(value) || allowed == Some(ANY));
        allowed.is_some()
    }

    #[test]
    fn lets_in_whom_it_names_and_nobody_who_looks_like_him() {
        let cors = listed(&[
            "https://app.example",
            "http://localhost:3000",
            "http://[::1]:3000",
            "https://*.example.com",
            "https://*.example.org:8443",
        ]);
        for origin in [
            "https://app.example",
            "http://localhost:3000",
            "http://[::1]:3000",
            "https://a.example.com",
            "https://b-1.example.org:8443",
        ] {
            assert!(allows(&cors, origin), "{origin}");
        }
        for origin in [
            "http://app.example",
            "https://app.example.evil.test",
            "https://xapp.example",
            "https://app.example:8443",
            "https://example.com",
            "https://.example.com",
            "https://a.b.example.com",
            "https://evil.test/.example.com",
            "https://evil.test#.example.com",
            "https://a@evil.example.com",
            "https://a.example.com.evil.test",
            "https://a.example.org",
            "HTTPS://app.example",
            "null",
            "*",
            "",
        ] {
            assert!(!allows(&cors, origin), "{origin}");
        }
        assert_eq!(cors.allowed(None), None);
    }

    #[test]
    fn anybody_need_not_be_named() {
        let cors = Cors {
            origins: Origins::Any,
            credentials: false,
            ..listed(&[])
        };
        assert_eq!(cors.allowed(None), Some(ANY));
        assert!(allows(&cors, "https://a.test") && !cors.varies());
    }

    #[test]
    fn tells_preflights_what_may_be_sent_and_others_what_may_be_read() {
        let cors = listed(&["https://a.test"]);
        let names = |preflight| {
            let fields = cors.fields(HeaderValue::from_static("https://a.test"), preflight);
            let text = |(name, value): &(HeaderName, HeaderValue)| {
                let name = name.as_str().trim_start_matches("access-control-");
                format!("{name}={}", value.to_str().unwrap())
            };
            fields.iter().map(text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            names(true),
            "allow-origin=https://a.test allow-credentials=true allow-methods=GET max-age=60"
        );
        assert_eq!(
            names(false),
            "allow-origin=https://a.test allow-credentials=true expose-headers=x-total"
        );
    }

    #[test]
    fn says_how_an_origin_is_written() {
        for (text, expected) in [
            (
                "app.example",
                "write \"https://app.example\"|it has a scheme",
            ),
            ("https://app.example/", "write \"https://app.example\""),
            ("https://App.example", "write \"https://app.example\""),
            ("https://app.example:443", "write \"https://app.example\""),
            ("http://app.example:80", "write \"http://app.example\""),
            ("null", "any page in a sandbox"),
            ("*", "`*` stands alone"),
            ("https://*.com", "everybody who has a name below `com`"),
            ("https://*", "is no origin"),
            ("https://a.*.example.com", "is no origin"),
            ("https://*.*.example.com", "is no origin"),
            ("https://a b", "is no origin"),
            ("https://", "is no origin"),
            ("ht tps://a.test", "is no origin"),
            ("://a.test", "is no origin"),
            ("https://a:99999", "is no origin"),
            ("https://user@a.test", "is no origin"),
            ("https://b\u{fc}cher.example", "is no origin"),
        ] {
            let error = Origin::parse(text).unwrap_err();
            let fits = expected.split('|').any(|part| error.contains(part));
            assert!(fits, "{text}: {error}");
        }
    }
}
