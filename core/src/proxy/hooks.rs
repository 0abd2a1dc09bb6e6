//! Runs hooks, waits for them where they wait, and tells of their failures: one log line and one
//! metric each.

use std::sync::Arc;

use bytes::Bytes;
use edgewright_script::{
    engine::{Failure, Running, Said, Step, Subject, Verdict},
    outbound::{CallFailure, CallFailureKind, Outgoing, Reply},
    program::HookId,
};
use pingora_http::ResponseHeader;
use pingora_proxy::Session;
use send_wrapper::SendWrapper;

use super::{
    auth::passwords,
    context::State,
    loops,
    presence::Presence,
    view::{RequestView, ResponseView},
};
use crate::worker::{self, Handle};

/// Why a hook said nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    /// It failed, and that has been told.
    Failed,
    /// The client left while it waited.
    ClientLeft,
}

/// What a hook runs for.
pub(super) struct Exchange<'a> {
    pub(super) session: &'a mut Session,
    pub(super) handle: &'a Arc<Handle>,
    pub(super) state: &'a mut State,
    /// The response to the request, and whether the proxy made it itself.
    pub(super) response: Option<(&'a mut ResponseHeader, bool)>,
    /// The body of the response, where a hook has it.
    pub(super) body: Option<Body>,
}

/// The body of a response, or a piece of it.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) bytes: Bytes,
    /// Whether nothing comes behind it.
    pub(super) is_last: bool,
}

impl<'a> Exchange<'a> {
    /// Of a request that has no response yet.
    pub(super) fn request(
        session: &'a mut Session,
        handle: &'a Arc<Handle>,
        state: &'a mut State,
    ) -> Self {
        Self {
            session,
            handle,
            state,
            response: None,
            body: None,
        }
    }

    /// Of a request whose response is there.
    pub(super) fn response(
        session: &'a mut Session,
        handle: &'a Arc<Handle>,
        state: &'a mut State,
        header: &'a mut ResponseHeader,
        is_local: bool,
    ) -> Self {
        Self {
            response: Some((header, is_local)),
            ..Self::request(session, handle, state)
        }
    }

    /// Lets a hook look at it and change it.
    fn lend<R>(&mut self, look: impl FnOnce(Subject<'_>) -> R) -> R {
        let mut request = RequestView {
            session: self.session,
            generation: self.handle,
            state: self.state,
        };
        match &mut self.response {
            None => look(Subject::Request(&mut request)),
            Some((header, is_local)) => {
                let mut response = ResponseView {
                    header,
                    is_local: *is_local,
                    body: self.body.as_mut(),
                };
                look(Subject::Exchange(&mut request, &mut response))
            }
        }
    }

    /// Tells of a failure.
    fn failed(&self, hook: HookId, failure: &Failure) -> Stopped {
        self.handle.script_failure(self.state.route, hook, failure);
        Stopped::Failed
    }
}

/// Runs one hook on this worker's interpreter.
///
/// Most hooks run through without waiting; nothing is allocated for them here.
pub(super) async fn run<V: Said + 'static>(
    hook: HookId,
    exchange: &mut Exchange<'_>,
) -> Result<V, Stopped> {
    let said = match begin(hook, exchange) {
        Begun::Ended(said) => said,
        Begun::Waits(waiting) => {
            let waits = SendWrapper::new(wait(waiting, exchange));
            Box::pin(waits).await?
        }
    };
    said.map_err(|failure| exchange.failed(hook, &failure))
}

enum Begun<V> {
    Ended(Result<V, Failure>),
    Waits(Box<SendWrapper<Waiting<V>>>),
}

/// A hook that has not ended, and what it did last.
struct Waiting<V> {
    running: Running<V>,
    step: Step<V>,
    /// Kept to the end, so that the interpreter of this generation stays on this worker.
    _handle: Arc<Handle>,
}

fn begin<V: Said>(hook: HookId, exchange: &mut Exchange<'_>) -> Begun<V> {
    let started = worker::start(exchange.handle, hook);
    let mut running = match started {
        Ok(running) => running,
        Err(failure) => return Begun::Ended(Err(failure)),
    };
    match exchange.lend(|subject| running.resume(subject)) {
        Step::Ended(said) => Begun::Ended(said),
        step => Begun::Waits(Box::new(SendWrapper::new(Waiting {
            running,
            step,
            _handle: exchange.handle.clone(),
        }))),
    }
}

/// Runs a hook to its end. Dropped before, it is cancelled.
async fn wait<V: Said>(
    waiting: Box<SendWrapper<Waiting<V>>>,
    exchange: &mut Exchange<'_>,
) -> Result<Result<V, Failure>, Stopped> {
    let Waiting {
        mut running,
        mut step,
        _handle,
    } = (*waiting).take();
    loop {
        step = match step {
            Step::Ended(said) => return Ok(said),
            Step::Turn => {
                tokio::task::yield_now().await;
                exchange.lend(|subject| running.resume(subject))
            }
            Step::Calls(calls) => {
                let replies = replies(calls, exchange).await?;
                exchange.lend(|subject| running.answer(subject, replies))
            }
            Step::Password(check) => {
                let verified = passwords::verify(check, exchange.handle);
                let right = while_client_stays(verified, exchange).await?;
                exchange.lend(|subject| running.verified(subject, right))
            }
            Step::Load(load) => {
                while_client_stays(load, exchange).await?;
                exchange.lend(|subject| running.resume(subject))
            }
        };
    }
}

/// Runs a hook that can't wait, where nothing can wait for it: it has its budget in one piece.
pub(super) fn run_now<V: Said>(hook: HookId, exchange: &mut Exchange<'_>) -> Result<V, Stopped> {
    let ended = worker::start(exchange.handle, hook).and_then(|mut running| {
        let mut step = exchange.lend(|subject| running.resume(subject));
        loop {
            step = match step {
                Step::Ended(said) => return said,
                Step::Turn | Step::Load(_) => exchange.lend(|subject| running.resume(subject)),
                Step::Password(_) => exchange.lend(|subject| running.verified(subject, None)),
                // No kind of hook that may call comes here.
                Step::Calls(calls) => {
                    let none = calls.iter().map(|_| Err(no_calls())).collect();
                    exchange.lend(|subject| running.answer(subject, none))
                }
            };
        }
    });
    ended.map_err(|failure| exchange.failed(hook, &failure))
}

fn no_calls() -> CallFailure {
    CallFailure {
        kind: CallFailureKind::Unavailable,
        message: "this hook can't wait".to_owned(),
    }
}

/// Tells of a hook that has said what it can't say here.
pub(super) fn misused(hook: HookId, exchange: &Exchange<'_>, message: &str) -> Stopped {
    let place = &exchange.handle.program.hook(hook).place;
    exchange.failed(hook, &Failure::misuse(place, message))
}

/// Makes the calls that a hook waits for.
async fn replies(mut calls: Vec<Outgoing>, exchange: &Exchange<'_>) -> Result<Vec<Reply>, Stopped> {
    let request = &exchange.session.req_header().headers;
    if let Some(replies) = loops::mark(&mut calls, request) {
        // Waits a turn all the same, so that no hook can come back at once for ever.
        tokio::task::yield_now().await;
        return Ok(replies);
    }
    let handle = exchange.handle;
    let most_body = handle.config.script.fetch_body;
    let replies = handle.client().call_all(&calls, handle, most_body);
    while_client_stays(replies, exchange).await
}

/// Waits for what a hook waits for, as long as its client does.
pub(super) async fn while_client_stays<R>(
    awaited: impl Future<Output = R>,
    exchange: &Exchange<'_>,
) -> Result<R, Stopped> {
    let Some(client) = Presence::watch(exchange.session) else {
        return Ok(awaited.await);
    };
    // What nobody waits for any more is not begun.
    if client.has_ended() {
        return Err(Stopped::ClientLeft);
    }
    tokio::select! {
        biased;
        outcome = awaited => Ok(outcome),
        () = client.ends() => Err(Stopped::ClientLeft),
    }
}

/// Runs the `on_response` hooks of the route, or of the site when no route fits.
pub(super) async fn on_response(
    session: &mut Session,
    handle: &Arc<Handle>,
    state: &mut State,
    header: &mut ResponseHeader,
    is_local: bool,
) -> Result<Verdict, Stopped> {
    if std::mem::replace(&mut state.response_hooks_done, true) {
        return Ok(Verdict::Continue);
    }
    let hooks = match (state.route, state.site) {
        (Some(route), _) => &handle.route(route).on_response,
        (None, Some(site)) => &handle.program.site(site).on_response,
        (None, None) => return Ok(Verdict::Continue),
    };
    for &hook in hooks {
        let mut exchange = Exchange::response(session, handle, state, header, is_local);
        if let Verdict::Answer(answer) = run(hook, &mut exchange).await? {
            return Ok(Verdict::Answer(answer));
        }
    }
    Ok(Verdict::Continue)
}
