//! Interpreters are made off the request path and freed off it, but belong to one worker meanwhile.

use std::sync::Arc;

use edgewright_script::{diagnostic::Diagnostic, engine::Interpreter, program::Program};

/// An interpreter on its way between threads.
pub struct Parcel(Interpreter);

// SAFETY: an `Interpreter` is not `Send` because it counts references without locks. All values
// that share such a count are inside it: it is built by one function from a `Program`, which is
// `Send` and `Sync` and holds no interpreter values; native handles in it count with atomics; and
// what its calls return (`Verdict`, `Choice`, `Failure`) holds none of its values. A call that is
// suspended (`Running`) does, and so an interpreter is packed only when it is idle. So when it is
// moved as a whole, nothing that it counts stays behind, and Rhai keeps nothing in thread-locals.
unsafe impl Send for Parcel {}

impl Parcel {
    /// Makes an interpreter for some worker, on the thread that loads the program.
    ///
    /// # Errors
    /// When the program does not compile.
    pub fn new(program: &Arc<Program>) -> Result<Self, Diagnostic> {
        Interpreter::new(program.clone()).map(Self)
    }

    /// Sends back an interpreter that its worker needs no more.
    ///
    /// # Panics
    /// When a call of it is suspended: that shares values with it.
    pub(crate) fn pack(interpreter: Interpreter) -> Self {
        assert!(
            interpreter.is_idle(),
            "a hook is suspended in the interpreter"
        );
        Self(interpreter)
    }

    /// For the worker that keeps it.
    pub(crate) fn open(self) -> Interpreter {
        self.0
    }
}
