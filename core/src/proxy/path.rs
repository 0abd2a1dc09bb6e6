//! The path of a request: one normal form for matching, scripts and the upstream.

use std::borrow::Cow;

use edgewright_script::path::{PathError, PathPolicy, normalize};
use http::Uri;
use pingora_http::RequestHeader;

/// Brings the path into its normal form and the target into origin form. Gives the path as sent,
/// when that was another one.
///
/// # Errors
/// When the path has no normal form under `policy`.
pub(super) fn to_normal(
    header: &mut RequestHeader,
    policy: &PathPolicy,
) -> Result<Option<String>, PathError> {
    let raw = header.raw_path();
    let origin = origin_form(raw);
    if origin == b"*" {
        return Ok(None);
    }
    let (path, query) = split(origin);
    // `http://host` and `http://host?q`: an empty path means `/`.
    let path = if path.is_empty() { b"/" } else { path };
    let normal = normalize(path, policy)?;
    if matches!(normal, Cow::Borrowed(_)) && origin.len() == raw.len() && query_is_plain(query) {
        return Ok(None);
    }
    let sent = String::from_utf8_lossy(path).into_owned();
    let mut target = normal.into_owned();
    if let Some(query) = query {
        target.push('?');
        push_query(&mut target, query);
    }
    set_target(header, &target);
    Ok(Some(sent))
}

/// Replaces the path and keeps the query. `path` is in normal form.
pub(super) fn set(header: &mut RequestHeader, path: &str) {
    let target = match header.uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    set_target(header, &target);
}

/// Replaces path and query. `target` begins with a path in normal form.
pub(super) fn set_target(header: &mut RequestHeader, target: &str) {
    // A normal path and an encoded query are always a valid target.
    if let Ok(uri) = Uri::try_from(target) {
        header.set_uri(uri);
    }
}

/// Takes scheme and authority off an absolute target (RFC 9112 section 3.2.2); the Host that came
/// with it is the same, or Pingora has refused the request.
fn origin_form(target: &[u8]) -> &[u8] {
    if target.first() == Some(&b'/') {
        return target;
    }
    let Some(scheme_end) = target.windows(3).position(|window| window == b"://") else {
        return target;
    };
    let rest = &target[scheme_end + 3..];
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?'));
    &rest[end.unwrap_or(rest.len())..]
}

fn split(target: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'?', target) {
        Some(mark) => (&target[..mark], Some(&target[mark + 1..])),
        None => (target, None),
    }
}

fn query_is_plain(query: Option<&[u8]>) -> bool {
    query.is_none_or(|query| query.iter().all(u8::is_ascii_graphic))
}

/// Percent-encodes what can't stand in a query; everything else stays as it was sent.
fn push_query(target: &mut String, query: &[u8]) {
    for &byte in query {
        if byte.is_ascii_graphic() {
            target.push(char::from(byte));
        } else {
            target.push_str(percent_encoding::percent_encode_byte(byte));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn normal(target: &str) -> (String, Option<String>) {
        let mut header = RequestHeader::build("GET", target.as_bytes(), None).unwrap();
        let sent = to_normal(&mut header, &PathPolicy::default()).unwrap();
        (header.uri.to_string(), sent)
    }

    #[test]
    fn what_is_normal_stays_untouched() {
        assert_eq!(normal("/a/b?x=%2f&y"), ("/a/b?x=%2f&y".into(), None));
        assert_eq!(normal("/"), ("/".into(), None));
    }

    #[test]
    fn other_forms_become_one() {
        assert_eq!(normal("/a/../%61dmin?q").0, "/admin?q");
        assert_eq!(normal("/a/../x").1.as_deref(), Some("/a/../x"));
        assert_eq!(normal("http://h/a?q").0, "/a?q");
        assert_eq!(normal("http://h").0, "/");
        assert_eq!(normal("http://h?q=1").0, "/?q=1");
    }
}
