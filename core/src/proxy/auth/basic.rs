//! `.basic_auth`: a user's name and password in each request (RFC 7617).

use data_encoding::BASE64;
use edgewright_script::{password::PasswordCheck, program::BasicAuth};
use http::{HeaderMap, HeaderValue, header};

use super::{
    Denied,
    fields::{self, Occurs},
    passwords,
};
use crate::proxy::hooks::{Exchange, while_client_stays};

pub(super) async fn check(basic: &BasicAuth, exchange: &mut Exchange<'_>) -> Result<(), Denied> {
    let request = exchange.session.req_header_mut();
    if let Some(name) = &basic.user_header {
        fields::remove(request, name);
    }
    let shown = credentials(&request.headers);
    let (user, password) = shown.ok_or_else(|| Denied::challenge(&basic.challenge))?;
    let password = PasswordCheck::of(&basic.users, &user, &password);
    let unable = || Denied::refuse(503, "the password can't be verified now");
    let verified = passwords::verify(password, exchange.handle);
    let right = while_client_stays(verified, exchange).await?;
    if !right.ok_or_else(unable)? {
        return Err(Denied::challenge(&basic.challenge));
    }
    if let Some(name) = &basic.user_header {
        // Names of users have no control characters.
        let value = HeaderValue::from_bytes(user.as_bytes());
        let value = value.map_err(|_| Denied::challenge(&basic.challenge))?;
        fields::set(exchange.session.req_header_mut(), name, value);
    }
    Ok(())
}

/// Name and password, when the request has exactly one field that holds them as it should.
pub(in crate::proxy) fn credentials(headers: &HeaderMap) -> Option<(String, Vec<u8>)> {
    let Occurs::Once(value) = fields::only(headers, &header::AUTHORIZATION) else {
        return None;
    };
    let coded = fields::behind_scheme(value, "Basic")?;
    // The library also takes several texts behind each other, each with its padding.
    let padding = coded.iter().position(|&byte| byte == b'=');
    if padding.is_some_and(|at| at + 2 < coded.len()) {
        return None;
    }
    let decoded = BASE64.decode(coded).ok()?;
    let colon = decoded.iter().position(|&byte| byte == b':')?;
    let (user, password) = (&decoded[..colon], &decoded[colon + 1..]);
    // Neither has control characters (RFC 7617 section 2).
    if decoded.iter().any(u8::is_ascii_control) {
        return None;
    }
    Some((String::from_utf8(user.to_vec()).ok()?, password.to_vec()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn shown(values: &[&str]) -> Option<(String, String)> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, value.parse().unwrap());
        }
        let (user, password) = credentials(&headers)?;
        Some((user, String::from_utf8(password).unwrap()))
    }

    fn basic(text: &str) -> String {
        format!("Basic {}", BASE64.encode(text.as_bytes()))
    }

    #[test]
    fn credentials_are_read_as_they_should_be() {
        let found = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        // The example of RFC 7617 section 2.
        assert_eq!(
            shown(&["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]),
            found("Aladdin", "open sesame")
        );
        assert_eq!(shown(&[&basic("a:b:c")]), found("a", "b:c"));
        assert_eq!(shown(&[&basic("a:")]), found("a", ""));
        assert_eq!(shown(&[&basic("é:ü")]), found("é", "ü"));
        for wrong in [
            "Basic",
            "Basic !",
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ",
            "Basic YTo=YQ==",
            "Bearer QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
            &basic("nocolon"),
            &basic("a\0:b"),
            &basic("a:b\r\nx: y"),
        ] {
            assert_eq!(shown(&[wrong]), None, "{wrong}");
        }
        assert_eq!(shown(&[&basic("a:b"), &basic("a:b")]), None);
        assert_eq!(shown(&[]), None);
    }
}
