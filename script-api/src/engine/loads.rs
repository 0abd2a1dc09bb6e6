//! Values of caches that are being made: of several hooks of one worker that miss the same value, one
//! makes it and the others wait for it.
//!
//! No lock is held meanwhile, since the one that makes it may wait itself. Workers know nothing of
//! each other's, so a value is made at most once for each of them. A hook waits once: when it gets
//! nothing for it (the other failed, or its client left), it makes the value itself, so that a
//! service that is down costs nobody more than its own time and that of one other. And a hook that
//! is making a value waits for none, so no two can wait for each other.

use std::{
    cell::RefCell,
    collections::HashMap,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use super::{
    budget::Exhausted,
    coroutine::{Pause, Refused, suspend},
    current::{self, NativeResult},
    fetch_api::ended,
};
use crate::{frozen::Frozen, program::HookKind, state::Key};

/// The function that waits for a value.
pub(super) const WAITING: &str = "get_or";

/// The cache's number and the key.
type Name = (u64, Box<[u8]>);

thread_local! {
    static LOADS: RefCell<HashMap<Name, Rc<Load>>> = RefCell::default();
}

/// A value that some hook of this worker makes.
#[derive(Default)]
struct Load {
    outcome: RefCell<Outcome>,
    wakers: RefCell<Vec<Waker>>,
}

#[derive(Default)]
enum Outcome {
    #[default]
    Open,
    Made(Arc<Frozen>),
    /// There will be none.
    Lost,
}

impl Load {
    fn end(&self, outcome: Outcome) {
        *self.outcome.borrow_mut() = outcome;
        for waker in self.wakers.take() {
            waker.wake();
        }
    }

    fn made(&self) -> Option<Arc<Frozen>> {
        match &*self.outcome.borrow() {
            Outcome::Made(value) => Some(value.clone()),
            Outcome::Open | Outcome::Lost => None,
        }
    }
}

/// Ready when the hook that waits can go on.
pub struct Awaited(Rc<Load>);

impl Future for Awaited {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if !matches!(*self.0.outcome.borrow(), Outcome::Open) {
            return Poll::Ready(());
        }
        let mut wakers = self.0.wakers.borrow_mut();
        if !wakers.iter().any(|known| known.will_wake(context.waker())) {
            wakers.push(context.waker().clone());
        }
        Poll::Pending
    }
}

impl std::fmt::Debug for Awaited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Awaited")
    }
}

/// The hook's own making of a value. Dropped without [`Making::made`], whoever waits goes on alone.
pub(super) struct Making {
    /// `None` when nobody else knows of it.
    known: Option<(Name, Rc<Load>)>,
}

impl Making {
    /// Gives the value to those who wait for it.
    pub(super) fn made(self, value: Arc<Frozen>) {
        if let Some((_, load)) = &self.known {
            load.end(Outcome::Made(value));
        }
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        let Some((name, load)) = self.known.take() else {
            return;
        };
        // When the thread ends, nobody waits any more.
        let _ = LOADS.try_with(|loads| loads.borrow_mut().remove(&name));
        if matches!(*load.outcome.borrow(), Outcome::Open) {
            load.end(Outcome::Lost);
        }
    }
}

/// What a hook that misses a value does.
pub(super) enum Begun {
    /// It makes the value.
    Make(Making),
    /// Another has made it meanwhile.
    Made(Arc<Frozen>),
}

/// Makes the running hook wait for the value, when another one makes it.
///
/// # Errors
/// When so many hooks wait that no more may.
pub(super) fn begin(cache: u64, key: &Key<'_>) -> NativeResult<Begun> {
    let name: Name = (cache, key.as_bytes().into());
    let other = LOADS.with_borrow_mut(|loads| match loads.get(&name) {
        Some(load) => Err(load.clone()),
        None => {
            let load = Rc::new(Load::default());
            loads.insert(name.clone(), load.clone());
            Ok(load)
        }
    });
    let load = match other {
        Ok(load) => {
            let known = Some((name, load));
            return Ok(Begun::Make(Making { known }));
        }
        Err(load) => load,
    };
    let may_wait = current::kind().is_some_and(HookKind::may_wait) && !current::is_making();
    if may_wait {
        match suspend(Pause::Load(Awaited(load.clone()))) {
            Ok(_) | Err(Refused::NoHook) => {}
            Err(Refused::TooMany) => return Err(ended(Exhausted::Waiting)),
        }
        if let Some(value) = load.made() {
            return Ok(Begun::Made(value));
        }
    }
    Ok(Begun::Make(Making { known: None }))
}
