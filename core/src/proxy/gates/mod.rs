//! The gates of a route: what is asked before any hook runs, in one order.

mod body;
mod cors;

pub(super) use body::{count_long_body, refuse_unrouted};
pub(super) use cors::{CorsReply, preflight, say as say_cors};

use edgewright_script::{
    answer::Answer,
    program::{Gate, Gates, Route, gate_answer},
};
use http::StatusCode;

use super::{admit::Admission, client, hooks::Exchange, view::RequestView};

/// Asks the gates of `route` in their order. What the first one that refuses says; `None` when all
/// let the request pass. A route without gates costs two comparisons.
#[inline]
pub(super) fn ask(route: &Route, exchange: &mut Exchange<'_>) -> Option<Admission> {
    match route.gates.as_deref() {
        Some(gates) => ask_all(gates, route, exchange),
        None if exchange.state.long_body => Some(body::refuse_long(exchange)),
        None => None,
    }
}

fn ask_all(gates: &Gates, route: &Route, exchange: &mut Exchange<'_>) -> Option<Admission> {
    if let Some(cors) = &gates.cors {
        cors::note(cors, exchange);
    }
    let trusted = &exchange.handle.config.trusted_proxies;
    if let Err(gate) = gates.admit_address(|| client::ip(exchange.session, trusted)) {
        return Some(refuse(gate, gate_answer(StatusCode::FORBIDDEN), exchange));
    }
    body::admit(gates, exchange)
        .or_else(|| count(gates, route, exchange))
        .or_else(|| enter(gates, route, exchange))
}

/// `.limit`
fn count(gates: &Gates, route: &Route, exchange: &mut Exchange<'_>) -> Option<Admission> {
    for limit in &gates.limits {
        let checked = limit.check(&view(exchange), &route.label);
        if let Err(answer) = checked {
            return Some(refuse(Gate::Limit, answer, exchange));
        }
    }
    None
}

/// `.concurrency`: the request's slots go back when it is dropped, whatever way it ends.
fn enter(gates: &Gates, route: &Route, exchange: &mut Exchange<'_>) -> Option<Admission> {
    for bound in &gates.concurrency {
        let entered = bound.enter(&view(exchange), &route.label);
        match entered {
            Ok(slot) => exchange.state.rare().slots.push(slot),
            Err(answer) => return Some(refuse(Gate::Concurrency, answer, exchange)),
        }
    }
    None
}

fn view<'e>(exchange: &'e mut Exchange<'_>) -> RequestView<'e> {
    RequestView {
        session: exchange.session,
        generation: exchange.handle,
        state: exchange.state,
    }
}

/// Counts a refusal and answers it.
fn refuse(gate: Gate, answer: Answer, exchange: &Exchange<'_>) -> Admission {
    let metrics = exchange.handle.metrics_of(exchange.state.route);
    metrics.refused_by(gate);
    Admission::Answer(answer)
}
