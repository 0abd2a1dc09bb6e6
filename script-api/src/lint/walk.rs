//! Walks a program with the names in sight, and shows each node to the checks.

use rhai::{ASTFlags, Expr, FnCallExpr, Namespace, Position, Stmt, StmtBlock};

use super::chain::{Chain, Link};
use super::findings::Findings;
use super::program::{Function, Program, capturing_closure, closure};
use super::scope::{Binding, Inside, Scope, Use};

/// Nested nodes that are followed. A tree of the parser with the engine's
/// limits (64 levels) stays far below.
const MAX_DEPTH: usize = 300;

/// One check. Each method is called for every node of its kind.
#[allow(unused_variables)]
pub(super) trait Check<'a> {
    /// A variable is read or assigned to.
    fn variable(&mut self, used: Use<'a>, scope: &Scope<'a>, findings: &mut Findings) {}
    /// `module::NAME` is read, or `module::name(..)` is called.
    fn qualified(
        &mut self,
        namespace: &'a Namespace,
        variable: Option<Use<'a>>,
        scope: &Scope<'a>,
        findings: &mut Findings,
    ) {
    }
    /// A function or operator is called, not as a method.
    fn call(
        &mut self,
        call: &'a FnCallExpr,
        at: Position,
        scope: &Scope<'a>,
        findings: &mut Findings,
    ) {
    }
    /// Properties, methods and indexes behind a root.
    fn chain(&mut self, chain: &Chain<'a>, scope: &Scope<'a>, findings: &mut Findings) {}
    /// Something is assigned to.
    fn assignment(
        &mut self,
        target: &'a Expr,
        value: &'a Expr,
        scope: &Scope<'a>,
        findings: &mut Findings,
    ) {
    }
    /// A value that must be true or false.
    fn condition(&mut self, condition: &'a Expr, findings: &mut Findings) {}
    /// A value that nothing uses.
    fn discarded(&mut self, value: &'a Expr, scope: &Scope<'a>, findings: &mut Findings) {}
    /// `export` before a declaration or a name.
    fn export(&mut self, at: Position, findings: &mut Findings) {}
    /// An `import` statement.
    fn import(&mut self, at: Position, scope: &Scope<'a>, findings: &mut Findings) {}
}

/// The walk; it calls every check at every node.
pub(super) struct Walker<'a, 'c> {
    program: &'a Program<'a>,
    checks: &'c mut [&'c mut dyn Check<'a>],
    findings: &'c mut Findings,
    scope: Scope<'a>,
    depth: usize,
}

impl<'a, 'c> Walker<'a, 'c> {
    pub(super) fn new(
        program: &'a Program<'a>,
        checks: &'c mut [&'c mut dyn Check<'a>],
        findings: &'c mut Findings,
    ) -> Self {
        Self {
            program,
            checks,
            findings,
            scope: Scope::new(Inside::TopLevel),
            depth: 0,
        }
    }

    /// The top level and every function that has a name; closures are walked
    /// where they stand, with the variables around them.
    pub(super) fn walk_program(&mut self) {
        self.scope = Scope::new(Inside::TopLevel);
        for statement in self.program.statements {
            self.statement(statement, false);
        }
        for function in self.program.named_functions() {
            self.walk_function(function);
        }
    }

    /// One function, or one closure as if it stood alone.
    pub(super) fn walk_function(&mut self, function: &'a Function) {
        self.scope = Scope::new(Inside::Function(&function.name));
        for parameter in &function.params {
            self.scope.declare(parameter, Binding::Variable);
        }
        self.statements(&function.body, true);
    }

    fn each(&mut self, mut show: impl FnMut(&mut dyn Check<'a>, &Scope<'a>, &mut Findings)) {
        for check in self.checks.iter_mut() {
            show(*check, &self.scope, self.findings);
        }
    }

    /// A block with its own scope. `used`: the value of its last statement goes somewhere.
    fn statements(&mut self, statements: &'a [Stmt], used: bool) {
        let outside = self.scope.len();
        for (index, statement) in statements.iter().enumerate() {
            self.statement(statement, used && index + 1 == statements.len());
        }
        self.scope.truncate(outside);
    }

    fn block(&mut self, block: &'a StmtBlock, used: bool) {
        self.statements(block.statements(), used);
    }

    fn statement(&mut self, statement: &'a Stmt, used: bool) {
        if self.depth >= MAX_DEPTH {
            let at = statement.position();
            self.findings
                .warning(at, 1, "this is nested too deeply to be checked");
            return;
        }
        self.depth += 1;
        self.statement_inside(statement, used);
        self.depth -= 1;
    }

    fn statement_inside(&mut self, statement: &'a Stmt, used: bool) {
        match statement {
            Stmt::Expr(value) => self.value(value, used),
            Stmt::FnCall(call, at) => self.call(call, *at),
            Stmt::Block(block) => self.block(block, used),
            Stmt::If(parts, _) => {
                self.condition(&parts.expr);
                self.block(&parts.body, used);
                self.block(&parts.branch, used);
            }
            Stmt::Switch(parts, _) => {
                self.expression(&parts.0);
                for arm in &parts.1.expressions {
                    // A case without `if` has the condition `true`, which stands nowhere.
                    if !arm.lhs.position().is_none() {
                        self.condition(&arm.lhs);
                    }
                    self.value(&arm.rhs, used);
                }
            }
            Stmt::While(parts, _) => {
                // `loop` has a unit for its condition, which stands nowhere.
                if !parts.expr.position().is_none() {
                    self.condition(&parts.expr);
                }
                self.block(&parts.body, false);
            }
            Stmt::Do(parts, ..) => {
                self.block(&parts.body, false);
                self.condition(&parts.expr);
            }
            Stmt::For(parts, _) => self.for_loop(parts),
            Stmt::Var(parts, flags, at) => {
                if flags.contains(ASTFlags::EXPORTED) {
                    self.each(|check, _, findings| check.export(*at, findings));
                }
                self.expression(&parts.1);
                let binding = if flags.contains(ASTFlags::CONSTANT) {
                    Binding::Constant
                } else {
                    Binding::Variable
                };
                self.scope.declare(&parts.0.name, binding);
            }
            Stmt::Assignment(parts) => {
                let (target, value) = (&parts.1.lhs, &parts.1.rhs);
                self.each(|check, scope, findings| {
                    check.assignment(target, value, scope, findings);
                });
                self.expression(&parts.1.lhs);
                self.expression(&parts.1.rhs);
            }
            Stmt::TryCatch(parts, _) => {
                self.block(&parts.body, used);
                let outside = self.scope.len();
                if let Expr::Variable(variable, ..) = &parts.expr {
                    self.scope.declare(&variable.1, Binding::Variable);
                }
                self.block(&parts.branch, used);
                self.scope.truncate(outside);
            }
            Stmt::Return(Some(value), ..) | Stmt::BreakLoop(Some(value), ..) => {
                self.expression(value);
            }
            Stmt::Import(parts, at) => {
                self.each(|check, scope, findings| check.import(*at, scope, findings));
                self.expression(&parts.0);
                if !parts.1.name.is_empty() {
                    self.scope.declare(&parts.1.name, Binding::Module);
                }
            }
            Stmt::Export(parts, at) => {
                self.each(|check, _, findings| check.export(*at, findings));
                self.variable(&parts.0.name, parts.0.pos);
            }
            _ => {}
        }
    }

    fn for_loop(&mut self, parts: &'a (rhai::Ident, Option<rhai::Ident>, rhai::FlowControl)) {
        self.expression(&parts.2.expr);
        let outside = self.scope.len();
        if let Some(counter) = &parts.1 {
            self.scope.declare(&counter.name, Binding::Variable);
        }
        self.scope.declare(&parts.0.name, Binding::Variable);
        self.block(&parts.2.body, false);
        self.scope.truncate(outside);
    }

    /// An expression that stands as a statement.
    fn value(&mut self, value: &'a Expr, used: bool) {
        match value {
            Expr::Stmt(block) if capturing_closure(block).is_none() => self.block(block, used),
            _ => {
                if !used {
                    self.each(|check, scope, findings| check.discarded(value, scope, findings));
                }
                self.expression(value);
            }
        }
    }

    fn condition(&mut self, condition: &'a Expr) {
        self.each(|check, _, findings| check.condition(condition, findings));
        self.expression(condition);
    }

    fn variable(&mut self, name: &'a str, at: Position) {
        let used = Use { name, at };
        self.each(|check, scope, findings| check.variable(used, scope, findings));
    }

    fn expression(&mut self, expression: &'a Expr) {
        if self.depth >= MAX_DEPTH {
            let at = expression.start_position();
            self.findings
                .warning(at, 1, "this is nested too deeply to be checked");
            return;
        }
        self.depth += 1;
        self.expression_inside(expression);
        self.depth -= 1;
    }

    fn expression_inside(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Variable(variable, _, at) if variable.2.is_empty() => {
                self.variable(&variable.1, *at);
            }
            Expr::Variable(variable, _, at) => {
                let used = Use {
                    name: &variable.1,
                    at: *at,
                };
                self.each(|check, scope, findings| {
                    check.qualified(&variable.2, Some(used), scope, findings);
                });
            }
            Expr::DynamicConstant(..) => {
                if let Some(name) = closure(expression) {
                    self.closure(&name);
                }
            }
            Expr::Stmt(block) => match capturing_closure(block) {
                Some((name, _)) => self.closure(&name),
                None => self.block(block, true),
            },
            Expr::InterpolatedString(parts, _) | Expr::Array(parts, _) => {
                for part in parts {
                    self.expression(part);
                }
            }
            Expr::Map(parts, _) => {
                for (_, value) in &parts.0 {
                    self.expression(value);
                }
            }
            Expr::FnCall(call, at) | Expr::MethodCall(call, at) => self.call(call, *at),
            Expr::And(operands, _) | Expr::Or(operands, _) => {
                for operand in operands.iter() {
                    self.condition(operand);
                }
            }
            Expr::Coalesce(operands, _) => {
                for operand in operands.iter() {
                    self.expression(operand);
                }
            }
            Expr::Dot(..) | Expr::Index(..) => self.chain(expression),
            _ => {}
        }
    }

    fn chain(&mut self, expression: &'a Expr) {
        let Some(chain) = Chain::of(expression) else {
            return;
        };
        self.each(|check, scope, findings| check.chain(&chain, scope, findings));
        self.expression(chain.root);
        for link in &chain.links {
            match link {
                Link::Property(..) => {}
                Link::Method(call, _) => {
                    for argument in &call.args {
                        self.expression(argument);
                    }
                }
                Link::Index(index) => self.expression(index),
            }
        }
    }

    fn call(&mut self, call: &'a FnCallExpr, at: Position) {
        self.each(|check, scope, findings| {
            if call.is_qualified() {
                check.qualified(&call.namespace, None, scope, findings);
            } else {
                check.call(call, at, scope, findings);
            }
        });
        for argument in &call.args {
            self.expression(argument);
        }
    }

    /// The captured variables are those around it, under their own names; only
    /// the other parameters are new.
    fn closure(&mut self, name: &str) {
        let Some(function) = self.program.functions(name).first() else {
            return;
        };
        let outside = self.scope.len();
        self.scope.level += 1;
        for parameter in &function.params[function.captured.min(function.params.len())..] {
            self.scope.declare(parameter, Binding::Variable);
        }
        self.statements(&function.body, true);
        self.scope.level -= 1;
        self.scope.truncate(outside);
    }
}
