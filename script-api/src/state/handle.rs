//! What a program holds of some state.

use std::sync::{Arc, OnceLock};

use thiserror::Error;

/// The handle is not bound yet: the program is still being loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("shared state can only be used in hooks: at load there is none yet")]
pub struct NotBound;

/// The rule as one program says it, and the state that all programs share.
pub(super) struct Handle<R, S> {
    rule: R,
    state: OnceLock<Arc<S>>,
}

impl<R, S> Handle<R, S> {
    pub(super) fn new(rule: R) -> Self {
        Self {
            rule,
            state: OnceLock::new(),
        }
    }

    pub(super) fn rule(&self) -> &R {
        &self.rule
    }

    pub(super) fn bind(&self, state: impl FnOnce() -> Arc<S>) {
        self.state.get_or_init(state);
    }

    pub(super) fn share(&self) -> Result<(&R, &Arc<S>), NotBound> {
        let state = self.state.get().ok_or(NotBound)?;
        Ok((&self.rule, state))
    }

    pub(super) fn get(&self) -> Result<(&R, &S), NotBound> {
        let state = self.state.get().ok_or(NotBound)?;
        Ok((&self.rule, state))
    }
}
