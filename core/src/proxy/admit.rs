//! From a request's header to where it goes: normal form, route, hooks, destination.

use std::sync::Arc;

use edgewright_script::{
    answer::Answer,
    engine::{Choice, Verdict},
    program::{Destination, HookId, Match, Route, RouteId, SiteId},
    request::Request,
    router::Template,
};
use http::StatusCode;
use pingora_proxy::Session;
use smallvec::SmallVec;

use super::{
    client,
    context::{Context, Refusal, State},
    hooks::{self, Failed},
    path,
    view::RequestView,
};
use crate::worker::Handle;

/// Where a request goes.
pub(super) enum Admission {
    /// To the pool in the context.
    Proxy,
    /// Nowhere: the program answers.
    Answer(Answer),
    /// Nowhere: it can't be served.
    Refuse(Refusal),
}

impl From<Failed> for Admission {
    fn from(_: Failed) -> Self {
        Self::Refuse(Refusal::hook_failed())
    }
}

/// Decides where a request goes. Runs no I/O and waits for nothing.
pub(super) fn admit(session: &mut Session, context: &mut Context) -> Admission {
    let Context { handle, state, .. } = context;
    let header = session.req_header_mut();
    if state.seen.odd_host {
        client::normalize_host(header);
    }
    if state.seen.nominates
        && let Err(reason) = client::remove_nominated(header)
    {
        return Admission::Refuse(Refusal::new(400, reason));
    }
    match path::to_normal(header, handle.program.path_policy()) {
        Ok(None) => {}
        Ok(Some(sent)) => state.rare().raw_path = Some(sent),
        Err(error) => return Admission::Refuse(Refusal::new(400, error.to_string())),
    }
    match choose(session, handle, state) {
        Ok(admission) => admission,
        Err(failed) => failed.into(),
    }
}

fn choose(
    session: &mut Session,
    handle: &Arc<Handle>,
    state: &mut State,
) -> Result<Admission, Failed> {
    let mut rejected: SmallVec<[RouteId; 4]> = SmallVec::new();
    loop {
        let view = RequestView {
            session,
            generation: handle,
            state,
        };
        match handle.program.find(&view, &rejected) {
            Match::Found(found) => {
                let route = handle.route(found.route);
                state.route = Some(found.route);
                state.site = Some(route.site);
                state.captures = found.captures;
                if !route.when.is_empty() && !holds(&route.when, session, handle, state)? {
                    rejected.push(found.route);
                    continue;
                }
                return go(route, session, handle, state);
            }
            Match::NoSite => {
                forget_route(state);
                return Ok(Admission::Refuse(Refusal::new(404, "no route")));
            }
            Match::NoRoute(site) => {
                forget_route(state);
                return unrouted(site, session, handle, state, None);
            }
            Match::MethodNotAllowed { site, allow } => {
                forget_route(state);
                return unrouted(site, session, handle, state, Some(&allow));
            }
        }
    }
}

/// A route whose `.when` said no leaves nothing behind.
fn forget_route(state: &mut State) {
    state.route = None;
    state.captures = Default::default();
}

fn holds(
    conditions: &[HookId],
    session: &mut Session,
    handle: &Arc<Handle>,
    state: &mut State,
) -> Result<bool, Failed> {
    for &hook in conditions {
        let holds = hooks::run(hook, session, handle, state, |interpreter, view| {
            interpreter.when(hook, view)
        })?;
        if !holds {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The hooks of the site run although no route fits: a gate of a site also hides what is not there.
fn unrouted(
    site: SiteId,
    session: &mut Session,
    handle: &Arc<Handle>,
    state: &mut State,
    allow: Option<&str>,
) -> Result<Admission, Failed> {
    state.site = Some(site);
    if let Some(answer) = gates(
        &handle.program.site(site).on_request,
        session,
        handle,
        state,
    )? {
        return Ok(Admission::Answer(answer));
    }
    let Some(allow) = allow else {
        return Ok(Admission::Refuse(Refusal::new(404, "no route")));
    };
    let answer = Answer::new(405, "405 method not allowed\n").and_then(|mut answer| {
        answer.add_header("allow", allow)?;
        Ok(answer)
    });
    Ok(answer.map_or_else(
        |_| Admission::Refuse(Refusal::new(405, "method not allowed")),
        Admission::Answer,
    ))
}

/// Runs gates in order until one answers.
fn gates(
    gates: &[HookId],
    session: &mut Session,
    handle: &Arc<Handle>,
    state: &mut State,
) -> Result<Option<Answer>, Failed> {
    for &hook in gates {
        let verdict = hooks::run(hook, session, handle, state, |interpreter, view| {
            interpreter.on_request(hook, view)
        })?;
        if let Verdict::Answer(answer) = verdict {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

fn go(
    route: &Route,
    session: &mut Session,
    handle: &Arc<Handle>,
    state: &mut State,
) -> Result<Admission, Failed> {
    if let Some(answer) = gates(&route.on_request, session, handle, state)? {
        return Ok(Admission::Answer(answer));
    }
    Ok(match &route.destination {
        Destination::Pool(pool) => {
            state.pool = Some(*pool);
            Admission::Proxy
        }
        Destination::Split(split) => {
            state.pool = Some(split.pick(fastrand::u64(..)));
            Admission::Proxy
        }
        Destination::Respond(answer) => Admission::Answer(answer.clone()),
        Destination::RespondFunction(hook) => Admission::Answer(hooks::run(
            *hook,
            session,
            handle,
            state,
            |interpreter, view| interpreter.respond(*hook, view),
        )?),
        Destination::Redirect(status, target) => redirect(*status, target, session, handle, state),
        Destination::Function(hook) => {
            let choice = hooks::run(*hook, session, handle, state, |interpreter, view| {
                interpreter.choose(*hook, view)
            })?;
            match choice {
                Choice::Answer(answer) => return Ok(Admission::Answer(answer)),
                Choice::Pool(pool) => state.pool = Some(pool),
                Choice::Split(split) => state.pool = Some(split.pick(fastrand::u64(..))),
            }
            Admission::Proxy
        }
    })
}

/// The query goes along unless the target has one of its own.
fn redirect(
    status: StatusCode,
    target: &Template,
    session: &mut Session,
    handle: &Arc<Handle>,
    state: &mut State,
) -> Admission {
    let view = RequestView {
        session,
        generation: handle,
        state,
    };
    let mut location = String::new();
    target.render(view.matched_path(), &view.state.captures, &mut location);
    if !target.has_query() && !view.query_string().is_empty() {
        location.push('?');
        location.push_str(view.query_string());
    }
    if location.starts_with("//") {
        // Such a target would name another host (RFC 3986 section 4.2).
        return Admission::Refuse(Refusal::new(400, "the target would be on another host"));
    }
    match Answer::redirect(i64::from(status.as_u16()), &location) {
        Ok(answer) => Admission::Answer(answer),
        Err(reason) => Admission::Refuse(Refusal::new(500, reason)),
    }
}
