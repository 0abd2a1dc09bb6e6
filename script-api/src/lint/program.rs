//! The parts of a syntax tree that the checks ask for by name.

use std::collections::{HashMap, HashSet};

use rhai::{AST, ASTFlags, ASTNode, Expr, FnPtr, ImmutableString, Position, Stmt, StmtBlock};

use crate::syntax;

/// A function or closure of the program.
pub(super) struct Function {
    /// `anon$…` for a closure.
    pub(super) name: ImmutableString,
    /// A closure's captured variables come first.
    pub(super) params: Vec<ImmutableString>,
    /// How many of the parameters are captured variables.
    pub(super) captured: usize,
    pub(super) body: Vec<Stmt>,
    /// Where the body begins.
    pub(super) position: Position,
}

impl Function {
    pub(super) fn is_closure(&self) -> bool {
        self.name.starts_with("anon$")
    }
}

/// The tree, with indexes.
pub(super) struct Program<'a> {
    /// The statements of the top level.
    pub(super) statements: &'a [Stmt],
    /// By name; several when they differ in the number of parameters.
    functions: HashMap<ImmutableString, Vec<Function>>,
    /// Constants of the top level: visible everywhere.
    pub(super) constants: HashSet<&'a str>,
    /// `let` variables of the top level: not visible in functions.
    pub(super) variables: HashSet<&'a str>,
    /// Aliases of modules that the top level imports.
    pub(super) imports: HashSet<&'a str>,
    /// Map keys whose value may be a function, so that `map.key(..)` calls it.
    pub(super) members: HashSet<String>,
    /// Functions called as `f!(..)`, which see the variables of the caller.
    pub(super) sees_caller: HashSet<String>,
    /// Names that the program itself asks about with `is_def_var`.
    pub(super) asked_for: HashSet<String>,
}

impl<'a> Program<'a> {
    pub(super) fn new(ast: &'a AST) -> Self {
        let mut program = Self {
            statements: ast.statements(),
            functions: HashMap::new(),
            constants: HashSet::new(),
            variables: HashSet::new(),
            imports: HashSet::new(),
            members: HashSet::new(),
            sees_caller: HashSet::new(),
            asked_for: HashSet::new(),
        };
        for statement in program.statements {
            match statement {
                Stmt::Var(var, flags, _) if flags.contains(ASTFlags::CONSTANT) => {
                    program.constants.insert(var.0.name.as_str());
                }
                Stmt::Var(var, ..) => {
                    program.variables.insert(var.0.name.as_str());
                }
                Stmt::Import(import, _) => {
                    program.imports.insert(import.1.name.as_str());
                }
                _ => {}
            }
        }
        let mut captured = HashMap::new();
        ast.walk(&mut |path: &[ASTNode<'_>]| {
            match path.last() {
                Some(ASTNode::Expr(expression)) => {
                    program.note_expression(expression, &mut captured)
                }
                Some(ASTNode::Stmt(Stmt::Assignment(assignment))) => {
                    program.note_members(&assignment.1.lhs, &assignment.1.rhs);
                }
                _ => {}
            }
            true
        });
        for definition in ast.iter_fn_def() {
            let function = Function {
                name: definition.name.clone(),
                params: definition.params.iter().cloned().collect(),
                captured: captured.get(&definition.name).copied().unwrap_or(0),
                body: syntax::body(definition),
                position: definition.body.start_position(),
            };
            let name = function.name.clone();
            program.functions.entry(name).or_default().push(function);
        }
        program
    }

    fn note_expression(
        &mut self,
        expression: &Expr,
        captured: &mut HashMap<ImmutableString, usize>,
    ) {
        match expression {
            Expr::Map(map, _) => {
                for (key, value) in &map.0 {
                    if may_be_function(value) {
                        self.members.insert(key.name.to_string());
                    }
                }
            }
            Expr::Stmt(block) => {
                if let Some((name, count)) = capturing_closure(block) {
                    captured.insert(name, count);
                }
            }
            Expr::FnCall(call, _) => {
                if call.capture_parent_scope {
                    self.sees_caller.insert(call.name.to_string());
                }
                if let ("is_def_var", [Expr::StringConstant(name, _)]) =
                    (call.name.as_str(), call.args.as_slice())
                {
                    self.asked_for.insert(name.to_string());
                }
            }
            _ => {}
        }
    }

    /// `map.key = value` and `map["key"] = value`, at any depth of the chain.
    fn note_members(&mut self, target: &Expr, value: &Expr) {
        if !may_be_function(value) {
            return;
        }
        let mut rest = target;
        loop {
            match rest {
                Expr::Dot(pair, ..) | Expr::Index(pair, ..) => rest = &pair.rhs,
                Expr::Property(property, _) => {
                    self.members.insert(property.2.to_string());
                    return;
                }
                Expr::StringConstant(key, _) => {
                    self.members.insert(key.to_string());
                    return;
                }
                _ => return,
            }
        }
    }

    /// Functions that have a name of their own.
    pub(super) fn named_functions(&self) -> impl Iterator<Item = &Function> {
        let all = self.functions.values().flatten();
        all.filter(|function| !function.is_closure())
    }

    /// The functions called `name`; empty when there is none.
    pub(super) fn functions(&self, name: &str) -> &[Function] {
        self.functions.get(name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn has_function(&self, name: &str) -> bool {
        !self.functions(name).is_empty()
    }

    pub(super) fn function_names(&self) -> impl Iterator<Item = &str> {
        self.named_functions()
            .map(|function| function.name.as_str())
    }
}

/// The name of a closure, and how many variables it captures, when `block` is
/// what the parser makes of one that captures: a `Share` statement and a call
/// of `curry`.
pub(super) fn capturing_closure(block: &StmtBlock) -> Option<(ImmutableString, usize)> {
    let [Stmt::Share(_), Stmt::Expr(made)] = block.statements() else {
        return None;
    };
    let Expr::FnCall(call, _) = made.as_ref() else {
        return None;
    };
    let (function, captured) = call.args.split_first()?;
    Some((closure(function)?, captured.len()))
}

/// The name of the closure that `expression` is, when it captures nothing.
pub(super) fn closure(expression: &Expr) -> Option<ImmutableString> {
    let Expr::DynamicConstant(value, _) = expression else {
        return None;
    };
    let pointer = value.read_lock::<FnPtr>()?;
    pointer
        .is_anonymous()
        .then(|| pointer.fn_name().to_string().into())
}

/// Whether a value of a map may turn out to be a function.
fn may_be_function(value: &Expr) -> bool {
    match value {
        Expr::DynamicConstant(value, _) => value.is_fnptr(),
        Expr::BoolConstant(..)
        | Expr::IntegerConstant(..)
        | Expr::FloatConstant(..)
        | Expr::CharConstant(..)
        | Expr::StringConstant(..)
        | Expr::InterpolatedString(..)
        | Expr::Array(..)
        | Expr::Map(..)
        | Expr::Unit(..)
        | Expr::And(..)
        | Expr::Or(..) => false,
        _ => true,
    }
}
