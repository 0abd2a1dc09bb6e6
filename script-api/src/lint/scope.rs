//! The names in sight at a place of the program.

use rhai::Position;

/// What a name was declared as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    /// `let`, a loop variable, a parameter, the variable of a `catch`.
    Variable,
    Constant,
    /// The alias of an imported module.
    Module,
}

/// A name in sight.
pub(super) struct Local<'a> {
    name: &'a str,
    pub(super) binding: Binding,
    /// How many closures stand around the declaration.
    pub(super) level: usize,
}

/// Whose statements are walked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside<'a> {
    TopLevel,
    Function(&'a str),
}

/// The declarations around a place, outermost first.
pub(super) struct Scope<'a> {
    pub(super) inside: Inside<'a>,
    locals: Vec<Local<'a>>,
    /// How many closures stand around the place.
    pub(super) level: usize,
}

impl<'a> Scope<'a> {
    pub(super) fn new(inside: Inside<'a>) -> Self {
        Self {
            inside,
            locals: Vec::new(),
            level: 0,
        }
    }

    pub(super) fn declare(&mut self, name: &'a str, binding: Binding) {
        self.locals.push(Local {
            name,
            binding,
            level: self.level,
        });
    }

    /// The innermost declaration of `name` and its index, counted from the outermost.
    pub(super) fn find(&self, name: &str) -> Option<(usize, &Local<'a>)> {
        let found = self.locals.iter().enumerate().rev();
        let mut fitting = found.filter(|(_, local)| local.name == name);
        fitting.find(|(_, local)| local.binding != Binding::Module)
    }

    pub(super) fn has_module(&self, alias: &str) -> bool {
        let mut modules = self
            .locals
            .iter()
            .filter(|local| local.binding == Binding::Module);
        modules.any(|local| local.name == alias)
    }

    /// The names that a variable at this place can have.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        let values = self.locals.iter();
        values
            .filter(|local| local.binding != Binding::Module)
            .map(|local| local.name)
    }

    pub(super) fn len(&self) -> usize {
        self.locals.len()
    }

    /// Forgets the declarations behind the first `length`.
    pub(super) fn truncate(&mut self, length: usize) {
        self.locals.truncate(length);
    }

    /// Whether this place runs while loading only: nothing of it is a function or closure.
    pub(super) fn is_plain_top_level(&self) -> bool {
        self.inside == Inside::TopLevel && self.level == 0
    }
}

/// A name where the program uses it.
#[derive(Clone, Copy)]
pub(super) struct Use<'a> {
    pub(super) name: &'a str,
    pub(super) at: Position,
}
