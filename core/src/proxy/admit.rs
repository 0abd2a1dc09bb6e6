//! From a request's header to where it goes: normal form, route, gates, hooks, destination.

use edgewright_script::{
    answer::Answer,
    engine::{Choice, Holds, Verdict},
    program::{Destination, HookId, Match, Route, RouteId, Site},
    request::Request,
    router::Template,
};
use http::StatusCode;
use pingora_proxy::Session;
use smallvec::SmallVec;

use super::{
    affinity,
    auth::{self, Denied},
    bodies::{self, request::Unread},
    client,
    context::{Context, Refusal, State},
    gates,
    hooks::{self, Exchange, Stopped},
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
    /// Nowhere: there is nobody to answer to.
    ClientLeft,
}

impl From<Stopped> for Admission {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Failed => Self::Refuse(Refusal::hook_failed()),
            Stopped::ClientLeft => Self::ClientLeft,
        }
    }
}

impl From<Denied> for Admission {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Answer(answer) => Self::Answer(answer),
            Denied::Refuse(refusal) => Self::Refuse(refusal),
            Denied::ClientLeft => Self::ClientLeft,
        }
    }
}

/// Decides where a request goes. Waits only where a hook does.
pub(super) async fn admit(session: &mut Session, context: &mut Context) -> Admission {
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
    let mut exchange = Exchange::request(session, handle, state);
    if let Some(answer) = gates::preflight(&mut exchange) {
        return answer;
    }
    let found = find(&mut exchange, &[]);
    if let Some(refusal) = ambiguous(&found, &exchange) {
        return Admission::Refuse(refusal);
    }
    match without_hooks(&found, &mut exchange) {
        Some(admission) => admission,
        None => {
            // Boxed, so that requests without hooks don't carry its state.
            let admission = Box::pin(with_hooks(found, &mut exchange)).await;
            admission.unwrap_or_else(Admission::from)
        }
    }
}

/// Refuses credentials that are there twice (RFC 9110 section 5.3): a gate would look at one of them,
/// and the upstream perhaps at the other. A filter that reads them answers with its own 401.
fn ambiguous(found: &Found<'_>, exchange: &Exchange<'_>) -> Option<Refusal> {
    if !exchange.state.seen.repeated_authorization {
        return None;
    }
    let answers = matches!(found, Found::Route(route)
        if route.auth.as_ref().is_some_and(|auth| auth.takes_authorization()));
    (!answers).then(|| Refusal::new(400, "there is more than one Authorization field"))
}

/// Where a request goes for which no hook runs, which is most. `None` when one has to.
fn without_hooks(found: &Found<'_>, exchange: &mut Exchange<'_>) -> Option<Admission> {
    match found {
        Found::Route(route) if route.needs_no_hook() => {
            gates::ask(route, exchange).or_else(|| native(&route.destination, exchange))
        }
        Found::Nothing | Found::Site(..) if exchange.state.long_body => {
            gates::refuse_unrouted(exchange)
        }
        Found::Nothing => Some(Admission::Refuse(Refusal::new(404, "no route"))),
        Found::Site(site, allow) if site.on_request.is_empty() => Some(unrouted(allow.as_deref())),
        Found::Route(_) | Found::Site(..) => None,
    }
}

/// What a request fits.
enum Found<'a> {
    Route(&'a Route),
    /// No route of the site; or none for the method, then with the methods that there are.
    Site(&'a Site, Option<String>),
    Nothing,
}

/// Finds what a request fits, beside the routes that a `.when` has `rejected`, and notes it.
fn find<'a>(exchange: &mut Exchange<'a>, rejected: &[RouteId]) -> Found<'a> {
    let handle = exchange.handle;
    let view = RequestView {
        session: exchange.session,
        generation: handle,
        state: exchange.state,
    };
    let matched = handle.program.find(&view, rejected);
    let state = &mut *exchange.state;
    let (site, allow) = match matched {
        Match::Found(found) => {
            let route = handle.route(found.route);
            state.route = Some(found.route);
            state.site = Some(route.site);
            state.captures = found.captures;
            return Found::Route(route);
        }
        Match::NoSite => {
            forget_route(state);
            return Found::Nothing;
        }
        Match::NoRoute(site) => (site, None),
        Match::MethodNotAllowed { site, allow } => (site, Some(allow)),
    };
    forget_route(state);
    state.site = Some(site);
    Found::Site(handle.program.site(site), allow)
}

/// A route whose `.when` said no leaves nothing behind.
fn forget_route(state: &mut State) {
    state.route = None;
    state.captures = Default::default();
}

async fn with_hooks(
    mut found: Found<'_>,
    exchange: &mut Exchange<'_>,
) -> Result<Admission, Stopped> {
    let mut rejected: SmallVec<[RouteId; 4]> = SmallVec::new();
    loop {
        match found {
            Found::Route(route) => {
                if holds(&route.when, exchange).await? {
                    return go(route, exchange).await;
                }
                rejected.extend(exchange.state.route);
            }
            Found::Nothing => return Ok(Admission::Refuse(Refusal::new(404, "no route"))),
            // The hooks of the site run although no route fits: a gate of a site also hides what
            // is not there.
            Found::Site(site, allow) => {
                let refused = answer_of(&site.on_request, exchange).await?;
                return Ok(refused.map_or_else(|| unrouted(allow.as_deref()), Admission::Answer));
            }
        }
        found = find(exchange, &rejected);
        if let Some(refusal) = ambiguous(&found, exchange) {
            return Ok(Admission::Refuse(refusal));
        }
    }
}

async fn holds(conditions: &[HookId], exchange: &mut Exchange<'_>) -> Result<bool, Stopped> {
    for &hook in conditions {
        let Holds(holds) = hooks::run(hook, exchange).await?;
        if !holds {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The answer to a request that fits no route of its site, or none that takes its method.
fn unrouted(allow: Option<&str>) -> Admission {
    let Some(allow) = allow else {
        return Admission::Refuse(Refusal::new(404, "no route"));
    };
    let answer = Answer::new(405, "405 method not allowed\n").and_then(|mut answer| {
        answer.add_header("allow", allow)?;
        Ok(answer)
    });
    answer.map_or_else(
        |_| Admission::Refuse(Refusal::new(405, "method not allowed")),
        Admission::Answer,
    )
}

/// Runs `on_request` hooks in order until one answers.
async fn answer_of(
    hooks: &[HookId],
    exchange: &mut Exchange<'_>,
) -> Result<Option<Answer>, Stopped> {
    for &hook in hooks {
        if let Verdict::Answer(answer) = hooks::run(hook, exchange).await? {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

async fn go(route: &Route, exchange: &mut Exchange<'_>) -> Result<Admission, Stopped> {
    if let Some(refused) = gates::ask(route, exchange) {
        return Ok(refused);
    }
    if let Some(auth) = &route.auth
        && let Err(denied) = auth::check(auth, exchange).await
    {
        return Ok(denied.into());
    }
    if let Some(answer) = answer_of(&route.on_request, exchange).await? {
        return Ok(Admission::Answer(answer));
    }
    if !route.on_request_body.is_empty() {
        match bodies::request::read(exchange).await {
            Ok(()) => {}
            Err(Unread::Refused(refusal)) => return Ok(Admission::Refuse(refusal)),
            Err(Unread::ClientLeft) => return Ok(Admission::ClientLeft),
        }
        if let Some(answer) = answer_of(&route.on_request_body, exchange).await? {
            return Ok(Admission::Answer(answer));
        }
    }
    let choice = match &route.destination {
        Destination::RespondFunction(hook) => Choice::Answer(hooks::run(*hook, exchange).await?),
        Destination::Function(hook) => hooks::run(*hook, exchange).await?,
        destination => match native(destination, exchange) {
            Some(admission) => return Ok(admission),
            None => unreachable!("only functions are not native"),
        },
    };
    Ok(chosen(choice, exchange))
}

/// Where a function sends the request.
fn chosen(choice: Choice, exchange: &mut Exchange<'_>) -> Admission {
    match choice {
        Choice::Answer(answer) => return Admission::Answer(answer),
        Choice::Pool(pool) => affinity::to_pool(pool, exchange),
        Choice::Split(split) => affinity::to_split(&split, exchange),
        Choice::Pick(pick) => affinity::to_pick(pick, exchange),
    }
    Admission::Proxy
}

/// Asks a `.to` function again that wants to know of each attempt, once one has failed. `None` when the
/// route has no such function: the pool stays.
pub(super) async fn again(session: &mut Session, context: &mut Context) -> Option<Admission> {
    let Context { handle, state, .. } = context;
    let hook = asked_again(handle, state)?;
    let mut exchange = Exchange::request(session, handle, state);
    Some(match hooks::run(hook, &mut exchange).await {
        Ok(choice) => chosen(choice, &mut exchange),
        Err(stopped) => stopped.into(),
    })
}

/// The `.to` function of the route that is asked for each attempt.
pub(super) fn asked_again(handle: &Handle, state: &State) -> Option<HookId> {
    match handle.route(state.route?).destination {
        Destination::Function(hook) if handle.program.hook(hook).is_told_the_attempt => Some(hook),
        _ => None,
    }
}

/// Where a destination leads that is no function. `None` for functions.
fn native(destination: &Destination, exchange: &mut Exchange<'_>) -> Option<Admission> {
    match destination {
        Destination::Pool(pool) => affinity::to_pool(*pool, exchange),
        Destination::Split(split) => affinity::to_split(split, exchange),
        Destination::Respond(answer) => return Some(Admission::Answer(answer.clone())),
        Destination::Redirect(status, target) => return Some(redirect(*status, target, exchange)),
        Destination::RespondFunction(_) | Destination::Function(_) => return None,
    }
    Some(Admission::Proxy)
}

/// The query goes along unless the target has one of its own.
fn redirect(status: StatusCode, target: &Template, exchange: &mut Exchange<'_>) -> Admission {
    let view = RequestView {
        session: exchange.session,
        generation: exchange.handle,
        state: exchange.state,
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
