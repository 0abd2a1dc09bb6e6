//! `.forward_auth`: another service is asked about each request, as nginx' `auth_request` and
//! Traefik's `forwardAuth` do.

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use edgewright_script::{
    answer::Answer,
    outbound::{CallFailureKind, Incoming, Outgoing, Recipient, Reply},
    program::{ForwardAuth, ForwardCache, ForwardRules},
};
use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::{
    Denied,
    answers::{ForwardAnswers, Key, Keyed, Landed, Passed},
    fields,
    flights::Turn,
};
use crate::proxy::{
    client,
    hooks::{Exchange, while_client_stays},
    loops,
};

/// Fields of an answer that are about its connection (RFC 9110 section 7.6.1) or are written anew.
const NOT_PASSED: [HeaderName; 7] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::DATE,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// What a service has said.
enum Said {
    Passed(Passed),
    /// Its answer is for the client.
    Refused(Answer),
    /// Nothing that can be used; with the status and what the client is told.
    Failed(u16, &'static str),
}

/// Asks, and gives what the request is let through with.
pub(super) async fn check(
    forward: &ForwardAuth,
    exchange: &mut Exchange<'_>,
) -> Result<Arc<Passed>, Denied> {
    let route = exchange.state.route;
    let answers = route.and_then(|route| exchange.handle.forward_answers(route).cloned());
    match (&forward.rules.cache, answers) {
        (Some(cache), Some(answers)) if has_key(cache, exchange) => {
            kept_or_asked(forward, cache, &answers, exchange).await
        }
        _ => match ask(forward, exchange).await? {
            Said::Passed(passed) => Ok(Arc::new(passed)),
            Said::Refused(answer) => Err(Denied::Answer(answer)),
            Said::Failed(status, reason) => Err(Denied::refuse(status, reason)),
        },
    }
}

/// Writes into the request what the service has said of it, in the place of what the client has
/// said, and keeps what the response gets.
pub(super) fn apply(rules: &ForwardRules, passed: &Passed, exchange: &mut Exchange<'_>) {
    let request = exchange.session.req_header_mut();
    for name in &rules.copy {
        fields::remove(request, name);
    }
    for (name, value) in &passed.request {
        let _ = request.append_header(name.clone(), value.clone());
    }
    if !passed.response.is_empty() {
        let fields = passed.response.iter().cloned();
        exchange.state.rare().response_fields.extend(fields);
    }
}

/// An answer that is kept, or one that is asked for: by one for all who need it.
async fn kept_or_asked(
    forward: &ForwardAuth,
    cache: &ForwardCache,
    answers: &ForwardAnswers,
    exchange: &mut Exchange<'_>,
) -> Result<Arc<Passed>, Denied> {
    let key = key_of(cache, exchange);
    loop {
        if let Some(passed) = answers.get(&key, Instant::now()) {
            return Ok(passed);
        }
        let lead = match answers.flights.join(&key) {
            Turn::Lead(lead) => Some(lead),
            Turn::Follow(follow) => match while_client_stays(follow.outcome(), exchange).await? {
                Some(Landed::Passed(passed)) => return Ok(passed),
                Some(Landed::Failed(status, reason)) => return Err(Denied::refuse(status, reason)),
                Some(Landed::Ask) => None,
                None => continue,
            },
        };
        let (said, landed) = match ask(forward, exchange).await? {
            Said::Passed(passed) if passed.response.is_empty() => {
                let passed = Arc::new(passed);
                answers.keep(key, passed.clone(), Instant::now(), cache.ttl);
                (Ok(passed.clone()), Landed::Passed(passed))
            }
            // A cookie, or whatever else was made for one client.
            Said::Passed(passed) => (Ok(Arc::new(passed)), Landed::Ask),
            Said::Refused(answer) => (Err(Denied::Answer(answer)), Landed::Ask),
            Said::Failed(status, reason) => (
                Err(Denied::refuse(status, reason)),
                Landed::Failed(status, reason),
            ),
        };
        if let Some(lead) = lead {
            lead.land(landed);
        }
        return said;
    }
}

/// Whether the request has any of the fields by which answers are told apart. Without one it could be
/// anybody's, and an answer about it counts for nobody else.
fn has_key(cache: &ForwardCache, exchange: &Exchange<'_>) -> bool {
    let headers = &exchange.session.req_header().headers;
    cache.key.is_empty() || cache.key.iter().any(|name| headers.contains_key(name))
}

/// Which other requests an answer to this one counts for.
fn key_of(cache: &ForwardCache, exchange: &Exchange<'_>) -> Key {
    let request = exchange.session.req_header();
    let mut keyed = Keyed::default();
    for name in &cache.key {
        keyed.add_all(request.headers.get_all(name).iter());
    }
    if !cache.whole_route {
        keyed.add(request.method.as_str().as_bytes());
        keyed.add(client::host(request).as_bytes());
        keyed.add(target(request).as_bytes());
        keyed.add(client_ip(exchange).as_bytes());
    }
    keyed.key()
}

fn target(request: &pingora_http::RequestHeader) -> &str {
    request
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str())
}

fn client_ip(exchange: &Exchange<'_>) -> String {
    let trusted = &exchange.handle.config.trusted_proxies;
    client::ip(exchange.session, trusted).to_string()
}

async fn ask(forward: &ForwardAuth, exchange: &mut Exchange<'_>) -> Result<Said, Denied> {
    let mut calls = [question(forward, exchange)];
    let reply = match loops::mark(&mut calls, &exchange.session.req_header().headers) {
        Some(replies) => replies.into_iter().next(),
        None => {
            let [call] = &calls;
            let most_body = exchange.handle.config.script.fetch_body;
            let handle = exchange.handle;
            // Boxed: it is large, and most requests have none.
            let asked = Box::pin(handle.client().call(call, handle, most_body));
            Some(while_client_stays(asked, exchange).await?)
        }
    };
    let said = reply.map_or(Said::Failed(503, NO_ANSWER), |reply| {
        read(&forward.rules, reply, exchange)
    });
    Ok(said)
}

const NO_ANSWER: &str = "the authorization service does not answer";
const NO_USE: &str = "the authorization service gives no usable answer";

fn question(forward: &ForwardAuth, exchange: &Exchange<'_>) -> Outgoing {
    let rules = &forward.rules;
    let request = exchange.session.req_header();
    let mut headers = Vec::with_capacity(rules.headers.len() + 6);
    for name in &rules.headers {
        let values = request.headers.get_all(name).iter();
        headers.extend(values.map(|value| (name.clone(), value.clone())));
    }
    let mut tell = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.push((HeaderName::from_static(name), value));
        }
    };
    // The normal form, which is what matched and what the upstream gets.
    let target = target(request);
    tell("x-forwarded-method", request.method.as_str());
    tell("x-forwarded-uri", target);
    tell("x-original-uri", target);
    tell("x-forwarded-host", client::host(request));
    tell("x-forwarded-proto", client::scheme(exchange.session));
    tell("x-forwarded-for", &client_ip(exchange));
    Outgoing {
        recipient: Recipient::Pool(forward.pool),
        method: rules.method.clone(),
        target: rules.target.clone(),
        headers,
        body: Bytes::new(),
        timeout: rules.timeout,
        retries: 0,
    }
}

fn read(rules: &ForwardRules, reply: Reply, exchange: &Exchange<'_>) -> Said {
    let route = exchange.handle.metrics_of(exchange.state.route).label();
    let answer = match reply {
        Ok(answer) => answer,
        Err(failure) => {
            tracing::warn!("authorization failed route={route} error={failure}");
            return match failure.kind {
                CallFailureKind::TooLarge | CallFailureKind::Broken => Said::Failed(502, NO_USE),
                _ => Said::Failed(503, NO_ANSWER),
            };
        }
    };
    match answer.status.as_u16() {
        200..=299 => {
            let chosen = |names: &[HeaderName]| {
                let fields = names.iter().flat_map(|name| {
                    let values = answer.headers.get_all(name).iter();
                    values.map(|value| (name.clone(), value.clone()))
                });
                fields.collect()
            };
            Said::Passed(Passed {
                request: chosen(&rules.copy),
                response: chosen(&rules.response_headers),
            })
        }
        301 | 302 | 303 | 307 | 308 | 401 | 403 => Said::Refused(for_client(answer)),
        status => {
            tracing::warn!("authorization failed route={route} error=status {status}");
            Said::Failed(502, NO_USE)
        }
    }
}

/// An answer as the client gets it.
fn for_client(answer: Incoming) -> Answer {
    let nominated = nominated(&answer.headers);
    let passes = |name: &HeaderName| {
        !NOT_PASSED.contains(name)
            && !["keep-alive", "proxy-connection"].contains(&name.as_str())
            && !nominated
                .iter()
                .any(|other| name.as_str().eq_ignore_ascii_case(other))
    };
    let fields = answer.headers.iter().filter(|(name, _)| passes(name));
    Answer {
        status: answer.status,
        headers: fields
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        body: answer.body,
    }
}

/// Fields that the answer says belong to its connection.
fn nominated(headers: &HeaderMap) -> Vec<String> {
    let lines = headers.get_all(header::CONNECTION).iter();
    let names = lines.flat_map(|line| line.to_str().unwrap_or_default().split(','));
    names.map(|name| name.trim().to_owned()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[test]
    fn what_belongs_to_the_connection_is_not_passed_on() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("www-authenticate", "Basic realm=\"a\""),
            ("www-authenticate", "Bearer"),
            ("set-cookie", "a=1"),
            ("connection", "close, X-Secret"),
            ("x-secret", "1"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("content-length", "3"),
            ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ] {
            headers.append(name, value.parse().unwrap());
        }
        let answer = for_client(Incoming {
            status: StatusCode::UNAUTHORIZED,
            headers,
            body: Bytes::from_static(b"no\n"),
            ..Incoming::default()
        });
        let names: Vec<&str> = answer
            .headers
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(
            names,
            ["www-authenticate", "www-authenticate", "set-cookie"]
        );
    }
}
