//! The values that a function can give back, and whether a hook may give them.

use rhai::{ASTFlags, ASTNode, Expr, ImmutableString, Position, Stmt};

use super::findings::Findings;
use super::kinds::{Kind, kind_of};
use super::place::start_of;
use super::program::{Function, Program, capturing_closure};
use crate::program::HookKind;

/// A value that a function can give back.
pub(super) struct FunctionResult {
    /// `None` when it doesn't show.
    pub(super) kind: Option<Kind>,
    pub(super) at: Position,
    pub(super) names: Vec<ResultName>,
}

/// A name that a value spells out: a text, or a key of a map.
pub(super) struct ResultName {
    pub(super) name: ImmutableString,
    pub(super) at: Position,
    /// In characters.
    pub(super) length: usize,
}

impl FunctionResult {
    fn value(program: &Program<'_>, value: &Expr) -> Self {
        Self {
            kind: kind_of(program, value),
            at: start_of(value),
            names: names(value),
        }
    }

    /// A value of which nothing but its type shows.
    fn other(kind: Option<Kind>, at: Position) -> Self {
        Self {
            kind,
            at,
            names: Vec::new(),
        }
    }
}

fn names(value: &Expr) -> Vec<ResultName> {
    match value {
        Expr::StringConstant(text, at) => vec![ResultName {
            name: text.clone(),
            at: *at,
            length: text.chars().count() + "\"\"".len(),
        }],
        Expr::FnCall(call, _) if call.name == "pick" => match call.args.first() {
            Some(pool @ Expr::StringConstant(..)) => names(pool),
            _ => Vec::new(),
        },
        Expr::Map(map, _) => {
            let keys = map.0.iter();
            keys.map(|(key, _)| ResultName {
                name: key.name.clone(),
                at: key.pos,
                length: key.name.chars().count(),
            })
            .collect()
        }
        _ => Vec::new(),
    }
}

/// Every value that `function` can give back, as far as the tree shows.
pub(super) fn results(program: &Program<'_>, function: &Function) -> Vec<FunctionResult> {
    let mut list = Vec::new();
    for statement in &function.body {
        statement.walk(&mut Vec::new(), &mut |path: &[ASTNode<'_>]| {
            // `throw` is the same node with the flag BREAK.
            if let Some(ASTNode::Stmt(Stmt::Return(value, flags, at))) = path.last()
                && !flags.contains(ASTFlags::BREAK)
            {
                match value {
                    Some(value) => of_value(program, value, &mut list),
                    None => list.push(FunctionResult::other(Some(Kind::Unit), *at)),
                }
            }
            true
        });
    }
    of_block(program, &function.body, function.position, &mut list);
    list
}

/// The value of an expression, which may be a block: `if` and `switch` are one as values.
fn of_value(program: &Program<'_>, value: &Expr, list: &mut Vec<FunctionResult>) {
    match value {
        Expr::Stmt(block) if capturing_closure(block).is_none() => {
            of_block(program, block.statements(), block.position(), list);
        }
        value => list.push(FunctionResult::value(program, value)),
    }
}

/// The value of a block is that of its last statement, with a `;` or without.
fn of_block(
    program: &Program<'_>,
    statements: &[Stmt],
    at: Position,
    list: &mut Vec<FunctionResult>,
) {
    let Some(last) = statements.last() else {
        list.push(FunctionResult::other(Some(Kind::Unit), at));
        return;
    };
    match last {
        // Returns are collected by the walk; a throw gives no value.
        Stmt::Return(..) => {}
        Stmt::Expr(value) => of_value(program, value, list),
        Stmt::Block(block) => of_block(program, block.statements(), block.position(), list),
        Stmt::If(parts, at) => {
            of_block(program, parts.body.statements(), *at, list);
            of_block(program, parts.branch.statements(), *at, list);
        }
        Stmt::Switch(parts, at) => {
            for arm in &parts.1.expressions {
                match &arm.rhs {
                    Expr::Stmt(block) if capturing_closure(block).is_none() => {
                        of_block(program, block.statements(), *at, list);
                    }
                    value => list.push(FunctionResult::value(program, value)),
                }
            }
            if parts.1.def_case.is_none() {
                list.push(FunctionResult::other(Some(Kind::Unit), *at));
            }
        }
        Stmt::TryCatch(parts, at) => {
            of_block(program, parts.body.statements(), *at, list);
            of_block(program, parts.branch.statements(), *at, list);
        }
        // A loop can end with `break value`, or never.
        Stmt::While(..) | Stmt::Do(..) | Stmt::For(..) | Stmt::FnCall(..) => {
            list.push(FunctionResult::other(None, last.position()));
        }
        _ => list.push(FunctionResult::other(Some(Kind::Unit), last.position())),
    }
}

/// Reports the values that a hook of this kind must not give back.
pub(super) fn check(
    program: &Program<'_>,
    function: &Function,
    kind: HookKind,
    findings: &mut Findings,
) {
    for result in results(program, function) {
        let Some(given) = result.kind else {
            continue;
        };
        let refused = match kind {
            // A map that may be absent is what `jwt_verify` gives, which stops nothing.
            HookKind::OnRequest
            | HookKind::OnRequestBody
            | HookKind::OnResponse
            | HookKind::OnResponseBody => matches!(given, Kind::Bool | Kind::MapOrUnit).then_some(
                "a hook gives `()` to go on, or a response: `if !ok { return respond(403); }`",
            ),
            // It is too late for a response; whatever else is left over says nothing.
            HookKind::OnLog => None,
            HookKind::To => matches!(
                given,
                Kind::Bool | Kind::Number | Kind::Array | Kind::Blob | Kind::BlobOrUnit
            )
            .then_some("`.to` wants the name of a pool, or `pick(..)`"),
            HookKind::Every => (given == Kind::Response)
                .then_some("it runs without a request: there is nobody to answer"),
            HookKind::When => (given != Kind::Bool).then_some("`.when` wants true or false"),
            HookKind::Respond => matches!(
                given,
                Kind::Unit | Kind::Bool | Kind::Number | Kind::Blob | Kind::BlobOrUnit
            )
            .then_some("`.respond` wants a response: `respond(200, \"ok\")`"),
        };
        if let Some(help) = refused {
            let message = format!("{} can't end with {}", kind.described(), given.described());
            findings.error(result.at, 1, message, Some(help.to_string()));
        }
    }
}
