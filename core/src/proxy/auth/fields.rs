//! Header fields that say who the client is.

use http::{HeaderMap, HeaderName, HeaderValue};
use pingora_http::RequestHeader;

/// Removes what the client itself has sent under this name: also where it is written with
/// underscores, which many an upstream takes for the same (RFC 3875 section 4.1.18).
pub(super) fn remove(request: &mut RequestHeader, name: &HeaderName) {
    let alike = |other: &HeaderName| {
        let (name, other) = (name.as_str().as_bytes(), other.as_str().as_bytes());
        let same = |(a, b): (&u8, &u8)| a == b || (b"-_".contains(a) && b"-_".contains(b));
        name.len() == other.len() && name.iter().zip(other).all(same)
    };
    let found: Vec<HeaderName> = request
        .headers
        .keys()
        .filter(|key| alike(key))
        .cloned()
        .collect();
    for name in found {
        request.remove_header(&name);
    }
}

/// Sets a field in the place of what was there.
pub(super) fn set(request: &mut RequestHeader, name: &HeaderName, value: HeaderValue) {
    // A valid name and value can always be inserted.
    let _ = request.insert_header(name.clone(), value);
}

/// How often a field is there.
pub(super) enum Occurs<'h> {
    Never,
    Once(&'h HeaderValue),
    /// Whoever looks at one of them may look at another one than the upstream.
    Repeatedly,
}

/// Finds a field that may be there once (RFC 9110 section 5.3).
pub(super) fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Occurs<'h> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Occurs::Never,
        (Some(value), None) => Occurs::Once(value),
        (Some(_), Some(_)) => Occurs::Repeatedly,
    }
}

/// What stands behind an authentication scheme (RFC 9110 section 11.4), whose name knows no case.
pub(super) fn behind_scheme<'v>(value: &'v HeaderValue, scheme: &str) -> Option<&'v [u8]> {
    let (name, rest) = value.as_bytes().split_at_checked(scheme.len())?;
    let rest = rest.strip_prefix(b" ")?;
    name.eq_ignore_ascii_case(scheme.as_bytes())
        .then(|| rest.trim_ascii())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_says_of_itself_goes() {
        let mut request = RequestHeader::build("GET", b"/", None).unwrap();
        for name in ["x-user", "X_User", "x_user-id", "x-user-id", "x-use"] {
            request.append_header(name.to_owned(), "mallory").unwrap();
        }
        remove(&mut request, &HeaderName::from_static("x-user"));
        remove(&mut request, &HeaderName::from_static("x-user-id"));
        let left: Vec<&str> = request.headers.keys().map(|name| name.as_str()).collect();
        assert_eq!(left, ["x-use"]);
    }

    #[test]
    fn schemes_know_no_case() {
        let rest = |value: &'static str| {
            let value = HeaderValue::from_static(value);
            behind_scheme(&value, "Bearer").map(|rest| String::from_utf8_lossy(rest).into_owned())
        };
        assert_eq!(rest("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(rest("bEARER   abc ").as_deref(), Some("abc"));
        assert_eq!(rest("Bearer "), Some(String::new()));
        for value in ["Bearer", "Bearerabc", "Basic abc", "", "Bear", "Bearer,x"] {
            assert_eq!(rest(value), None, "{value}");
        }
    }
}
