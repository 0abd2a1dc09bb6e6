//! What a name means at a place.

use std::borrow::Cow;

use rhai::Position;

use super::known::Known;
use super::program::Program;
use super::scope::{Binding, Inside, Local, Scope};
use crate::suggest::nearest;

/// What a name stands for.
pub(super) enum Meaning<'s, 'a> {
    /// Declared around the place.
    Local(&'s Local<'a>),
    /// A constant of the top level, seen from a function, or one that is known everywhere.
    Constant,
    /// The name of a script function, as a value.
    Function,
    /// The program finds out itself, with `is_def_var` or as `f!(..)`.
    Unclear,
    Nothing,
}

/// The names of the program and of the world around it.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) program: &'a Program<'a>,
    pub(super) known: &'a Known<'a>,
}

impl<'a> Names<'a> {
    pub(super) fn new(program: &'a Program<'a>, known: &'a Known<'a>) -> Self {
        Self { program, known }
    }

    pub(super) fn meaning<'s>(&self, name: &str, scope: &'s Scope<'a>) -> Meaning<'s, 'a> {
        if let Some((_, local)) = scope.find(name) {
            return Meaning::Local(local);
        }
        if self.known.constants.contains(&name) {
            return Meaning::Constant;
        }
        if let Inside::Function(function) = scope.inside {
            if self.program.constants.contains(name) {
                return Meaning::Constant;
            }
            if self.program.sees_caller.contains(function) {
                return Meaning::Unclear;
            }
        }
        if self.program.has_function(name) {
            return Meaning::Function;
        }
        if self.program.asked_for.contains(name) {
            return Meaning::Unclear;
        }
        Meaning::Nothing
    }

    /// The nearest name that a variable could have at `at`.
    pub(super) fn near_variable(
        &self,
        name: &str,
        at: Position,
        scope: &Scope<'a>,
    ) -> Option<String> {
        let constants = self.program.constants.iter().copied();
        let top_level = constants.filter(|_| !scope.is_plain_top_level());
        let everywhere = self.known.constants.iter().copied();
        let functions = self.program.function_names();
        let all = scope
            .names()
            .chain(top_level)
            .chain(everywhere)
            .chain(functions);
        self.near(name, at, all)
    }

    /// The nearest name that can be called at `at`.
    pub(super) fn near_function(&self, name: &str, at: Position) -> Option<String> {
        let natives = self.known.functions.names();
        self.near(name, at, natives.chain(self.program.function_names()))
    }

    /// The one of `all` that is nearest to `name`, as the file at `at` writes it. What another
    /// file declares is compared without the name of the module.
    fn near<'n>(
        &self,
        name: &str,
        at: Position,
        all: impl Iterator<Item = &'n str>,
    ) -> Option<String> {
        let source = self.known.source;
        let written: Vec<(&str, Cow<'_, str>)> = all
            .filter_map(|one| Some((source.own_name(one), source.name_at(one, at)?)))
            .collect();
        let own = written.iter().map(|(own, _)| *own);
        let near = nearest(source.own_name(name), own)?;
        let found = written.iter().find(|(own, _)| *own == near);
        found.map(|(_, written)| written.to_string())
    }

    /// Whether `name` is the alias of a module in sight.
    pub(super) fn is_module(&self, name: &str, scope: &Scope<'a>) -> bool {
        scope.has_module(name)
            || self.known.functions.has_module(name)
            || (matches!(scope.inside, Inside::Function(_)) && self.program.imports.contains(name))
    }
}

/// "did you mean …?" where there is something to mean.
pub(super) fn did_you_mean(near: Option<String>) -> Option<String> {
    near.map(|near| format!("did you mean `{near}`?"))
}

/// Whether a declaration outside of the closures around the place is meant.
pub(super) fn is_captured(local: &Local<'_>, scope: &Scope<'_>) -> bool {
    local.level < scope.level
}

/// Whether the declaration is `const`.
pub(super) fn is_constant(local: &Local<'_>) -> bool {
    local.binding == Binding::Constant
}
