//! What the top level of a file declares.

use std::collections::BTreeMap;

use rhai::{AST, ASTFlags, FnAccess, Stmt};

/// The functions, constants and variables of a file's top level.
#[derive(Debug, Default)]
pub(super) struct Declarations {
    functions: BTreeMap<String, Vec<Overload>>,
    /// Whether it is a constant.
    variables: BTreeMap<String, bool>,
}

/// One of the functions of a name.
#[derive(Debug, Clone, Copy)]
struct Overload {
    parameters: usize,
    is_private: bool,
}

/// What a name means to a file that imports this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Yes,
    /// A `private fn`.
    Private,
    /// A `let`.
    Variable,
    Nothing,
}

impl Declarations {
    pub(super) fn of(ast: &AST) -> Self {
        let mut found = Self::default();
        for statement in ast.statements() {
            if let Stmt::Var(variable, flags, _) = statement {
                let is_constant = flags.contains(ASTFlags::CONSTANT);
                let name = variable.0.name.to_string();
                found.variables.insert(name, is_constant);
            }
        }
        for function in ast.iter_fn_def() {
            // Closures have names that nobody can write.
            if !function.name.contains('$') {
                let overloads = found.functions.entry(function.name.to_string());
                overloads.or_default().push(Overload {
                    parameters: function.params.len(),
                    is_private: function.access == FnAccess::Private,
                });
            }
        }
        found
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let functions = self.functions.keys();
        let variables = self.variables.keys();
        let variables = variables.filter(|name| !self.functions.contains_key(*name));
        functions.chain(variables).map(String::as_str)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.has_function(name) || self.variables.contains_key(name)
    }

    pub(super) fn has_function(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    /// Whether a function of the name takes `arguments`.
    pub(super) fn takes(&self, name: &str, arguments: usize) -> bool {
        let mut overloads = self.functions.get(name).into_iter().flatten();
        overloads.any(|one| one.parameters == arguments)
    }

    /// What another file sees when it calls `name` with `arguments`, or names it when there are
    /// none.
    pub(super) fn seen(&self, name: &str, arguments: Option<usize>) -> Seen {
        let constant = self.variables.get(name).copied();
        if arguments.is_none() && constant == Some(true) {
            return Seen::Yes;
        }
        let overloads = self.functions.get(name).map_or(&[][..], Vec::as_slice);
        let meant = |one: &&Overload| arguments.is_none_or(|n| n == one.parameters);
        let mut meant: Vec<_> = overloads.iter().filter(meant).collect();
        if meant.is_empty() {
            // A wrong number of arguments is another check's business.
            meant = overloads.iter().collect();
        }
        match (meant.is_empty(), constant) {
            (false, _) if meant.iter().any(|one| one.is_private) => Seen::Private,
            (false, _) | (true, Some(true)) => Seen::Yes,
            (true, Some(false)) => Seen::Variable,
            (true, None) => Seen::Nothing,
        }
    }

    pub(super) fn is_public(&self, name: &str) -> bool {
        self.seen(name, None) == Seen::Yes
    }
}
