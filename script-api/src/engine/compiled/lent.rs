//! Constants of the program in the hands of compiled hooks.

use std::cell::Cell;

use rhai::Dynamic;

use crate::{
    engine::local::Local,
    state::{Cache, Concurrency, Counter, Rate},
    values::{Cidr, Regex, Table},
};

/// A constant of the program. The interpreter copies one at each use. A handle of something that is
/// shared anyway is lent instead: it is the same thing, and nobody can change which.
pub(super) struct Lent {
    value: Dynamic,
    is_handle: bool,
    /// The handle, when it isn't lent just now.
    free: Cell<Option<Dynamic>>,
}

impl Lent {
    pub(super) fn new(value: Dynamic) -> Self {
        Self {
            is_handle: is_handle(&value),
            value,
            free: Cell::new(None),
        }
    }

    /// A copy of it, as constant as it is itself.
    pub(super) fn copy(&self) -> Dynamic {
        let copy = self.value.clone();
        if self.value.is_read_only() {
            copy.into_read_only()
        } else {
            copy
        }
    }

    /// Uses it. Whoever comes while it is lent gets a copy.
    pub(super) fn with<R>(&self, use_it: impl FnOnce(&mut Dynamic) -> R) -> R {
        if !self.is_handle {
            return use_it(&mut self.copy());
        }
        let mut value = self.free.take().unwrap_or_else(|| self.copy());
        let result = use_it(&mut value);
        // A function that takes it by value has emptied it.
        if !value.is_unit() {
            self.free.set(Some(value));
        }
        result
    }
}

/// Whether a value is a handle of something that is shared anyway.
pub(super) fn is_handle(value: &Dynamic) -> bool {
    value.is_variant()
        && (value.is::<Local<Table>>()
            || value.is::<Local<Cidr>>()
            || value.is::<Local<Regex>>()
            || value.is::<Local<Rate>>()
            || value.is::<Local<Counter>>()
            || value.is::<Local<Cache>>()
            || value.is::<Local<Concurrency>>())
}
