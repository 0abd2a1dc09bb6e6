//! The native filters of a route: path and headers.

use edgewright_script::{
    path::{Handling, PathError, PathPolicy, normalize},
    program::{HeaderChange, Route},
    router::Substituted,
};
use http::{HeaderName, HeaderValue, Version, header};
use pingora_http::{RequestHeader, ResponseHeader};

use smallvec::SmallVec;

use super::{context::State, gates, hygiene, path, view};
use crate::generation::Generation;

/// Makes of the client's request what the upstream gets.
///
/// # Errors
/// When `.rewrite_regex` makes of the path what has no normal form.
pub(super) fn change_request(
    generation: &Generation,
    state: &State,
    upstream: &mut RequestHeader,
) -> Result<(), PathError> {
    // HTTP/1.0 may come without a Host; HTTP/1.1 may not go on without one.
    if !upstream.headers.contains_key(header::HOST)
        && let Some(picked) = &state.picked
    {
        let _ = upstream.insert_header(header::HOST, picked.address().to_owned());
    }
    let Some(route) = state.route.map(|route| generation.route(route)) else {
        return Ok(());
    };
    if !route.later.on_response_body.is_empty() {
        ask_for_plain_and_whole(upstream);
    }
    if let Some(body) = state
        .rare
        .as_ref()
        .and_then(|rare| rare.request_body.as_ref())
    {
        body.frame(upstream);
    }
    let changes_path =
        route.strip_prefix.is_some() || route.rewrite.is_some() || route.rewrite_regex.is_some();
    if changes_path
        && let Some(target) = target(route, state, upstream, generation.program.path_policy())?
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
    Ok(())
}

/// Hooks that are to see the body need all of it, and not coded: decoding what was coded for nothing
/// would cost both sides.
fn ask_for_plain_and_whole(upstream: &mut RequestHeader) {
    for name in [header::RANGE, header::IF_RANGE] {
        upstream.remove_header(&name);
    }
    let identity = HeaderValue::from_static("identity");
    let _ = upstream.insert_header(header::ACCEPT_ENCODING, identity);
}

/// The path and query that the upstream gets; `None` when they stay.
fn target(
    route: &Route,
    state: &State,
    upstream: &RequestHeader,
    policy: &PathPolicy,
) -> Result<Option<String>, PathError> {
    let current = upstream.uri.path();
    let stripped = route
        .strip_prefix
        .as_deref()
        .map_or(current, |prefix| strip(current, prefix));
    let query = upstream.uri.query();
    let mut target = String::with_capacity(current.len() + query.map_or(0, str::len) + 1);
    let mut has_query = false;
    match &route.rewrite {
        None => {
            let substitution = route.rewrite_regex.as_ref();
            match substitution.and_then(|substitution| substitution.apply(stripped)) {
                Some(new) => return substituted(new, query, policy).map(Some),
                None if stripped.len() == current.len() => return Ok(None),
                None => target.push_str(stripped),
            }
        }
        Some(template) => {
            let matched = view::matched_path(state, current);
            // A path that a hook has set is what rewrite starts from, where it fits the pattern.
            let again = (matched != current).then(|| route.pattern.captures(current));
            match again.flatten() {
                Some(captures) => template.render(current, &captures, &mut target),
                None => template.render(matched, &state.captures, &mut target),
            }
            has_query = template.has_query();
        }
    }
    if policy.empty_segment == Handling::Reject {
        close_gaps(&mut target);
    }
    if let (false, Some(query)) = (has_query, query) {
        target.push('?');
        target.push_str(query);
    }
    Ok(Some(target))
}

/// The target after `.rewrite_regex`. A pattern can cut through an escape or put parts together that
/// mean something, so the path is brought into its normal form again.
fn substituted(
    new: Substituted,
    query: Option<&str>,
    policy: &PathPolicy,
) -> Result<String, PathError> {
    let mut path = new.path;
    if policy.empty_segment == Handling::Reject {
        close_gaps(&mut path);
    }
    let mut target = normalize(path.as_bytes(), policy)?.into_owned();
    if let Some(query) = new.query.as_deref().or(query) {
        target.push('?');
        target.push_str(query);
    }
    Ok(target)
}

/// Takes out empty segments of the path, which an empty capture between two slashes leaves.
fn close_gaps(target: &mut String) {
    while let Some(gap) = target.find("//") {
        if target.find('?').is_some_and(|query| query < gap) {
            return;
        }
        target.remove(gap);
    }
}

/// Takes whole segments off the front of a path: `/api` off `/api/x` and `/api`, not off `/apix`.
fn strip<'p>(path: &'p str, prefix: &str) -> &'p str {
    match path.strip_prefix(prefix) {
        Some("") => "/",
        Some(rest) if rest.starts_with('/') => rest,
        _ => path,
    }
}

/// What stands in an upstream's response that must not pass as it is.
#[derive(Debug, Default)]
struct Found {
    nominations: bool,
    foreign_coding: bool,
    coding: bool,
    lengths: u8,
    /// One of them is no number, or a list of them (RFC 9112 section 6.3 allows to refuse it).
    odd_length: bool,
    upgrade: bool,
    /// Fields that are about the connection although no Connection field need name them.
    of_the_connection: SmallVec<[HeaderName; 2]>,
}

impl Found {
    /// Goes over the fields once; looking up each that matters would take much longer.
    fn in_header(response: &ResponseHeader) -> Self {
        let mut found = Self::default();
        for (name, value) in &response.headers {
            let name_text = name.as_str();
            // Most fields have names of other lengths.
            if !matches!(name_text.len(), 2 | 7 | 10 | 14 | 16 | 17) {
                continue;
            }
            match name_text {
                "connection" => {
                    found.nominations |= !hygiene::is_plain_connection(value.as_bytes());
                }
                "transfer-encoding" => {
                    // Twice the same is chunks of chunks.
                    found.foreign_coding |=
                        found.coding || !value.as_bytes().eq_ignore_ascii_case(b"chunked");
                    found.coding = true;
                }
                "content-length" => {
                    found.lengths = found.lengths.saturating_add(1);
                    found.odd_length |= !value.as_bytes().iter().all(u8::is_ascii_digit);
                }
                "upgrade" => found.upgrade = true,
                "keep-alive" | "proxy-connection" | "te" | "trailer" => {
                    found.of_the_connection.push(name.clone());
                }
                _ => {}
            }
        }
        found
    }
}

/// Makes of the upstream's response what is allowed to pass: fields that belong to the other
/// connection go (RFC 9110 section 7.6.1), and so does framing that says nothing or something
/// twice (RFC 9112 section 6).
///
/// # Errors
/// When it has a transfer coding that can't be undone here.
pub(super) fn clean_response(response: &mut ResponseHeader) -> Result<(), &'static str> {
    let found = Found::in_header(response);
    if found.foreign_coding {
        return Err("a transfer coding other than chunked");
    }
    if found.odd_length {
        return Err("a Content-Length that is not one number");
    }
    if found.nominations {
        remove_nominated(response);
    }
    for name in &found.of_the_connection {
        response.remove_header(name);
    }
    let status = response.status.as_u16();
    if found.upgrade && status != 101 {
        response.remove_header(&header::UPGRADE);
    }
    if (found.lengths > 0 || found.coding) && (status == 204 || (100..200).contains(&status)) {
        response.remove_header(&header::CONTENT_LENGTH);
        response.remove_header(&header::TRANSFER_ENCODING);
    } else if found.lengths > 1
        && let Some(length) = response.headers.get(header::CONTENT_LENGTH).cloned()
    {
        // Pingora refuses lengths that differ.
        let _ = response.insert_header(header::CONTENT_LENGTH, length);
    }
    if response.version != Version::HTTP_11 {
        response.set_version(Version::HTTP_11);
    }
    Ok(())
}

fn remove_nominated(response: &mut ResponseHeader) {
    let lines = response.headers.get_all(header::CONNECTION);
    let names: Vec<String> = lines
        .iter()
        .flat_map(|line| line.to_str().unwrap_or_default().split(','))
        .map(|name| name.trim().to_owned())
        .collect();
    for name in names {
        let framing = [
            "",
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

/// Adds what a service that was asked about the request wants the client to get.
pub(super) fn add_response_fields(response: &mut ResponseHeader, state: &State) {
    let Some(rare) = &state.rare else { return };
    for (name, value) in &rare.response_fields {
        let _ = if *name == header::SET_COOKIE {
            response
                .append_header(name.clone(), value.clone())
                .map(|_| ())
        } else {
            response.insert_header(name.clone(), value.clone())
        };
    }
}

/// Applies a route's changes to a response header, and says who may read it.
pub(super) fn change_response(response: &mut ResponseHeader, route: &Route, state: &State) {
    for change in &route.response_headers {
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
    gates::say_cors(response, route, state);
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
    fn closes_gaps_of_the_path() {
        let closed = |text: &str| {
            let mut target = text.to_owned();
            close_gaps(&mut target);
            target
        };
        assert_eq!(closed("/n//1///x?u=http://a"), "/n/1/x?u=http://a");
        assert_eq!(closed("/n/1?//"), "/n/1?//");
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
        clean_response(&mut response).unwrap();
        let names: Vec<&str> = response.headers.keys().map(|name| name.as_str()).collect();
        assert_eq!(names, ["connection", "x-kept"]);
    }

    #[test]
    fn framing_that_clients_may_read_otherwise_is_refused() {
        let clean = |fields: &[(&'static str, &'static str)]| {
            let mut response = ResponseHeader::build(200, None).unwrap();
            for (name, value) in fields {
                response.append_header(*name, *value).unwrap();
            }
            clean_response(&mut response).map(|()| response.headers.len())
        };
        for fields in [
            &[("content-length", "5, 5")][..],
            &[("content-length", "+5")],
            &[
                ("transfer-encoding", "chunked"),
                ("transfer-encoding", "chunked"),
            ],
            &[("transfer-encoding", "gzip")],
        ] {
            assert!(clean(fields).is_err(), "{fields:?}");
        }
        assert_eq!(
            clean(&[("content-length", "5"), ("content-length", "5")]),
            Ok(1)
        );
        assert_eq!(clean(&[("transfer-encoding", "Chunked")]), Ok(1));
    }
}
