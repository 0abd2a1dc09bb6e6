//! Makes machine code of closures out of Rhai's syntax tree.
//!
//! Each node becomes one closure that holds those of its parts. It does what the interpreter does, in
//! the same order, counts the same operations at the same places, and fails with the same errors. A
//! function with anything in it that isn't known here is refused as a whole: the interpreter runs it.

mod assignments;
mod blocks;
mod calls;
mod chains;
mod choices;
mod detour;
mod expressions;
mod literals;
mod loops;
mod numbers;
mod one_step;
mod operands;
mod operators;
mod parts;
mod walk;

use std::{cell::OnceCell, collections::HashMap, rc::Rc};

use rhai::{
    Caches, Dynamic, Engine, Expr, GlobalRuntimeState, ImmutableString, Position, ScriptFuncDef,
    Shared,
};

use super::{iterators::Iterators, lent::is_handle, machine::Code};
use crate::syntax;

/// Something that isn't known here, for the one who wonders why a hook is interpreted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct Unknown {
    /// What it is, in the words of the manual.
    pub(in crate::engine) construct: String,
    /// Where it begins.
    pub(in crate::engine) place: Position,
}

/// What was made of a part of a program.
pub(super) type Lowered<T> = Result<T, Unknown>;

/// That `construct` isn't known here.
fn unknown<T>(construct: impl Into<String>, place: Position) -> Lowered<T> {
    Err(Unknown {
        construct: construct.into(),
        place,
    })
}

/// The functions of a program by their names and their numbers of parameters.
pub(super) type Functions<'p> = HashMap<(&'p str, usize), &'p Shared<ScriptFuncDef>>;

/// A function of the program, compiled. It is empty while it is being made, since it may call itself. Whoever calls
/// it doesn't own it, or those that call each other would never be freed.
pub(super) type Compiled = Rc<OnceCell<Body>>;

/// The body of a function.
pub(super) struct Body {
    pub(super) code: Code,
    pub(super) is_empty: bool,
}

/// What a hook does that matters to who runs it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Traits {
    /// It may take long, or wait: it has loops, calls itself, or calls natives that wait or that call
    /// functions of the program.
    pub(super) needs_stack: bool,
}

/// Lowers the functions of one program.
pub(super) struct Lowering<'p> {
    pub(super) engine: &'p Engine,
    pub(super) global: &'p mut GlobalRuntimeState,
    /// An engine with nothing but Rhai's own operators.
    pub(super) builtins: Rc<Engine>,
    functions: &'p Functions<'p>,
    /// The name of the module that the functions are in, for errors.
    source: Option<ImmutableString>,
    compiled: HashMap<(ImmutableString, usize), (Compiled, Traits)>,
    /// The functions that are being lowered, the innermost last.
    running: Vec<Function>,
    iterators: Rc<Iterators>,
}

/// A function that is being lowered.
#[derive(Default)]
struct Function {
    /// The variables that are visible at this point.
    variables: Vec<ImmutableString>,
    /// The first variables, where they were captured and are handles: these are as good as constants.
    captured: Vec<Option<Dynamic>>,
    loops: usize,
    traits: Traits,
}

impl<'p> Lowering<'p> {
    pub(super) fn new(
        engine: &'p Engine,
        global: &'p mut GlobalRuntimeState,
        builtins: &Rc<Engine>,
        functions: &'p Functions<'p>,
        source: Option<&str>,
    ) -> Self {
        Self {
            engine,
            global,
            builtins: builtins.clone(),
            functions,
            source: source.map(Into::into),
            compiled: HashMap::new(),
            running: Vec::new(),
            iterators: Rc::new(Iterators::new(engine)),
        }
    }

    /// Lowers a function as the body of a hook.
    /// `captured` are the values of its first parameters.
    pub(super) fn hook(
        &mut self,
        function: &Shared<ScriptFuncDef>,
        captured: &[Dynamic],
    ) -> Lowered<(Body, Traits)> {
        self.running.push(Function {
            variables: function.params.iter().cloned().collect(),
            captured: captured
                .iter()
                .map(|value| is_handle(value).then(|| value.clone()))
                .collect(),
            ..Function::default()
        });
        let body = self.body(function);
        let ended = self.running.pop();
        let traits = ended.map(|function| function.traits).unwrap_or_default();
        body.map(|body| (body, traits))
    }

    /// The functions that were called by what has been lowered, for whoever keeps that.
    pub(super) fn into_functions(self) -> Vec<Compiled> {
        let functions = self.compiled.into_values();
        functions.map(|(compiled, _)| compiled).collect()
    }

    /// Lowers a function that is called.
    fn function(&mut self, function: &Shared<ScriptFuncDef>) -> Lowered<Compiled> {
        let key = (function.name.clone(), function.params.len());
        if let Some((compiled, traits)) = self.compiled.get(&key) {
            let (compiled, traits) = (compiled.clone(), *traits);
            if compiled.get().is_none() {
                // It calls itself.
                self.note(Traits { needs_stack: true });
            }
            self.note(traits);
            return Ok(compiled);
        }
        let known: Vec<_> = self.compiled.keys().cloned().collect();
        let compiled = Compiled::default();
        let in_making = (compiled.clone(), Traits::default());
        self.compiled.insert(key.clone(), in_making);
        match self.hook(function, &[]) {
            Ok((body, traits)) => {
                // Just made, so it is empty.
                let _ = compiled.set(body);
                self.compiled.insert(key, (compiled.clone(), traits));
                self.note(traits);
                Ok(compiled)
            }
            Err(unknown) => {
                // What was made meanwhile may call this one.
                self.compiled.retain(|key, _| known.contains(key));
                Err(unknown)
            }
        }
    }

    fn body(&mut self, function: &Shared<ScriptFuncDef>) -> Lowered<Body> {
        let statements = syntax::body(function);
        Ok(Body {
            is_empty: statements.is_empty(),
            code: self.block(&statements)?,
        })
    }

    fn current(&mut self) -> &mut Function {
        if self.running.is_empty() {
            self.running.push(Function::default());
        }
        let last = self.running.len() - 1;
        &mut self.running[last]
    }

    fn note(&mut self, traits: Traits) {
        self.current().traits.needs_stack |= traits.needs_stack;
    }

    /// Where a local variable lies, if there is one of this name at this point. The syntax tree says
    /// how far it is from the last one.
    fn variable(&mut self, expression: &Expr) -> Lowered<Variable> {
        let Expr::Variable(details, short, place) = expression else {
            return unknown("this expression", expression.position());
        };
        let (long, name, namespace, _) = &**details;
        if !namespace.is_empty() {
            return unknown(format!("a name of a module (`{name}`)"), *place);
        }
        let distance = short.map_or_else(
            || long.map_or(0, std::num::NonZeroUsize::get),
            |short| usize::from(short.get()),
        );
        let function = self.current();
        let variables = &function.variables;
        let number = if distance == 0 {
            // The tree doesn't say where what a closure has captured lies: it is looked for by its name.
            match variables.iter().rposition(|variable| variable == name) {
                Some(number) => number,
                None => return self.constant(expression).map(Variable::Global),
            }
        } else {
            match variables.len().checked_sub(distance) {
                Some(number) if variables.get(number) == Some(name) => number,
                _ => return unknown(format!("the variable `{name}`"), *place),
            }
        };
        Ok(match function.captured.get(number) {
            Some(Some(value)) => Variable::Global(value.clone()),
            _ => Variable::Local(number),
        })
    }

    /// The value of a name of the program: a constant or a function.
    fn constant(&mut self, expression: &Expr) -> Lowered<Dynamic> {
        let mut caches = Caches::new();
        let mut scope = rhai::Scope::new();
        let mut context =
            rhai::EvalContext::new(self.engine, self.global, &mut caches, &mut scope, None);
        let value = context.eval_expression_tree(&expression.into());
        value.or_else(|_| unknown("a name that isn't known", expression.position()))
    }
}

/// What the name of a variable stands for.
enum Variable {
    /// A local variable, by its number.
    Local(usize),
    /// A constant of the program, or one of its functions.
    Global(Dynamic),
}

/// The name of the variable that an expression is, for errors.
fn name_of(expression: &Expr) -> String {
    match expression {
        Expr::Variable(details, ..) => details.1.to_string(),
        _ => String::new(),
    }
}
