//! Where each attempt of a request goes. A `.to` function of two is asked for each of them.

use pingora_core::upstreams::peer::HttpPeer;
use pingora_error::Result;
use pingora_proxy::Session;

use super::{
    admit::{self, Admission, asked_again},
    client_left,
    context::Context,
    refused,
    upstream::{self, CONNECT_ATTEMPTS},
};

/// Chooses the endpoint of the next attempt.
pub(super) async fn peer(session: &mut Session, context: &mut Context) -> Result<Box<HttpPeer>> {
    if context.state.attempts == 0 {
        match upstream::peer(session, context) {
            // A function that is asked for each attempt may know where else to go.
            Err(_) if may_ask_again(context) => {}
            chosen => return chosen,
        }
    }
    again(session, context).await
}

/// Where a request goes next, after an attempt that failed.
#[cold]
async fn again(session: &mut Session, context: &mut Context) -> Result<Box<HttpPeer>> {
    loop {
        // Boxed, so that requests whose first attempt succeeds don't carry its state.
        match Box::pin(admit::again(session, context)).await {
            None | Some(Admission::Proxy) => {}
            Some(Admission::Answer(answer)) => {
                let status = answer.status.as_u16();
                context.state.rare().replacement = Some(answer);
                context.state.answered = true;
                return Err(refused(status));
            }
            Some(Admission::Refuse(refusal)) => {
                let status = refusal.status;
                context.state.refusal = Some(refusal);
                return Err(refused(status));
            }
            Some(Admission::ClientLeft) => return Err(client_left()),
        }
        match upstream::peer(session, context) {
            Err(_) if may_ask_again(context) => {}
            chosen => return chosen,
        }
    }
}

/// Whether the route's function is asked once more, since there was nobody in the pool that it chose; that
/// counts as an attempt.
fn may_ask_again(context: &mut Context) -> bool {
    let Context { handle, state, .. } = context;
    let unavailable = state
        .refusal
        .as_ref()
        .is_some_and(|refusal| refusal.status == 503);
    if !unavailable || state.attempts >= CONNECT_ATTEMPTS || asked_again(handle, state).is_none() {
        return false;
    }
    state.attempts += 1;
    state.rare().last_error = Some("unavailable");
    state.attempts < CONNECT_ATTEMPTS
}
