//! The gates of a route: what is asked before any hook runs, in one order.

use edgewright_script::{
    answer::Answer,
    program::{Gate, Gates, Route},
};

use super::{admit::Admission, client, context::Refusal, hooks::Exchange};

/// Asks the gates of `route` in their order. What the first one that refuses says; `None` when all
/// let the request pass. A route without gates costs one comparison.
#[inline]
pub(super) fn ask(route: &Route, exchange: &mut Exchange<'_>) -> Option<Admission> {
    let gates = route.gates.as_deref()?;
    ask_all(gates, exchange)
}

fn ask_all(gates: &Gates, exchange: &mut Exchange<'_>) -> Option<Admission> {
    let trusted = &exchange.handle.config.trusted_proxies;
    if let Err(gate) = gates.admit_address(|| client::ip(exchange.session, trusted)) {
        return Some(refuse(gate, Answer::new(403, "403 forbidden\n"), exchange));
    }
    None
}

/// Counts a refusal and answers it.
fn refuse(gate: Gate, answer: Result<Answer, String>, exchange: &Exchange<'_>) -> Admission {
    exchange
        .handle
        .metrics_of(exchange.state.route)
        .refused_by(gate);
    match answer {
        Ok(answer) => Admission::Answer(answer),
        // Not reached: the statuses of gates are checked when the program is loaded.
        Err(reason) => Admission::Refuse(Refusal::new(500, reason)),
    }
}
