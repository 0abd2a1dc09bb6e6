//! What happens at each operation of a hook.

use rhai::{Dynamic, Engine};

use super::{
    budget::{self, Count},
    coroutine::{Pause, suspend},
};

/// Makes `engine` count each operation, and a long hook let others have a turn.
pub(super) fn install(engine: &mut Engine) {
    engine.on_progress(|_| tick());
}

/// Counts an operation. The value that it may give ends the program with `ErrorTerminated`, which a
/// script can't catch.
#[inline(always)]
pub(super) fn tick() -> Option<Dynamic> {
    match budget::count() {
        Count::On => None,
        other => act(other),
    }
}

#[cold]
fn act(count: Count) -> Option<Dynamic> {
    match count {
        Count::On => None,
        Count::Exhausted => Some(Dynamic::UNIT),
        Count::TurnOver => {
            // Where it can't be suspended it runs on, within its budget.
            let _ = suspend(Pause::Turn);
            None
        }
    }
}
