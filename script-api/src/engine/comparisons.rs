//! Comparing a text with a number is a failure. Rhai finds `"10" < 5` false, and a gate that
//! forgot `num(..)` would let everything pass.
//!
//! Rhai asks for registered operators only when its fast ones are off, which costs a look-up for
//! each operator. So that is done for programs that order anything.

use rhai::{AST, ASTNode, Engine, Expr, FLOAT, INT};

use super::current::{NativeResult, error};

const OPERATORS: [&str; 4] = ["<", "<=", ">", ">="];

/// Whether a function of the program orders values.
pub(super) fn are_used(ast: &AST) -> bool {
    let mut found = false;
    ast.clone_functions_only().walk(&mut |path: &[ASTNode]| {
        if let Some(ASTNode::Expr(Expr::FnCall(call, _))) = path.last() {
            found |= OPERATORS.contains(&call.name.as_str());
        }
        !found
    });
    found
}

/// Makes the comparisons fail.
pub(super) fn refuse_mixed(engine: &mut Engine) {
    engine.set_fast_operators(false);
    for operator in OPERATORS {
        engine
            .register_fn(operator, |_: &str, _: INT| mixed())
            .register_fn(operator, |_: &str, _: FLOAT| mixed())
            .register_fn(operator, |_: INT, _: &str| mixed())
            .register_fn(operator, |_: FLOAT, _: &str| mixed());
    }
}

fn mixed() -> NativeResult<bool> {
    Err(error("a text is compared with a number: use num(..)"))
}
