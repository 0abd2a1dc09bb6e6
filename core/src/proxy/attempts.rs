//! Where each attempt of a request goes, and when. A `.to` function of two is asked for each of them.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
};

use pingora_core::upstreams::peer::HttpPeer;
use pingora_error::{Error, Result};
use pingora_proxy::Session;

use super::{
    admit::{self, Admission, asked_again},
    affinity, client_left,
    context::{Context, Refusal, State},
    hooks::{Exchange, Stopped, while_client_stays},
    refused, retry,
    upstream::{self, pool_of},
};
use crate::{
    metrics::UpstreamError,
    pools::{Admitted, Busy, Pool},
    worker::Handle,
};

/// Chooses the endpoint of the next attempt.
pub(super) async fn peer(session: &mut Session, context: &mut Context) -> Result<Box<HttpPeer>> {
    let Context { handle, state, .. } = &*context;
    let is_bound = pool_of(handle, state)?.config().limits.bounds();
    if state.attempts == 0 && !is_bound {
        match upstream::peer(session, context) {
            // A function that is asked for each attempt may know where else to go.
            Err(_) if may_ask_again(context) => {}
            chosen => return chosen,
        }
    }
    // Boxed, so that requests whose first attempt succeeds don't carry its state.
    Box::pin(carefully(session, context)).await
}

/// Where a request goes that has failed before, or whose pool has bounds.
#[cold]
async fn carefully(session: &mut Session, context: &mut Context) -> Result<Box<HttpPeer>> {
    loop {
        if context.state.attempts > 0 {
            ask_again(session, context).await?;
            leave_target(&mut context.state);
            pause(session, context).await?;
        }
        match enter(session, context).await {
            Err(_) if may_ask_again(context) => {}
            chosen => return chosen,
        }
    }
}

/// Asks the route's function, where it has one that is asked for each attempt.
async fn ask_again(session: &mut Session, context: &mut Context) -> Result<()> {
    match Box::pin(admit::again(session, context)).await {
        None | Some(Admission::Proxy) => Ok(()),
        Some(Admission::Answer(answer)) => {
            let status = answer.status.as_u16();
            context.state.rare().replacement = Some(answer);
            context.state.answered = true;
            Err(refused(status))
        }
        Some(Admission::Refuse(refusal)) => Err(refuse(&mut context.state, refusal)),
        Some(Admission::ClientLeft) => Err(left(&mut context.state)),
    }
}

fn refuse(state: &mut State, refusal: Refusal) -> Box<Error> {
    let status = refusal.status;
    state.refusal = Some(refusal);
    refused(status)
}

/// Gives up the endpoint that has failed.
fn leave_target(state: &mut State) {
    let Some(picked) = state.picked.take() else {
        return;
    };
    let rare = state.rare();
    rare.tried.push(picked.endpoint());
    drop(picked);
    if let Some(place) = &rare.place {
        place.left_target();
    }
}

/// Waits before an attempt that follows another one, as long as that has said.
async fn pause(session: &mut Session, context: &mut Context) -> Result<()> {
    let Context { handle, state, .. } = context;
    let pause = std::mem::take(&mut state.rare().pause);
    if pause.is_zero() {
        return Ok(());
    }
    wait(session, handle, state, tokio::time::sleep(pause)).await
}

/// Waits for `awaited` as long as the client does and there is time.
async fn wait<T>(
    session: &mut Session,
    handle: &Arc<Handle>,
    state: &mut State,
    awaited: impl Future<Output = T>,
) -> Result<T> {
    let next = state.rare().deadlines.next();
    let exchange = Exchange::request(session, handle, state);
    let waited = match next {
        None => while_client_stays(awaited, &exchange).await.map(Some),
        Some((time, _)) => {
            let awaited = tokio::time::timeout_at(time.into(), awaited);
            while_client_stays(awaited, &exchange).await.map(Result::ok)
        }
    };
    match (waited, next) {
        (Ok(Some(done)), _) => Ok(done),
        (Ok(None), Some((_, late))) => Err(upstream::too_late(state, late)),
        (Ok(None), None) | (Err(Stopped::ClientLeft | Stopped::Failed), _) => Err(left(state)),
    }
}

/// The end of a request whose client left: what failed before is nobody's matter any more.
fn left(state: &mut State) -> Box<Error> {
    state.refusal = None;
    client_left()
}

/// Chooses an endpoint, within the pool's bounds if it has some.
async fn enter(session: &mut Session, context: &mut Context) -> Result<Box<HttpPeer>> {
    let handle = context.handle.clone();
    let state = &mut *context.state;
    let pool = pool_of(&handle, state)?;
    if !pool.config().limits.bounds() {
        if let Some(rare) = &mut state.rare {
            rare.place = None;
        }
        return upstream::peer(session, context);
    }
    // The clocks run while it waits.
    upstream::set_deadlines(&handle, state)?;
    let rare = state.rare();
    // A function may have chosen another pool.
    rare.place.take_if(|place| !place.is_of(pool));
    let has_place = rare.place.is_some();
    // It may wait long, and the state is needed meanwhile.
    let wish = affinity::kept(&handle, state);
    let select = |pool: &Pool| pool.select(&wish.wish());
    let mut entering = pin!(pool.enter(has_place, wish.wish().only, select));
    let entered = match at_once(entering.as_mut()).await {
        Some(entered) => entered,
        None => wait(session, &handle, state, entering).await?,
    };
    match entered {
        Ok(Ok(Admitted { picked, place })) => {
            let held = &mut state.rare().place;
            *held = place.or_else(|| held.take());
            upstream::ready(session, &handle, state, picked)
        }
        Ok(Err(unavailable)) => Err(upstream::no_target(state, pool, unavailable)),
        Err(busy) => Err(refuse(state, Refusal::upstream(busy.into()))),
    }
}

/// What it comes to without waiting; to watch the client costs system calls.
async fn at_once<T>(mut awaited: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    poll_fn(|context| {
        Poll::Ready(match awaited.as_mut().poll(context) {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        })
    })
    .await
}

impl From<Busy> for UpstreamError {
    fn from(busy: Busy) -> Self {
        match busy {
            Busy::Full => Self::BreakerOpen,
            Busy::QueueFull => Self::QueueFull,
            Busy::QueueTimeout => Self::QueueTimeout,
        }
    }
}

/// Whether the route's function is asked once more, since there was nobody in the pool that it chose, or no place; that
/// counts as an attempt.
fn may_ask_again(context: &mut Context) -> bool {
    let Context { handle, state, .. } = context;
    let refusal = state
        .refusal
        .as_ref()
        .filter(|refusal| refusal.status == 503);
    let Some(reason) = refusal.and_then(|refusal| refusal.upstream) else {
        return false;
    };
    let most = retry::most_attempts(handle, state);
    if state.attempts >= most || asked_again(handle, state).is_none() {
        return false;
    }
    state.attempts += 1;
    state.rare().last_error = Some(match reason {
        UpstreamError::NoTarget | UpstreamError::AllUnhealthy => "unavailable",
        reason => reason.name(),
    });
    state.attempts < most
}
