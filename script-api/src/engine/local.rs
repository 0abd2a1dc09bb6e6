//! Native values as one thread's scripts hold them.

use std::{fmt, ops::Deref, rc::Rc};

/// A value that the interpreters of all workers have, in the hands of one of them. The interpreter
/// clones what it takes out of a constant; this counts such clones on the thread alone, where the
/// value's own count would be a cache line that all workers write.
pub(crate) struct Local<T>(Rc<T>);

impl<T> Local<T> {
    /// For the scripts of this thread.
    pub(crate) fn new(value: T) -> Self {
        Self(Rc::new(value))
    }
}

impl<T> Clone for Local<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Deref for Local<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Debug> fmt::Debug for Local<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
