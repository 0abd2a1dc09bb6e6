//! Who the client is, found out before any hook: `.basic_auth`, `.jwt` and `.forward_auth`, in this
//! order. All that a route has must let a request through; whatever can't be decided does not.

mod answers;
pub(super) mod basic;
mod fields;
mod flights;
mod forward;
pub(super) mod jwt;
pub(super) mod passwords;

use edgewright_script::{answer::Answer, program::Auth};
use http::{HeaderValue, header};

use super::{
    context::Refusal,
    hooks::{Exchange, Stopped},
};
use crate::metrics::{AuthFilter, AuthOutcome};

pub(crate) use answers::ForwardAnswers;
pub(crate) use passwords::verify as verify_password;

/// Why a request goes no further.
pub(super) enum Denied {
    /// The client has to show something else.
    Answer(Answer),
    /// It can't be decided.
    Refuse(Refusal),
    /// There is nobody to answer to.
    ClientLeft,
}

impl Denied {
    /// 401 with a challenge (RFC 9110 section 11.6.1).
    fn challenge(challenge: &HeaderValue) -> Self {
        let answer = Answer::new(401, "401 unauthorized\n").map(|mut answer| {
            let challenge = (header::WWW_AUTHENTICATE, challenge.clone());
            answer.headers.push(challenge);
            answer
        });
        match answer {
            Ok(answer) => Self::Answer(answer),
            Err(reason) => Self::Refuse(Refusal::new(500, reason)),
        }
    }

    fn refuse(status: u16, reason: &'static str) -> Self {
        Self::Refuse(Refusal::new(status, reason))
    }
}

impl From<Stopped> for Denied {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::ClientLeft => Self::ClientLeft,
            Stopped::Failed => Self::Refuse(Refusal::hook_failed()),
        }
    }
}

/// Asks everything that `auth` asks for, and says in the request's header who the client is.
///
/// # Errors
/// When the request must not go on.
pub(super) async fn check(auth: &Auth, exchange: &mut Exchange<'_>) -> Result<(), Denied> {
    if let Some(basic) = &auth.basic {
        let checked = basic::check(basic, exchange).await;
        told(AuthFilter::Basic, checked, exchange)?;
    }
    if let Some(jwt) = &auth.jwt {
        let checked = jwt::check(jwt, exchange);
        told(AuthFilter::Jwt, checked, exchange)?;
    }
    let passed = match &auth.forward {
        None => None,
        Some(forward) => {
            let checked = forward::check(forward, exchange).await;
            Some(told(AuthFilter::Forward, checked, exchange)?)
        }
    };
    // Only now: whoever is asked may want to see it.
    let header = exchange.session.req_header_mut();
    if auth.basic.as_ref().is_some_and(|basic| !basic.forward) {
        header.remove_header(&header::AUTHORIZATION);
    }
    if let Some(field) = auth.jwt.as_ref().and_then(jwt::field_to_remove) {
        header.remove_header(field);
    }
    if let (Some(forward), Some(passed)) = (&auth.forward, passed) {
        forward::apply(&forward.rules, &passed, exchange);
    }
    Ok(())
}

/// Counts what does not go on.
fn told<T>(
    filter: AuthFilter,
    checked: Result<T, Denied>,
    exchange: &Exchange<'_>,
) -> Result<T, Denied> {
    let outcome = match &checked {
        Ok(_) | Err(Denied::ClientLeft) => return checked,
        Err(Denied::Answer(_)) => AuthOutcome::Refused,
        Err(Denied::Refuse(_)) => AuthOutcome::Failed,
    };
    exchange.handle.auth_denied(filter, outcome);
    checked
}
