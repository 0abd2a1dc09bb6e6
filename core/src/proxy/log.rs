//! `on_log`: hooks that look at what was, when everything is over.

use std::sync::Arc;

use edgewright_script::engine::Seen;
use pingora_error::Error;
use pingora_http::ResponseHeader;
use pingora_proxy::Session;

use super::{
    CLIENT_LEFT, MOST_LOGGED,
    context::State,
    hooks::{self, Exchange},
};
use crate::worker::Handle;

/// Whether hooks want to know when the upstream answered.
pub(super) fn is_interested(handle: &Handle, state: &State) -> bool {
    state.route.is_some_and(|route| {
        let route = handle.route(route);
        !route.on_response.is_empty() || !route.later.on_log.is_empty()
    })
}

/// Whether there is a hook for this request.
pub(super) fn has_hooks(handle: &Handle, state: &State) -> bool {
    !state.later(handle).on_log.is_empty()
}

/// Runs the hooks, each once, whatever has become of the request. A failure of one stops none of the
/// others.
pub(super) async fn run(
    session: &mut Session,
    handle: &Arc<Handle>,
    state: &mut State,
    error: Option<&Error>,
) {
    let written = session.response_written().cloned();
    let Ok(mut header) = written.map_or_else(|| ResponseHeader::build(CLIENT_LEFT, None), Ok)
    else {
        return;
    };
    if let (Some(error), false) = (error, state.answered) {
        // What the client was told says it in fewer words.
        let failure = &mut state.rare().failure;
        failure.get_or_insert_with(|| error.to_string().chars().take(MOST_LOGGED).collect());
    }
    let is_local = state.is_local;
    for &hook in &state.later(handle).on_log {
        let mut exchange = Exchange::response(session, handle, state, &mut header, is_local);
        let _ = hooks::run::<Seen>(hook, &mut exchange).await;
    }
}
