//! What happens at each operation of the interpreter.

use rhai::{Dynamic, Engine};

use super::{
    budget::{self, Count},
    coroutine::{Pause, suspend},
};

/// Makes `engine` count each operation, and a long hook let others have a turn.
pub(super) fn install(engine: &mut Engine) {
    engine.on_progress(|_| match budget::count() {
        Count::On => None,
        // The value ends the program with `ErrorTerminated`, which a script can't catch.
        Count::Exhausted => Some(Dynamic::UNIT),
        Count::TurnOver => {
            // Where it can't be suspended it runs on, within its budget.
            let _ = suspend(Pause::Turn);
            None
        }
    });
}
