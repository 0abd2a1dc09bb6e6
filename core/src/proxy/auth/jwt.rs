//! `.jwt`: a signed token that the bearer shows (RFC 6750).

use std::{
    borrow::Cow,
    time::{SystemTime, UNIX_EPOCH},
};

use edgewright_script::{
    frozen::Frozen,
    jwt::Refused,
    program::{JwtAuth, TokenFrom},
    request::query_values,
};
use http::{HeaderName, HeaderValue, header};
use pingora_http::RequestHeader;
use serde_json::Value;

use super::{
    Denied,
    fields::{self, Occurs},
};
use crate::proxy::hooks::Exchange;

/// What a request shows.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::proxy) enum Shown<'h> {
    Nothing,
    Token(Cow<'h, str>),
    /// Something, and no token: or more than one.
    Unclear,
}

pub(super) fn check(jwt: &JwtAuth, exchange: &mut Exchange<'_>) -> Result<(), Denied> {
    let request = exchange.session.req_header_mut();
    for (_, name) in &jwt.claims {
        fields::remove(request, name);
    }
    let refused = |reason: &dyn std::fmt::Display| {
        tracing::debug!("`.jwt` refuses a token: {reason}");
        Denied::challenge(&jwt.invalid)
    };
    let token = match shown(&jwt.from, request) {
        // RFC 6750 section 3.1: no error is named to whom has shown nothing.
        Shown::Nothing => return Err(Denied::challenge(&jwt.challenge)),
        Shown::Unclear => return Err(refused(&"there is no token, or more than one")),
        Shown::Token(token) => token,
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_secs_f64();
    let claims = jwt.how.verify(&token, now).map_err(|reason| match reason {
        Refused::NoKeys => {
            tracing::warn!("a token can't be verified: {reason}");
            Denied::refuse(503, "tokens can't be verified yet")
        }
        Refused::Token(_) => refused(&reason),
    })?;
    for (claim, name) in &jwt.claims {
        match claims.get(claim) {
            None | Some(Value::Null) => {}
            Some(value) => {
                let value = field_value(value)
                    .ok_or_else(|| refused(&format!("its `{claim}` can't be a header field")))?;
                fields::set(request, name, value);
            }
        }
    }
    // For hooks; a token is far smaller than what a request may keep.
    let claims = Frozen::from(Value::Object(claims));
    exchange
        .state
        .rare()
        .values
        .set(CLAIMS, claims)
        .map_err(|reason| refused(&reason))
}

/// The name under which hooks find the claims with `req.get`.
const CLAIMS: &str = "jwt";

/// The field that the upstream must not get.
pub(super) fn field_to_remove(jwt: &JwtAuth) -> Option<&HeaderName> {
    match &jwt.from {
        TokenFrom::Bearer if !jwt.forward => Some(&header::AUTHORIZATION),
        TokenFrom::Header(name) if !jwt.forward => Some(name),
        _ => None,
    }
}

pub(in crate::proxy) fn shown<'h>(from: &TokenFrom, request: &'h RequestHeader) -> Shown<'h> {
    let headers = &request.headers;
    let text = |bytes: &'h [u8]| match std::str::from_utf8(bytes) {
        Ok(token) if !token.is_empty() => Shown::Token(Cow::Borrowed(token)),
        _ => Shown::Unclear,
    };
    match from {
        TokenFrom::Bearer => match fields::only(headers, &header::AUTHORIZATION) {
            Occurs::Never => Shown::Nothing,
            Occurs::Repeatedly => Shown::Unclear,
            // Credentials of another kind are none of these.
            Occurs::Once(value) => {
                fields::behind_scheme(value, "Bearer").map_or(Shown::Nothing, text)
            }
        },
        TokenFrom::Header(name) => match fields::only(headers, name) {
            Occurs::Never => Shown::Nothing,
            Occurs::Repeatedly => Shown::Unclear,
            Occurs::Once(value) => text(value.as_bytes().trim_ascii()),
        },
        TokenFrom::Cookie(name) => {
            let lines = headers.get_all(header::COOKIE).into_iter();
            let pairs = lines.flat_map(|line| line.as_bytes().split(|&byte| byte == b';'));
            let mut found = pairs.filter_map(|pair| {
                let (key, value) = split(pair.trim_ascii(), b'=')?;
                (key.trim_ascii_end() == name.as_bytes()).then(|| unquoted(value.trim_ascii()))
            });
            match (found.next(), found.next()) {
                (None, _) => Shown::Nothing,
                (Some(value), None) => text(value),
                (Some(_), Some(_)) => Shown::Unclear,
            }
        }
        TokenFrom::Query(name) => {
            let query = request.uri.query().unwrap_or_default();
            let mut found = query_values(query, name);
            match (found.next(), found.next()) {
                (None, _) => Shown::Nothing,
                (Some(token), None) if !token.is_empty() => {
                    Shown::Token(Cow::Owned(token.into_owned()))
                }
                _ => Shown::Unclear,
            }
        }
    }
}

fn split(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = text.iter().position(|&byte| byte == at)?;
    Some((&text[..place], &text[place + 1..]))
}

fn unquoted(value: &[u8]) -> &[u8] {
    let inner = value
        .strip_prefix(b"\"")
        .and_then(|value| value.strip_suffix(b"\""));
    inner.unwrap_or(value)
}

/// A claim as a header field: text, numbers and bools as they are, an array of these with commas
/// between them. `None` when it can't be one, or could be taken for another one.
fn field_value(claim: &Value) -> Option<HeaderValue> {
    let text = match claim {
        Value::Array(items) => {
            let items = items
                .iter()
                .map(|item| plain(item).filter(|text| !text.contains(',')));
            items.collect::<Option<Vec<_>>>()?.join(",")
        }
        claim => plain(claim)?,
    };
    // Blanks at its ends are no part of a field's value for whoever reads it (RFC 9110 section 5.5), and a
    // hook would compare another text.
    if text.trim_matches([' ', '\t']) != text {
        return None;
    }
    HeaderValue::from_bytes(text.as_bytes()).ok()
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(target: &str, fields: &[(&'static str, &str)]) -> RequestHeader {
        let mut request = RequestHeader::build("GET", target.as_bytes(), None).unwrap();
        for (name, value) in fields {
            request.append_header(*name, *value).unwrap();
        }
        request
    }

    fn token(text: &str) -> Shown<'_> {
        Shown::Token(Cow::Borrowed(text))
    }

    #[test]
    fn a_token_is_found_where_it_is_looked_for() {
        let cookie = TokenFrom::Cookie("s".to_owned());
        let query = TokenFrom::Query("t".to_owned());
        let field = TokenFrom::Header(HeaderName::from_static("x-token"));
        for (from, target, fields, expected) in [
            (
                &TokenFrom::Bearer,
                "/",
                &[("authorization", "bearer abc")][..],
                token("abc"),
            ),
            (&TokenFrom::Bearer, "/", &[], Shown::Nothing),
            (
                &TokenFrom::Bearer,
                "/",
                &[("authorization", "Basic abc")],
                Shown::Nothing,
            ),
            (
                &TokenFrom::Bearer,
                "/",
                &[("authorization", "Bearer ")],
                Shown::Unclear,
            ),
            (
                &TokenFrom::Bearer,
                "/",
                &[("authorization", "Bearer a"), ("authorization", "Bearer a")],
                Shown::Unclear,
            ),
            (&field, "/", &[("x-token", " abc ")], token("abc")),
            (
                &field,
                "/",
                &[("authorization", "Bearer abc")],
                Shown::Nothing,
            ),
            (
                &field,
                "/",
                &[("x-token", "a"), ("x-token", "a")],
                Shown::Unclear,
            ),
            (&cookie, "/", &[("cookie", "a=1; s=abc; S=x")], token("abc")),
            (&cookie, "/", &[("cookie", "s=\"abc\"")], token("abc")),
            (&cookie, "/", &[("cookie", "s=a; s=b")], Shown::Unclear),
            (
                &cookie,
                "/",
                &[("cookie", "s=a"), ("cookie", "s=b")],
                Shown::Unclear,
            ),
            (&cookie, "/", &[("cookie", "s=")], Shown::Unclear),
            (&cookie, "/", &[("cookie", "xs=a")], Shown::Nothing),
            (&query, "/?a=1&t=abc", &[], token("abc")),
            (&query, "/?t=a&t=b", &[], Shown::Unclear),
            (&query, "/?t=", &[], Shown::Unclear),
            (&query, "/?x=1", &[], Shown::Nothing),
        ] {
            let request = request(target, fields);
            assert_eq!(
                shown(from, &request),
                expected,
                "{from:?} {target} {fields:?}"
            );
        }
    }

    #[test]
    fn claims_are_fields_or_nothing() {
        let value = |claim: Value| {
            let value = field_value(&claim);
            value.map(|value| String::from_utf8(value.as_bytes().to_vec()).unwrap())
        };
        assert_eq!(value(json!("alice")).as_deref(), Some("alice"));
        assert_eq!(value(json!("café")).as_deref(), Some("café"));
        assert_eq!(value(json!(7)).as_deref(), Some("7"));
        assert_eq!(value(json!(true)).as_deref(), Some("true"));
        assert_eq!(value(json!(["a", 1])).as_deref(), Some("a,1"));
        for claim in [
            json!("a\r\nx: y"),
            json!({}),
            json!([["a"]]),
            json!(["admin,root"]),
        ] {
            assert_eq!(value(claim.clone()), None, "{claim}");
        }
    }
}
