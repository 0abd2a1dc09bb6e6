//! The stacks that hooks run on, and how a hook is suspended.
//!
//! A hook runs on a stack of its own, so that it can stop in the middle of straight code, wait for
//! an answer or let others have a turn, and go on where it stopped. It stays on its thread: the
//! interpreter's values count their references without locks.
//!
//! What the thread keeps about the running hook (its budget, its place in [`super::current`]) is
//! put aside while it is suspended, because other hooks run on the thread meanwhile.

use std::{
    cell::{Cell, RefCell},
    io,
    ptr::NonNull,
};

use corosensei::{
    Coroutine, CoroutineResult, Yielder,
    stack::{DefaultStack, Stack as _},
};

use super::{
    budget, current, fetch_api,
    loads::{self, Awaited},
    password_api,
    suspended::Suspended,
};
use crate::{
    outbound::{Incoming, Outgoing, Reply},
    password::PasswordCheck,
};

/// Bytes of address space of one stack. The deepest calls and expressions that are allowed need
/// 22 MiB in a debug build, and a chain of closures as long as a hook can make one is freed by
/// recursion. Only the pages that are used take memory: some 20 KiB for an ordinary hook.
const STACK: usize = 64 * 1024 * 1024;

/// What must be left of a stack at each operation: for natives, and for freeing nested values.
const RESERVE: usize = 32 * 1024 * 1024;

/// A stack that was used deeper than this is given back to the system and not kept.
const SHALLOW: usize = 256 * 1024;

/// Stacks that a thread keeps for its next hooks.
const KEPT_STACKS: usize = 16;

/// Why a hook stops before its end.
pub(super) enum Pause {
    /// It waits for the answers to these calls.
    Calls(Vec<Outgoing>),
    /// It waits for a value that another hook makes.
    Load(Awaited),
    /// It waits for a password to be verified.
    Password(PasswordCheck),
    /// It has run for a while: others may have a turn.
    Turn,
}

impl Pause {
    /// About the bytes that it takes out of the hook.
    fn size(&self) -> usize {
        match self {
            Self::Calls(calls) => calls.iter().map(Outgoing::size).sum(),
            Self::Password(check) => check.size(),
            Self::Load(_) | Self::Turn => 0,
        }
    }
}

/// What a hook goes on with.
pub(super) enum Wake {
    /// Its beginning, its next turn, or the end of what it waited for.
    Go,
    /// The answers to its calls, in their order.
    Replies(Vec<Reply>),
    /// Whether its password is right; `None` when that can't be said now.
    Verified(Option<bool>),
}

impl Wake {
    /// About the bytes that it brings to the hook.
    fn size(&self) -> usize {
        match self {
            Self::Replies(replies) => replies.iter().flatten().map(Incoming::size).sum(),
            Self::Go | Self::Verified(_) => 0,
        }
    }
}

thread_local! {
    /// The way out of the hook that runs on this thread.
    static YIELDER: Cell<Option<NonNull<Yielder<Wake, Pause>>>> = const { Cell::new(None) };
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// Something that runs on a stack of its own and ends with an `R`.
pub(super) struct Task<R: 'static> {
    /// `None` once it has ended.
    coroutine: Option<Coroutine<Wake, Pause, R>>,
}

impl<R: 'static> Task<R> {
    /// Prepares `run`; it begins with the first [`Task::resume`].
    ///
    /// # Errors
    /// When the system gives no stack.
    pub(super) fn new(run: impl FnOnce() -> R + 'static) -> io::Result<Self> {
        let kept = STACKS.with_borrow_mut(Vec::pop);
        let stack = match kept {
            Some(stack) => stack,
            None => DefaultStack::new(STACK)?,
        };
        let base = stack.base().get();
        let coroutine = Coroutine::with_stack(stack, move |yielder: &Yielder<_, _>, _wake| {
            YIELDER.set(Some(NonNull::from(yielder)));
            budget::watch_stack(base, base - SHALLOW, base - (STACK - RESERVE));
            run()
        });
        Ok(Self {
            coroutine: Some(coroutine),
        })
    }

    /// Runs it until it stops or ends. `None` when it has already ended.
    ///
    /// A panic in it goes on here, and it has ended then.
    pub(super) fn resume(&mut self, wake: Wake) -> Option<CoroutineResult<Pause, R>> {
        let mut coroutine = self.coroutine.take()?;
        // Should it panic, the coroutine is dropped with its stack.
        let forget = ForgetYielder;
        let result = coroutine.resume(wake);
        drop(forget);
        match &result {
            CoroutineResult::Yield(_) => self.coroutine = Some(coroutine),
            CoroutineResult::Return(_) => keep(coroutine.into_stack()),
        }
        Some(result)
    }
}

/// Whatever happened, the way out of a hook that doesn't run leads nowhere.
struct ForgetYielder;

impl Drop for ForgetYielder {
    fn drop(&mut self) {
        YIELDER.set(None);
    }
}

/// Keeps a stack for the next hook, unless much memory may lie in it.
fn keep(stack: DefaultStack) {
    if budget::used_little_stack() {
        STACKS.with_borrow_mut(|stacks| {
            if stacks.len() < KEPT_STACKS {
                stacks.push(stack);
            }
        });
    }
}

/// Whether a native function of this name may suspend the hook that calls it.
pub(super) fn may_wait(name: &str) -> bool {
    fetch_api::WAITING.contains(&name)
        || password_api::WAITING.contains(&name)
        || name == loads::WAITING
}

/// Why a hook can't be suspended here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// Nothing runs on a stack of its own: the top level, for instance.
    NoHook,
    /// So many are suspended, or they hold so much memory, that no more may be.
    TooMany,
}

/// Stops the running hook until it is resumed.
///
/// # Errors
/// When it can't be suspended; it just runs on then.
pub(super) fn suspend(pause: Pause) -> Result<Wake, Refused> {
    let yielder = YIELDER.get().ok_or(Refused::NoHook)?;
    let paused = budget::pause();
    // Who only lets others have a turn waits for nobody, and takes no place of those who do.
    let hooks = usize::from(!matches!(pause, Pause::Turn));
    // Counted as long as this frame waits, also when the hook is dropped meanwhile.
    let counted = Suspended::count(hooks, paused.held(), paused.room()).ok_or(Refused::TooMany)?;
    // The calls leave the hook, the replies come to it.
    let sent = pause.size();
    let place = current::pause();
    YIELDER.set(None);
    // SAFETY: the pointer was set by the coroutine that runs now, from the yielder on its own
    // stack, and is forgotten whenever it stops running (here, or in `Task::resume`). So whoever
    // finds it here runs inside that coroutine, and its yielder lives as long as it does.
    let wake = unsafe { yielder.as_ref() }.suspend(pause);
    YIELDER.set(Some(yielder));
    current::resume(place);
    budget::resume(&paused, sent, wake.size());
    drop(counted);
    Ok(wake)
}
