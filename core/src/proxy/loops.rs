//! Hooks whose calls come back to a proxy like this one.
//!
//! A hook that calls its own route would call itself for ever, and faster than a client that leaves
//! can end it. So each call says how many hooks stand behind it (`CDN-Loop`, RFC 8586), and after a
//! few no more calls are made.

use edgewright_script::outbound::{CallFailure, CallFailureKind, Outgoing, Reply};
use http::{HeaderMap, HeaderName, HeaderValue};

pub(super) const CDN_LOOP: HeaderName = HeaderName::from_static("cdn-loop");

/// What this proxy calls itself there.
const NAME: &str = "edgewright";

/// Hooks that may stand behind a call: a service that asks for authorisation by another proxy
/// makes two.
const MOST: usize = 3;

/// Says in `calls` which hooks stand behind them, as the `request` tells; or answers them in place
/// of the services when these are too many.
pub(crate) fn mark(calls: &mut [Outgoing], request: &HeaderMap) -> Option<Vec<Reply>> {
    let Some(value) = passed(request) else {
        let failure = CallFailure {
            kind: CallFailureKind::Unavailable,
            message: format!("{MOST} hooks already stand behind this request: it goes in circles"),
        };
        return Some(calls.iter().map(|_| Err(failure.clone())).collect());
    };
    for call in calls {
        call.headers.push((CDN_LOOP, value.clone()));
    }
    None
}

/// What a request says that is made because of another one, whose header `request` is; `None` when
/// it goes in circles.
pub(super) fn passed(request: &HeaderMap) -> Option<HeaderValue> {
    let mut passed = String::new();
    for value in request.get_all(CDN_LOOP) {
        // What is no text was made by nobody who keeps to the rules: it stands for itself.
        passed += value.to_str().unwrap_or(NAME);
        passed += ", ";
    }
    let hooks = passed
        .split(',')
        .filter(|name| name.split(';').next().unwrap_or("").trim() == NAME)
        .count();
    if hooks >= MOST {
        return None;
    }
    passed += NAME;
    Some(HeaderValue::try_from(passed).unwrap_or(HeaderValue::from_static(NAME)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use bytes::Bytes;
    use edgewright_script::outbound::Recipient;
    use http::Method;
    use std::time::Duration;

    fn marked(passed: &[&'static str]) -> Result<String, String> {
        let mut request = HeaderMap::new();
        for value in passed {
            request.append(CDN_LOOP, HeaderValue::from_static(value));
        }
        let mut calls = [Outgoing {
            recipient: Recipient::Server {
                tls: false,
                host: "a".to_owned(),
                port: 80,
            },
            method: Method::GET,
            target: "/".to_owned(),
            headers: Vec::new(),
            body: Bytes::new(),
            timeout: Duration::from_secs(1),
            retries: 0,
        }];
        match mark(&mut calls, &request) {
            Some(replies) => Err(replies[0].clone().unwrap_err().message),
            None => Ok(calls[0].headers[0].1.to_str().unwrap().to_owned()),
        }
    }

    #[test]
    fn says_who_stands_behind_a_call() {
        assert_eq!(marked(&[]).unwrap(), "edgewright");
        assert_eq!(marked(&["cdn1;v=2"]).unwrap(), "cdn1;v=2, edgewright");
        assert_eq!(
            marked(&["edgewright", "x"]).unwrap(),
            "edgewright, x, edgewright"
        );
    }

    #[test]
    fn ends_what_goes_in_circles() {
        assert!(marked(&["edgewright, edgewright"]).is_ok());
        let told = marked(&["edgewright, edgewright", "edgewright;x=1"]).unwrap_err();
        assert!(told.contains("in circles"), "{told}");
    }
}
