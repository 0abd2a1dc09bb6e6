//! The native filters of a route: path and headers.

use edgewright_script::program::{HeaderChange, Route};
use http::{HeaderName, header};
use pingora_http::{RequestHeader, ResponseHeader};

use super::{context::State, path, view};
use crate::generation::Generation;

/// Makes of the client's request what the upstream gets.
pub(super) fn change_request(generation: &Generation, state: &State, upstream: &mut RequestHeader) {
    let Some(route) = state.route.map(|route| generation.route(route)) else {
        return;
    };
    if (route.strip_prefix.is_some() || route.rewrite.is_some())
        && let Some(target) = target(route, state, upstream)
    {
        path::set_target(upstream, &target);
    }
    for change in &route.request_headers {
        // Names and values were checked when the program was loaded, so nothing can fail here.
        let _ = match change {
            HeaderChange::Set(name, value) => upstream.insert_header(name.clone(), value.clone()),
            HeaderChange::Add(name, value) => upstream
                .append_header(name.clone(), value.clone())
                .map(|_| ()),
            HeaderChange::Remove(name) => {
                upstream.remove_header(name);
                Ok(())
            }
        };
    }
}

/// The path and query that the upstream gets; `None` when they stay.
fn target(route: &Route, state: &State, upstream: &RequestHeader) -> Option<String> {
    let current = upstream.uri.path();
    let stripped = route
        .strip_prefix
        .as_deref()
        .map_or(current, |prefix| strip(current, prefix));
    let query = upstream.uri.query();
    let mut target = String::with_capacity(current.len() + query.map_or(0, str::len) + 1);
    let mut has_query = false;
    match &route.rewrite {
        None if stripped.len() == current.len() => return None,
        None => target.push_str(stripped),
        Some(template) => {
            template.render(
                view::matched_path(state, current),
                &state.captures,
                &mut target,
            );
            has_query = template.has_query();
        }
    }
    if let (false, Some(query)) = (has_query, query) {
        target.push('?');
        target.push_str(query);
    }
    Some(target)
}

/// Takes whole segments off the front of a path: `/api` off `/api/x` and `/api`, not off `/apix`.
fn strip<'p>(path: &'p str, prefix: &str) -> &'p str {
    match path.strip_prefix(prefix) {
        Some("") => "/",
        Some(rest) if rest.starts_with('/') => rest,
        _ => path,
    }
}

/// Fields that are about a connection and that a Connection field need not name.
const OF_THE_CONNECTION: [HeaderName; 2] = [
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Makes of the upstream's response what is allowed to pass: fields that belong to the other
/// connection go, and so does the framing of a response without a body
/// (RFC 9110 section 7.6.1, RFC 9112 section 6).
pub(super) fn clean_response(response: &mut ResponseHeader) {
    if let Some(nominated) = response.headers.get(header::CONNECTION)
        && !is_plain_connection(nominated.as_bytes())
        && let Ok(names) = nominated.to_str()
    {
        let names: Vec<String> = names
            .split(',')
            .map(|name| name.trim().to_owned())
            .collect();
        for name in names {
            let framing = [
                "close",
                "keep-alive",
                "upgrade",
                "transfer-encoding",
                "content-length",
            ];
            if !framing.iter().any(|known| name.eq_ignore_ascii_case(known)) {
                response.remove_header(name.as_str());
            }
        }
    }
    for field in &OF_THE_CONNECTION {
        if response.headers.contains_key(field) {
            response.remove_header(field);
        }
    }
    let status = response.status.as_u16();
    if status == 204 || (100..200).contains(&status) {
        response.remove_header(&header::CONTENT_LENGTH);
        response.remove_header(&header::TRANSFER_ENCODING);
    }
}

fn is_plain_connection(value: &[u8]) -> bool {
    value.eq_ignore_ascii_case(b"keep-alive") || value.eq_ignore_ascii_case(b"close")
}

/// Applies a route's changes to a response header.
pub(super) fn change_response(response: &mut ResponseHeader, changes: &[HeaderChange]) {
    for change in changes {
        let _ = match change {
            HeaderChange::Set(name, value) => response.insert_header(name.clone(), value.clone()),
            HeaderChange::Add(name, value) => response
                .append_header(name.clone(), value.clone())
                .map(|_| ()),
            HeaderChange::Remove(name) => {
                response.remove_header(name);
                Ok(())
            }
        };
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn strips_whole_segments() {
        assert_eq!(strip("/api/x", "/api"), "/x");
        assert_eq!(strip("/api", "/api"), "/");
        assert_eq!(strip("/api/", "/api"), "/");
        assert_eq!(strip("/apix", "/api"), "/apix");
    }

    #[test]
    fn cleans_responses() {
        let mut response = ResponseHeader::build(204, None).unwrap();
        for (name, value) in [
            ("content-length", "2"),
            ("keep-alive", "timeout=5"),
            ("connection", "X-Secret, close"),
            ("x-secret", "1"),
            ("x-kept", "1"),
        ] {
            response.insert_header(name, value).unwrap();
        }
        clean_response(&mut response);
        let names: Vec<&str> = response.headers.keys().map(|name| name.as_str()).collect();
        assert_eq!(names, ["connection", "x-kept"]);
    }
}
