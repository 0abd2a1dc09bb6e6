//! Runs hooks and tells of their failures: one log line and one metric each.

use std::sync::Arc;

use edgewright_script::{
    engine::{Failure, Interpreter, Verdict},
    program::HookId,
};
use pingora_http::ResponseHeader;
use pingora_proxy::Session;

use super::{
    context::State,
    view::{RequestView, ResponseView},
};
use crate::worker::{self, Handle};

/// A hook failed, and that has been told.
#[derive(Debug)]
pub(super) struct Failed;

/// Runs one hook on this worker's interpreter.
pub(super) fn run<R>(
    hook: HookId,
    session: &mut Session,
    handle: &Arc<Handle>,
    state: &mut State,
    call: impl FnOnce(&mut Interpreter, &mut RequestView<'_>) -> Result<R, Failure>,
) -> Result<R, Failed> {
    let route = state.route;
    let mut view = RequestView {
        session,
        generation: handle,
        state,
    };
    let done = match worker::interpreter(handle, |interpreter| call(interpreter, &mut view)) {
        Ok(done) => done,
        Err(error) => {
            tracing::error!("no interpreter: {}", error.summary());
            return Err(Failed);
        }
    };
    done.map_err(|failure| {
        let kind = handle.program.hook(hook).kind.name();
        let metrics = handle.metrics_of(route);
        metrics.script_failure(kind, failure.kind);
        if let Some(limit) = failure.limit {
            handle.limit_hit(limit);
        }
        tracing::error!(
            "script failure route={} hook={kind} at={} kind={} error={}",
            metrics.label(),
            failure.place,
            failure.kind.name(),
            failure.message,
        );
        Failed
    })
}

/// Runs the `on_response` hooks of the route, or of the site when no route fits.
pub(super) fn on_response(
    session: &mut Session,
    handle: &Arc<Handle>,
    state: &mut State,
    header: &mut ResponseHeader,
    is_local: bool,
) -> Result<Verdict, Failed> {
    if std::mem::replace(&mut state.response_hooks_done, true) {
        return Ok(Verdict::Continue);
    }
    let hooks = match (state.route, state.site) {
        (Some(route), _) => &handle.route(route).on_response,
        (None, Some(site)) => &handle.program.site(site).on_response,
        (None, None) => return Ok(Verdict::Continue),
    };
    for &hook in hooks {
        let mut response = ResponseView { header, is_local };
        let verdict = run(hook, session, handle, state, |interpreter, request| {
            interpreter.on_response(hook, request, &mut response)
        })?;
        if let Verdict::Answer(answer) = verdict {
            return Ok(Verdict::Answer(answer));
        }
    }
    Ok(Verdict::Continue)
}
