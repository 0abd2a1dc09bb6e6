//! What is rare in indices (characters of a text, bits of a number, bytes of a blob) is done by the
//! interpreter, by a program of one line.

use rhai::{Caches, Dynamic, Engine, EvalContext, Expr, Position, Scope, Stmt, StmtBlock};

use super::{Lowered, unknown};
use crate::engine::{
    budget,
    compiled::machine::{Flow, Host, Stop},
};

/// Operations that such a program counts beyond those of the index itself: the statement, the expression
/// and its parts, which the hook has counted already.
const COUNTED: u64 = 5;

/// `value[index]`, or `value[index] = to` with any operator, as a program.
pub(super) struct Detour {
    program: Expr,
    index_place: Position,
    operator_place: Position,
    assignment_place: Position,
}

/// The columns of the bracket and of the index in the program.
const OPERATOR: usize = 6;
const INDEX: usize = 7;

impl Detour {
    /// `assigned` is the operator of an assignment, and its place.
    pub(super) fn new(
        engine: &Engine,
        assigned: Option<(&str, Position)>,
        index_place: Position,
        operator_place: Position,
    ) -> Lowered<Self> {
        let program = match assigned {
            None => "value[index]".to_owned(),
            Some((operator, _)) => format!("value[index] {operator} to"),
        };
        let mut names = Scope::new();
        for name in ["value", "index", "to"] {
            names.push(name, ());
        }
        let Ok(ast) = engine.compile_with_scope(&names, program) else {
            return unknown("this index", index_place);
        };
        let statements: Vec<Stmt> = ast.statements().to_vec();
        let block = StmtBlock::new(statements, Position::NONE, Position::NONE);
        Ok(Self {
            program: Expr::Stmt(Box::new(block)),
            index_place,
            operator_place,
            assignment_place: assigned.map_or(operator_place, |(_, place)| place),
        })
    }

    /// Runs it over `value`, which it may change.
    pub(super) fn run(
        &self,
        host: &mut Host<'_>,
        value: &mut Dynamic,
        index: Dynamic,
        to: Dynamic,
    ) -> Flow {
        let mut scope = Scope::new();
        scope.push_dynamic("value", value.take());
        scope.push_dynamic("index", index);
        scope.push_dynamic("to", to);
        let mut caches = Caches::new();
        let result = budget::without(COUNTED, || {
            EvalContext::new(host.engine, host.global, &mut caches, &mut scope, None)
                .eval_expression_tree(&(&self.program).into())
        });
        if let Some(changed) = scope.get_mut("value") {
            *value = changed.take();
        }
        result.map_err(|mut error| {
            // Where it happened in the program of one line says where that is in the hook.
            match error.position().position() {
                None | Some(0) => {}
                Some(OPERATOR) => {
                    error.set_position(self.operator_place);
                }
                Some(column) if column > INDEX => {
                    error.set_position(self.assignment_place);
                }
                Some(_) => {
                    error.set_position(self.index_place);
                }
            }
            Stop::Failed(error)
        })
    }
}
