//! The hosts of a site, and which site a Host header belongs to.

mod lookup;
#[cfg(test)]
mod tests;

pub use lookup::{DuplicateHost, HostRouter};

use super::PatternError;
use std::fmt;
use std::net::Ipv6Addr;

/// The most bytes in a host name without its trailing dot (RFC 1035 2.3.4, less the length bytes
/// of the ends).
const MAX_NAME: usize = 253;
/// The most bytes in a label (RFC 1035 2.3.4).
const MAX_LABEL: usize = 63;

/// The host that a site serves: `admin.example.com`, `*.example.com`, `[fd00::1]` or `*`.
/// [`Display`](fmt::Display) gives it in lower case.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum HostPattern {
    /// This name or IPv4 address, in lower case.
    Name(Box<str>),
    /// This IPv6 address, in brackets in the Host header.
    Ipv6(Ipv6Addr),
    /// Names with one or more labels before this one: `example.com` for `*.example.com`.
    Wildcard(Box<str>),
    /// Any host, also a missing one.
    Any,
}

impl HostPattern {
    /// Reads a host. Upper case becomes lower case, a trailing dot is left out.
    ///
    /// # Errors
    /// A scheme, path or port; a `*` other than as the whole first label; a label that is empty, longer than 63
    /// bytes, begins or ends with `-` or has other characters than ASCII letters, digits, `-`
    /// and `_`; a name longer than 253 bytes; a bad IPv6 address, or one without brackets.
    pub fn parse(text: &str) -> Result<HostPattern, PatternError> {
        let whole = 0..text.len();
        if text.is_empty() {
            return Err(PatternError::new(whole, "empty host").help("`*` stands for any host"));
        }
        if text == "*" {
            return Ok(HostPattern::Any);
        }
        if let Some(scheme) = text.find("://") {
            return Err(PatternError::new(0..scheme + 3, "a host has no scheme")
                .help(format!("write `{}`", &text[scheme + 3..])));
        }
        if let Some(slash) = text.find('/') {
            return Err(PatternError::new(slash..text.len(), "a host has no path")
                .help(format!("write `{}`", &text[..slash])));
        }
        if text.parse::<Ipv6Addr>().is_ok() {
            return Err(
                PatternError::new(whole, "an IPv6 address stands in brackets")
                    .help(format!("write `[{text}]`")),
            );
        }
        let name_end = match text.strip_prefix('[') {
            Some(bracketed) => bracketed.find(']').map_or(text.len(), |end| end + 2),
            None => text.find(':').unwrap_or(text.len()),
        };
        let (host, port) = text.split_at(name_end);
        if port.starts_with(':') {
            let message = "a host has no port: a site answers on all listeners";
            return Err(
                PatternError::new(name_end..text.len(), message).help(format!("write `{host}`"))
            );
        }
        if let Some(address) = text.strip_prefix('[') {
            return address
                .strip_suffix(']')
                .and_then(|address| address.parse().ok())
                .map(HostPattern::Ipv6)
                .ok_or_else(|| PatternError::new(whole, "not an IPv6 address in brackets"));
        }
        let (name, offset) = match text.strip_prefix("*.") {
            Some(name) => (name, 2),
            None => (text, 0),
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        check_name(name, offset)?;
        let name = name.to_ascii_lowercase().into();
        Ok(if offset == 0 {
            HostPattern::Name(name)
        } else {
            HostPattern::Wildcard(name)
        })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostPattern::Name(name) => f.write_str(name),
            HostPattern::Ipv6(address) => write!(f, "[{address}]"),
            HostPattern::Wildcard(name) => write!(f, "*.{name}"),
            HostPattern::Any => f.write_str("*"),
        }
    }
}

/// Underscores are allowed although RFC 952 has none: such names are in use and clients send them.
fn check_name(name: &str, offset: usize) -> Result<(), PatternError> {
    let whole = offset..offset + name.len();
    if name.len() > MAX_NAME {
        return Err(PatternError::new(
            whole,
            format!("a host name has at most {MAX_NAME} bytes"),
        ));
    }
    let mut at = offset;
    for label in name.split('.') {
        let span = at..at + label.len();
        at = span.end + 1;
        if label.is_empty() {
            return Err(PatternError::new(whole, "a host name has no empty label"));
        }
        if label.contains('*') {
            return Err(
                PatternError::new(span, "`*` stands alone, as the first label of a host")
                    .help("`*.example.com` covers all names below `example.com`"),
            );
        }
        if !label.is_ascii() {
            return Err(PatternError::new(span, format!("`{label}` is not ASCII"))
                .help("write the name as clients send it, in Punycode (`xn--..`)"));
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if let Some(bad) = label.bytes().find(|byte| !allowed(*byte)) {
            let bad = char::from(bad);
            return Err(PatternError::new(
                span,
                format!("{bad:?} may not stand in a host name"),
            ));
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err(PatternError::new(
                span,
                "a label neither begins nor ends with `-`",
            ));
        }
        if label.len() > MAX_LABEL {
            return Err(PatternError::new(
                span,
                format!("a label has at most {MAX_LABEL} bytes"),
            ));
        }
    }
    Ok(())
}
