//! `.limit(..)`: how often a client may come.

use std::time::Duration;

use http::{HeaderName, HeaderValue, StatusCode, header::RETRY_AFTER};

use super::key::GateKey;
use crate::{
    answer::Answer,
    request::Request,
    state::{Hit, Identity, Rate},
};

/// Fields of draft-ietf-httpapi-ratelimit-headers, sections 3 and 4.
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// One limit of a route.
#[derive(Debug)]
pub struct LimitGate {
    rate: Rate,
    key: GateKey,
    status: StatusCode,
    /// What its state is called, unless a constant holds the rate.
    pub(crate) own: Option<Identity>,
}

impl LimitGate {
    pub(crate) fn new(rate: Rate, key: GateKey, status: StatusCode, own: Option<Identity>) -> Self {
        Self {
            rate,
            key,
            status,
            own,
        }
    }

    /// The rate that counts.
    pub fn rate(&self) -> &Rate {
        &self.rate
    }

    /// Takes one of what the request's key has left. `label` is the route's.
    ///
    /// # Errors
    /// With the answer when nothing is left: it says when to come back.
    pub fn check(&self, request: &dyn Request, label: &str) -> Result<(), Answer> {
        let hit = self.key.with(request, label, |key| self.rate.hit(key));
        match hit {
            Ok(Hit { allowed: true, .. }) => Ok(()),
            Ok(Hit { wait, .. }) => Err(self.refusal(wait)),
            // Not reached: a program whose handles are not bound serves nothing.
            Err(_) => Err(super::answer(StatusCode::INTERNAL_SERVER_ERROR)),
        }
    }

    fn refusal(&self, wait: Duration) -> Answer {
        let mut answer = super::answer(self.status);
        let rule = self.rate.rule();
        let (wait, window) = (whole_seconds(wait), whole_seconds(rule.window()));
        let key = &self.key;
        let limit = rule.limit();
        for (name, value) in [
            (RETRY_AFTER, wait.to_string()),
            (LIMIT, format!("\"{key}\";r=0;t={wait}")),
            (POLICY, format!("\"{key}\";q={limit};w={window}")),
        ] {
            // A quotation mark or such in the name of a parameter: the field is better left out.
            let quoted = !self.key_needs_escape() || name == RETRY_AFTER;
            if let (true, Ok(value)) = (quoted, HeaderValue::try_from(value)) {
                answer.headers.push((name, value));
            }
        }
        answer
    }

    /// Whether the key can't stand in a string of a structured field (RFC 8941 section 3.3.3).
    fn key_needs_escape(&self) -> bool {
        let name = match &self.key {
            GateKey::Query(name) | GateKey::Cookie(name) => name.as_str(),
            _ => return false,
        };
        !name
            .bytes()
            .all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'))
    }
}

/// Rounded up, so that who waits so long finds it over (RFC 9110 section 10.2.3).
pub(super) fn whole_seconds(time: Duration) -> u64 {
    time.as_secs()
        .saturating_add(u64::from(time.subsec_nanos() > 0))
}
