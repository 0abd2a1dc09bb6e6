//! Cookies as a program writes them: `name=value` of a request, and Set-Cookie lines (RFC 6265bis).

use std::fmt::Write as _;

/// Bytes of a name and its value together, and of the value of an attribute: clients ignore what is
/// longer (RFC 6265bis section 5.6).
const LONGEST: usize = 4096;
const LONGEST_ATTRIBUTE: usize = 1024;

/// Who else gets a cookie when a request comes from another site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SameSite {
    /// Nobody.
    Strict,
    /// Only a navigation to this site.
    Lax,
    /// Everybody.
    None,
}

impl SameSite {
    /// How it is written.
    pub const NAMES: [&'static str; 3] = ["Strict", "Lax", "None"];

    /// The one with this name, in upper or lower case.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Strict, Self::Lax, Self::None];
        all.into_iter()
            .find(|one| one.name().eq_ignore_ascii_case(name))
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Strict => Self::NAMES[0],
            Self::Lax => Self::NAMES[1],
            Self::None => Self::NAMES[2],
        }
    }
}

/// The attributes of a cookie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes {
    /// Where it is sent to; `/` unless given. Without one a client would take the folder of the request.
    pub path: String,
    /// The host and all below it; without one only the host itself.
    pub domain: Option<String>,
    /// Seconds; 0 removes it. Without one it lives as long as the client's session.
    pub max_age: Option<u64>,
    /// Whether scripts of the page can't see it. They can't unless they are meant to.
    pub http_only: bool,
    /// Whether it is sent over TLS only.
    pub secure: bool,
    /// [`SameSite::Lax`] unless given.
    pub same_site: SameSite,
}

impl Default for Attributes {
    fn default() -> Self {
        Self {
            path: "/".to_owned(),
            domain: None,
            max_age: None,
            http_only: true,
            secure: false,
            same_site: SameSite::Lax,
        }
    }
}

/// Checks the name and the value of a cookie.
///
/// # Errors
/// When the name is no token, the value has what can't stand in one (RFC 6265bis section 4.1.1), or both
/// are longer than clients keep.
pub fn check(name: &str, value: &str) -> Result<(), String> {
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(format!("`{}` is no name of a cookie", name.escape_debug()));
    }
    if !value.bytes().all(is_octet) {
        return Err(format!(
            "the value of the cookie `{name}` can't hold spaces, quotes, `,`, `;`, `\\` or what is no \
             ASCII: give it `url_encode(..)` or `base64url(..)`"
        ));
    }
    let length = name.len() + value.len();
    if length > LONGEST {
        return Err(format!(
            "the cookie `{name}` has {length} bytes, and clients keep no more than {LONGEST}"
        ));
    }
    Ok(())
}

/// The Set-Cookie line of a cookie.
///
/// # Errors
/// As [`check`], and when clients would refuse it for its attributes.
pub fn line(name: &str, value: &str, attributes: &Attributes) -> Result<String, String> {
    check(name, value)?;
    check_attributes(name, attributes)?;
    let mut line = format!("{name}={value}; Path={}", attributes.path);
    if let Some(domain) = &attributes.domain {
        line.push_str("; Domain=");
        line.push_str(domain);
    }
    if let Some(seconds) = attributes.max_age {
        // Writing to a text never fails.
        let _ = write!(line, "; Max-Age={seconds}");
    }
    if attributes.secure {
        line.push_str("; Secure");
    }
    if attributes.http_only {
        line.push_str("; HttpOnly");
    }
    line.push_str("; SameSite=");
    line.push_str(attributes.same_site.name());
    Ok(line)
}

/// Whether the Set-Cookie line sets the cookie called `name`.
pub fn sets(line: &[u8], name: &str) -> bool {
    let pair = line.split(|&byte| byte == b';').next().unwrap_or(line);
    let end = memchr::memchr(b'=', pair);
    end.is_some_and(|end| pair[..end].trim_ascii() == name.as_bytes())
}

fn check_attributes(name: &str, attributes: &Attributes) -> Result<(), String> {
    let path = attributes.path.as_str();
    let in_path = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b';';
    if !path.starts_with('/') || !path.bytes().all(in_path) || path.len() > LONGEST_ATTRIBUTE {
        return Err(format!(
            "`{}` is no path of a cookie: write one as \"/\"",
            path.escape_debug()
        ));
    }
    if let Some(domain) = &attributes.domain {
        let in_domain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
        let bad = domain.is_empty()
            || domain.starts_with('.')
            || domain.ends_with('.')
            || !domain.bytes().all(in_domain)
            || domain.len() > LONGEST_ATTRIBUTE;
        if bad {
            return Err(format!(
                "`{}` is no domain of a cookie: write one as \"example.com\"",
                domain.escape_debug()
            ));
        }
    }
    if attributes.same_site == SameSite::None && !attributes.secure {
        return Err(format!(
            "clients refuse the cookie `{name}`: one with `same_site: \"None\"` is `secure: true` too"
        ));
    }
    // Clients know these in any case (RFC 6265bis section 5.4).
    let prefixed = |prefix: &str| {
        let start = name.get(..prefix.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let host = prefixed("__Host-");
    if (host || prefixed("__Secure-")) && !attributes.secure {
        return Err(format!(
            "clients refuse the cookie `{name}`: with this prefix it is `secure: true`"
        ));
    }
    if host && (attributes.domain.is_some() || path != "/") {
        return Err(format!(
            "clients refuse the cookie `{name}`: with this prefix its path is \"/\" and it has no domain"
        ));
    }
    Ok(())
}

/// RFC 9110 section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// `cookie-octet` of RFC 6265bis section 4.1.1.
fn is_octet(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\')
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn secure() -> Attributes {
        Attributes {
            secure: true,
            ..Attributes::default()
        }
    }

    #[test]
    fn lines_have_what_was_asked_for() {
        let plain = line("a", "1", &Attributes::default());
        assert_eq!(plain.unwrap(), "a=1; Path=/; HttpOnly; SameSite=Lax");
        let all = Attributes {
            path: "/app".to_owned(),
            domain: Some("example.com".to_owned()),
            max_age: Some(60),
            http_only: false,
            secure: true,
            same_site: SameSite::None,
        };
        assert_eq!(
            line("a", "", &all).unwrap(),
            "a=; Path=/app; Domain=example.com; Max-Age=60; Secure; SameSite=None"
        );
    }

    #[test]
    fn nothing_in_a_cookie_can_become_an_attribute_or_another_line() {
        for (name, value) in [
            ("", "1"),
            ("a b", "1"),
            ("a=b", "1"),
            ("a;", "1"),
            ("a", "1; Domain=evil.example"),
            ("a", "1\r\nset-cookie: b=2"),
            ("a", "x y"),
            ("a", "\u{e9}"),
        ] {
            assert!(
                line(name, value, &Attributes::default()).is_err(),
                "{name} {value}"
            );
        }
        for path in ["", "app", "/;Domain=evil.example", "/\n"] {
            let path = path.to_owned();
            let attributes = Attributes { path, ..secure() };
            assert!(line("a", "1", &attributes).is_err());
        }
        for domain in ["", ".example.com", "a b", "a;b", "example.com."] {
            let domain = Some(domain.to_owned());
            let attributes = Attributes { domain, ..secure() };
            assert!(line("a", "1", &attributes).is_err());
        }
        assert!(line("a", &"x".repeat(4095), &secure()).is_ok());
        assert!(line("a", &"x".repeat(4096), &secure()).is_err());
    }

    #[test]
    fn what_clients_refuse_is_refused_here() {
        let insecure = Attributes::default();
        let with_domain = Attributes {
            domain: Some("example.com".to_owned()),
            ..secure()
        };
        let below = Attributes {
            path: "/app".to_owned(),
            ..secure()
        };
        assert!(line("__Host-id", "1", &secure()).is_ok());
        assert!(line("__Secure-id", "1", &with_domain).is_ok());
        for (name, attributes) in [
            ("__Host-id", &insecure),
            ("__host-id", &insecure),
            ("__Host-id", &with_domain),
            ("__Host-id", &below),
            ("__Secure-id", &insecure),
            (
                "a",
                &Attributes {
                    same_site: SameSite::None,
                    ..Attributes::default()
                },
            ),
        ] {
            assert!(
                line(name, "1", attributes).unwrap_err().contains(name),
                "{name}"
            );
        }
    }

    #[test]
    fn lines_are_told_by_their_names() {
        assert!(sets(b"a=1; Path=/", "a") && sets(b" a = 1", "a"));
        assert!(!sets(b"ab=1", "a") && !sets(b"b=1; a=2", "a") && !sets(b"a", "a"));
    }
}
