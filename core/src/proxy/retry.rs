//! Whether a request is tried again.
//!
//! A POST is never sent twice, nor anything else that is not idempotent: once a connection stood, the
//! upstream may have acted on it. What is idempotent is sent again when all of its body that was read can be
//! read again, and never once a final response header was passed on. How often, after what, and how many at
//! a time is the pool's `[retries]`, of which a route's `.retries` takes precedence.

use std::time::Duration;

use edgewright_script::program::{RetryCause, RetryOn};
use http::StatusCode;
use pingora_error::{Error, ErrorType};
use pingora_proxy::Session;

use super::{
    admit::asked_again,
    context::{Context, State},
    upstream::pool_of,
};
use crate::{config, metrics::Retried, pools::Pool, worker::Handle};

/// How often, and after what.
#[derive(Debug, Clone, Copy)]
struct Rules {
    attempts: u8,
    on: RetryOn,
}

impl Rules {
    fn of(handle: &Handle, state: &State, pool: &Pool) -> Self {
        let config::Retries { attempts, on, .. } = pool.config().retries;
        let route = state.route.and_then(|route| handle.route(route).retries);
        match route {
            Some(route) => Self {
                attempts: route.attempts,
                on: route.on.unwrap_or(on),
            },
            None => Self { attempts, on },
        }
    }

    /// Whether another attempt may follow `made` attempts, of which the last one failed so.
    fn allow(self, made: u8, after: Retried, repeatable: bool) -> bool {
        made <= self.attempts
            && match after {
                Retried::After(RetryCause::Connect) => self.on.contains(RetryCause::Connect),
                Retried::After(cause) => repeatable && self.on.contains(cause),
                // Nothing was lost but time: that is no failure to decide about.
                Retried::Stale => repeatable,
            }
    }
}

/// Attempts that a request may make in all.
pub(super) fn most_attempts(handle: &Handle, state: &State) -> u8 {
    let pool = pool_of(handle, state);
    pool.map_or(1, |pool| 1 + Rules::of(handle, state, pool).attempts)
}

/// What comes of a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// Another one.
    Again,
    /// Nothing.
    Final,
    /// Nothing, because too many others are tried again.
    OverBudget,
}

/// Decides what comes of an attempt that has failed so, and begins the retry.
///
/// The budget bounds what upstreams get more than once. An attempt that found nobody adds nothing to that, and
/// one on a kept connection that was closed meanwhile most likely neither; were they counted, a pool under load
/// would answer 502 for a target that is down while others have room.
pub(super) fn decide(
    handle: &Handle,
    state: &mut State,
    after: Retried,
    repeatable: bool,
) -> Decision {
    let Some(id) = state.pool else {
        return Decision::Final;
    };
    let (pool, metrics) = handle.pool(id);
    // The one that has failed is no longer under way.
    let under_way = state.rare.as_mut().and_then(|rare| rare.retry.take());
    if !Rules::of(handle, state, pool).allow(state.attempts, after, repeatable) {
        return Decision::Final;
    }
    let is_counted = !matches!(after, Retried::Stale | Retried::After(RetryCause::Connect));
    if is_counted {
        drop(under_way);
        let Some(retry) = pool.begin_retry() else {
            metrics.retry_refused();
            return Decision::OverBudget;
        };
        state.rare().retry = Some(retry);
    } else if under_way.is_some() {
        // Upstreams still get it once more.
        state.rare().retry = under_way;
    }
    metrics.retried(after);
    let goes_elsewhere = pool.has_several() && !is_counted;
    let longest = pause(&pool.config().retries, state.attempts, goes_elsewhere);
    state.rare().pause = longest.mul_f64(fastrand::f64());
    Decision::Again
}

/// The longest wait after `made` attempts; it is drawn from all up to it ("full jitter"), so that what failed
/// together doesn't come back together. None before the first that goes to another target at once.
fn pause(rules: &config::Retries, made: u8, goes_elsewhere: bool) -> Duration {
    if made <= 1 && goes_elsewhere {
        return Duration::ZERO;
    }
    let doublings = u32::from(made.saturating_sub(1));
    let doubled = rules.backoff.saturating_mul(1 << doublings.min(20));
    doubled.min(rules.max_backoff)
}

/// Whether a request that was sent can be sent once more without harm: its method is idempotent (RFC 9110 section
/// 9.2.2), and what was read of its body can be read again.
pub(super) fn is_repeatable(session: &mut Session) -> bool {
    if !session.req_header().method.is_idempotent() || session.was_upgraded() {
        return false;
    }
    let downstream = session.as_ref();
    if downstream.retry_buffer_truncated() {
        return false;
    }
    // An empty body in chunks leaves nothing in the buffer, and Pingora would send no end of it again.
    let is_kept = downstream.get_retry_buffer().is_some();
    is_kept || session.is_body_empty() || !session.is_body_done()
}

/// The error that makes Pingora try again after a response of the upstream's own, if that is to be. `None` leaves
/// the response to the client.
#[inline]
pub(super) fn after_status(
    session: &mut Session,
    context: &mut Context,
    status: StatusCode,
) -> Option<Box<Error>> {
    let cause = RetryCause::of_status(status.as_u16())?;
    instead_of(session, context, cause, status)
}

#[cold]
fn instead_of(
    session: &mut Session,
    context: &mut Context,
    cause: RetryCause,
    status: StatusCode,
) -> Option<Box<Error>> {
    let Context { handle, state, .. } = context;
    // Nothing may have gone to the client, interim responses included.
    if state.informational > 0 || session.response_written().is_some() {
        return None;
    }
    let repeatable = is_repeatable(session);
    let after = Retried::After(cause);
    if decide(handle, state, after, repeatable) != Decision::Again {
        return None;
    }
    if asked_again(handle, state).is_some() {
        state.rare().last_error = Some(cause.name());
    }
    let mut error = Error::new_up(ErrorType::HTTPStatus(status.as_u16()));
    error.set_retry(true);
    Some(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAUSES: [RetryCause; 6] = RetryCause::ALL;

    #[test]
    fn only_what_nobody_got_is_tried_again_for_requests_that_cannot_be_repeated() {
        let all = RetryOn::parse(CAUSES.map(RetryCause::name)).unwrap_or_default();
        let rules = Rules {
            attempts: 10,
            on: all,
        };
        for cause in CAUSES {
            let allowed = rules.allow(1, Retried::After(cause), false);
            assert_eq!(allowed, cause == RetryCause::Connect, "{cause:?}");
            assert!(rules.allow(1, Retried::After(cause), true));
        }
        assert!(!rules.allow(1, Retried::Stale, false));
    }

    #[test]
    fn causes_and_numbers_are_those_asked_for() {
        let rules = Rules {
            attempts: 2,
            on: RetryOn::default(),
        };
        for cause in CAUSES {
            let allowed = rules.allow(2, Retried::After(cause), true);
            assert_eq!(allowed, cause == RetryCause::Connect, "{cause:?}");
        }
        // Whatever is asked for, a kept connection that was closed is no failure of the upstream.
        assert!(rules.allow(2, Retried::Stale, true));
        assert!(!rules.allow(3, Retried::Stale, true));
        let none = Rules {
            attempts: 0,
            ..rules
        };
        assert!(!none.allow(1, Retried::After(RetryCause::Connect), true));
    }

    #[test]
    fn pauses_double_up_to_a_bound() {
        let rules = config::Retries::default();
        let millis = |made, elsewhere| pause(&rules, made, elsewhere).as_millis();
        assert_eq!(
            [1, 2, 3, 4, 5, 11, 255].map(|made| millis(made, false)),
            [25, 50, 100, 200, 250, 250, 250]
        );
        assert_eq!([1, 2].map(|made| millis(made, true)), [0, 50]);
    }
}
