//! `.cors`: preflights are answered here, and all other responses say who may read them.

use edgewright_script::program::{CORS_FIELDS, Cors, Gate, Route, gate_answer};
use http::{
    HeaderValue, Method, StatusCode,
    header::{ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY},
};
use pingora_http::ResponseHeader;

use super::{super::context::State, Admission, Exchange, refuse, view};

/// What the response to a request is to say.
#[derive(Debug)]
pub(in crate::proxy) struct CorsReply {
    /// The origin that is allowed, or `*`.
    allowed: Option<HeaderValue>,
    preflight: bool,
}

/// Answers a preflight (the Fetch standard, "CORS-preflight request"): OPTIONS with Origin and
/// Access-Control-Request-Method, where the route that it asks about has `.cors`. Nothing else is asked
/// then, as browsers send no credentials with it.
#[inline]
pub(in crate::proxy) fn preflight(exchange: &mut Exchange<'_>) -> Option<Admission> {
    let may_be = exchange.handle.program.answers_preflights()
        && exchange.session.req_header().method == Method::OPTIONS;
    if may_be {
        return answer_preflight(exchange);
    }
    None
}

fn answer_preflight(exchange: &mut Exchange<'_>) -> Option<Admission> {
    let handle = exchange.handle;
    let headers = &exchange.session.req_header().headers;
    let origin = headers.get(ORIGIN)?.clone();
    let method = headers.get(ACCESS_CONTROL_REQUEST_METHOD)?.clone();
    let method = method.to_str().ok()?;
    let found = handle.program.find_preflight(&view(exchange), method)?;
    let route = handle.route(found.route);
    let cors = route.gates.as_ref()?.cors.as_ref()?;
    let state = &mut *exchange.state;
    state.route = Some(found.route);
    state.site = Some(route.site);
    state.captures = found.captures;
    let allowed = cors.allowed(Some(&origin));
    let is_allowed = allowed.is_some();
    state.rare().cors = Some(CorsReply {
        allowed,
        preflight: true,
    });
    if is_allowed {
        return Some(Admission::Answer(no_content()));
    }
    let answer = gate_answer(StatusCode::FORBIDDEN);
    Some(refuse(Gate::Cors, answer, exchange))
}

fn no_content() -> edgewright_script::answer::Answer {
    edgewright_script::answer::Answer {
        status: StatusCode::NO_CONTENT,
        headers: Vec::new(),
        body: bytes::Bytes::new(),
    }
}

/// Notes whom the response may be shown to, before a hook can change the request's Origin.
pub(super) fn note(cors: &Cors, exchange: &mut Exchange<'_>) {
    let allowed = cors.allowed(exchange.session.req_header().headers.get(ORIGIN));
    exchange.state.rare().cors = Some(CorsReply {
        allowed,
        preflight: false,
    });
}

/// Says it, in place of what an upstream or a hook has said of it.
pub(in crate::proxy) fn say(response: &mut ResponseHeader, route: &Route, state: &State) {
    let Some(cors) = route.gates.as_ref().and_then(|gates| gates.cors.as_ref()) else {
        return;
    };
    for name in &CORS_FIELDS {
        response.remove_header(name);
    }
    if cors.varies() {
        vary_by_origin(response);
    }
    let reply = state.rare.as_ref().and_then(|rare| rare.cors.as_ref());
    let Some(CorsReply {
        allowed: Some(allowed),
        preflight,
    }) = reply
    else {
        return;
    };
    for (name, value) in cors.fields(allowed.clone(), *preflight) {
        // Names and values were checked when the program was loaded.
        let _ = response.insert_header(name, value);
    }
}

/// Tells caches, unless the response does already (RFC 9110 section 12.5.5).
fn vary_by_origin(response: &mut ResponseHeader) {
    let mut names = response
        .headers
        .get_all(VARY)
        .into_iter()
        .flat_map(|line| line.as_bytes().split(|&byte| byte == b','))
        .map(<[u8]>::trim_ascii);
    if !names.any(|name| name == b"*" || name.eq_ignore_ascii_case(b"origin")) {
        let _ = response.append_header(VARY, HeaderValue::from_static("Origin"));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn vary_names_the_origin_once() {
        for (before, after) in [
            (vec![], vec!["Origin"]),
            (vec!["accept"], vec!["accept", "Origin"]),
            (vec!["Accept, ORIGIN"], vec!["Accept, ORIGIN"]),
            (vec!["accept", "*"], vec!["accept", "*"]),
        ] {
            let mut response = ResponseHeader::build(200, None).unwrap();
            for line in before {
                response.append_header(VARY, line).unwrap();
            }
            vary_by_origin(&mut response);
            let lines: Vec<_> = response.headers.get_all(VARY).iter().collect();
            assert_eq!(lines, after);
        }
    }
}
