//! Makes constants and functions visible where Rhai alone doesn't see them.
//!
//! A closure that is made inside a function or hook captures what it uses by looking in the
//! scope only, so a constant or a function of the program used there is "not found". A resolver
//! that answers for those names makes the capture step pass over them. It is asked at each use of
//! a variable, so it is installed only where a program needs it.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use rhai::{AST, ASTNode, Dynamic, Engine, FnPtr, Stmt};

/// The constants that a resolver knows; more can be added while the program runs.
pub(crate) type SharedConstants = Rc<RefCell<HashMap<String, Dynamic>>>;

/// Answers for `constants` and for the functions of `ast` where no local variable has the name.
pub(crate) fn install(engine: &mut Engine, ast: &AST, constants: SharedConstants) {
    let functions: HashMap<String, FnPtr> = ast
        .iter_functions()
        .filter_map(|function| {
            let pointer = FnPtr::new(function.name).ok()?;
            Some((function.name.to_owned(), pointer))
        })
        .collect();
    #[allow(deprecated)] // Marked so because it may change, not because it will go.
    engine.on_var(move |name, index, context| {
        if index > 0 || context.scope().contains(name) {
            return Ok(None);
        }
        if let Some(value) = constants.borrow().get(name) {
            return Ok(Some(value.clone()));
        }
        Ok(functions.get(name).map(|pointer| pointer.clone().into()))
    });
}

/// Whether a function of the program makes closures that capture something.
pub(crate) fn is_needed(ast: &AST) -> bool {
    let mut found = false;
    ast.clone_functions_only().walk(&mut |path: &[ASTNode]| {
        found |= matches!(path.last(), Some(ASTNode::Stmt(Stmt::Share(..))));
        !found
    });
    found
}
