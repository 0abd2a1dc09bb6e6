//! What Rhai's syntax tree keeps to itself.

use rhai::{AST, ASTNode, Module, ScriptFuncDef, Shared, Stmt};

/// The statements of a function. Rhai keeps the type of a body to itself and shows its statements
/// only through a walk, which lends them for the moment of a callback; so they are cloned.
pub(crate) fn body(definition: &Shared<ScriptFuncDef>) -> Vec<Stmt> {
    let mut module = Module::new();
    module.set_script_fn(definition.clone());
    let mut statements = Vec::new();
    AST::new_from_module(module).walk(&mut |path: &[ASTNode<'_>]| {
        if let [ASTNode::Stmt(statement)] = path {
            statements.push((*statement).clone());
        }
        true
    });
    statements
}
