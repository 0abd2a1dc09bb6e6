//! What a client shows of itself, and what it is compared with.

use data_encoding::BASE64;
use edgewright_script::{
    password::Htpasswd,
    program::TokenFrom,
    request::{cookie_value, query_values},
};
use http::{HeaderName, header};
use pingora_http::RequestHeader;

use super::{fields, line};
use crate::proxy::auth::{
    basic,
    jwt::{self, Shown},
};

/// The input is a query and then header fields, a line each; or all of it is a file of users.
pub fn credentials(input: &[u8]) {
    if let Ok(users) = Htpasswd::from_file(input) {
        assert!(!users.is_empty());
        let (_, exists) = users.hash_for("a:b");
        assert!(!exists, "no user has a colon in its name");
    }
    let (query, lines) = line(input);
    let target = format!("/?{query}");
    let Ok(mut request) = RequestHeader::build("GET", target.as_bytes(), None) else {
        return;
    };
    for (name, value) in &fields(lines) {
        let _ = request.append_header(name.clone(), value.clone());
    }
    password(&request);
    tokens(&request);
}

fn password(request: &RequestHeader) {
    let Some((user, password)) = basic::credentials(&request.headers) else {
        return;
    };
    let values: Vec<_> = request
        .headers
        .get_all(header::AUTHORIZATION)
        .iter()
        .collect();
    assert_eq!(values.len(), 1);
    let pair = [user.as_bytes(), b":", &password[..]].concat();
    assert!(!user.contains(':') && !pair.iter().any(u8::is_ascii_control));
    // There is one spelling of each.
    let value = values[0].as_bytes().trim_ascii_end();
    assert!(value.ends_with(BASE64.encode(&pair).as_bytes()));
}

fn tokens(request: &RequestHeader) {
    let header = |name| TokenFrom::Header(HeaderName::from_static(name));
    for from in [
        TokenFrom::Bearer,
        header("x-token"),
        header("authorization"),
    ] {
        let name = match &from {
            TokenFrom::Header(name) => name.clone(),
            _ => header::AUTHORIZATION,
        };
        let count = request.headers.get_all(&name).iter().count();
        match jwt::shown(&from, request) {
            Shown::Nothing => assert!(count == 0 || matches!(from, TokenFrom::Bearer)),
            Shown::Unclear => assert!(count > 0),
            Shown::Token(token) => {
                assert!(count == 1 && !token.is_empty());
                assert_eq!(token.trim_ascii(), token);
            }
        }
    }

    let in_query = jwt::shown(&TokenFrom::Query("t".to_owned()), request);
    let query = request.uri.query().unwrap_or_default();
    let values: Vec<_> = query_values(query, "t").collect();
    match in_query {
        Shown::Nothing => assert!(values.is_empty()),
        Shown::Unclear => assert!(values.len() > 1 || values[0].is_empty()),
        Shown::Token(token) => assert_eq!(values, [token]),
    }

    let in_cookie = jwt::shown(&TokenFrom::Cookie("s".to_owned()), request);
    let lines = request.headers.get_all(header::COOKIE).into_iter();
    let lines: Option<Vec<&str>> = lines
        .map(|line| std::str::from_utf8(line.as_bytes()).ok())
        .collect();
    // Scripts see the same cookie as the filter.
    if let Some(lines) = lines {
        let seen: Vec<&str> = lines
            .iter()
            .filter_map(|line| cookie_value(line, "s"))
            .collect();
        match in_cookie {
            Shown::Nothing => assert!(seen.is_empty(), "{seen:?}"),
            Shown::Unclear => assert!(!seen.is_empty()),
            Shown::Token(token) => assert_eq!(seen, [token]),
        }
    }
}
