//! Where an expression begins.

use rhai::{Expr, Position};

/// The leftmost place of `expression`. Rhai gives an operation the place of its
/// operator; a reader looks for where the operands begin.
pub(super) fn start_of(expression: &Expr) -> Position {
    match expression {
        // `a in b` is kept as `contains(b, a)`, so the operands are in either order.
        Expr::FnCall(call, at) if !call.is_qualified() => {
            let operands = call.args.iter().map(start_of);
            let known = operands.filter(|start| !start.is_none());
            known.fold(*at, Ord::min)
        }
        Expr::And(operands, at) | Expr::Or(operands, at) | Expr::Coalesce(operands, at) => {
            operands.first().map_or(*at, start_of)
        }
        Expr::Dot(pair, ..) | Expr::Index(pair, ..) => start_of(&pair.lhs),
        other => other.start_position(),
    }
}
