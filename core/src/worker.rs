//! What a worker thread keeps for itself: its own handle on the generation in force, and an
//! interpreter for each generation that its requests still use.
//!
//! A request holds the worker's handle, so the reference count that changes with each request lies
//! on a cache line that no other worker writes.

use std::{cell::RefCell, sync::Arc};

use edgewright_script::{
    diagnostic::Diagnostic,
    engine::{Failure, FailureKind, Interpreter, Running, Said},
    program::HookId,
};

use crate::{
    discard::discard, generation::Generation, in_force::InForce, outbound::Client, parcel::Parcel,
    proxy::Shared,
};

/// A worker's own handle on a generation.
pub struct Handle {
    generation: Option<Arc<Generation>>,
    client: Arc<Client>,
}

impl Handle {
    /// What makes the calls of the worker's hooks.
    pub fn client(&self) -> &Client {
        &self.client
    }
}

impl std::ops::Deref for Handle {
    type Target = Generation;

    fn deref(&self) -> &Generation {
        match &self.generation {
            Some(generation) => generation,
            None => unreachable!("a handle gives its generation away only when it is dropped"),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // The worker's interpreter holds the program as well. It is in use when a worker changes its
        // handle, which gives up the others itself.
        let _ = WORKER.try_with(|worker| {
            if let Ok(mut worker) = worker.try_borrow_mut() {
                worker.retire();
            }
        });
        // The last handle would free routes, patterns and tables on a worker, between requests.
        if let Some(generation) = self.generation.take() {
            discard(Box::new(generation));
        }
    }
}

#[derive(Default)]
struct Worker {
    current: Option<Arc<Handle>>,
    interpreters: Vec<Kept>,
}

struct Kept {
    generation: u64,
    /// Tells when the worker's last request of that generation has ended.
    handle: std::sync::Weak<Handle>,
    interpreter: Interpreter,
}

thread_local! {
    static WORKER: RefCell<Worker> = RefCell::default();
}

/// This worker's handle on the generation in force; `client` is the worker's.
pub fn current(shared: &InForce, client: &Arc<Client>) -> Arc<Handle> {
    WORKER.with_borrow_mut(|worker| {
        if let Some(handle) = &worker.current
            && shared.is(handle.number)
        {
            return handle.clone();
        }
        let live = shared.load();
        if let Some(handle) = &worker.current
            && handle
                .generation
                .as_ref()
                .is_some_and(|generation| Arc::ptr_eq(generation, &live))
        {
            return handle.clone();
        }
        let handle = Arc::new(Handle {
            generation: Some(Arc::clone(&live)),
            client: client.clone(),
        });
        worker.current = Some(handle.clone());
        worker.retire();
        handle
    })
}

/// Keeps this worker's handle that of the generation in force, also while it has no request that
/// would: else it would hold an old one until then. Runs until the worker ends.
pub(crate) async fn follow(shared: Arc<Shared>, client: Arc<Client>) {
    let mut swapped = shared.swapped.subscribe();
    loop {
        // Seen first, read after: what is swapped meanwhile is seen the next time.
        swapped.borrow_and_update();
        current(&shared.generation, &client);
        if swapped.changed().await.is_err() {
            return;
        }
    }
}

/// Prepares a call of a hook on this worker's interpreter for the generation of `handle`, which must
/// be kept until the call has ended.
///
/// # Errors
/// When there is no stack for it; or when the program does not compile, which was ruled out when it
/// was loaded.
pub fn start<V: Said>(handle: &Arc<Handle>, hook: HookId) -> Result<Running<V>, Failure> {
    WORKER.with_borrow_mut(|worker| {
        let known = worker
            .interpreters
            .iter()
            .position(|kept| kept.generation == handle.number);
        let index = match known {
            Some(index) => index,
            None => worker.take(handle).map_err(|error| Failure {
                kind: FailureKind::Error,
                limit: None,
                place: handle.program.hook(hook).place.clone(),
                message: format!("no interpreter: {}", error.summary()),
            })?,
        };
        worker.interpreters[index].interpreter.start(hook)
    })
}

impl Worker {
    /// Takes one of the generation's interpreters, made off the request path; should there be
    /// more threads than were foreseen, makes one.
    fn take(&mut self, handle: &Arc<Handle>) -> Result<usize, Diagnostic> {
        let interpreter = match handle.take_interpreter() {
            Some(parcel) => parcel.open(),
            None => Interpreter::new(handle.program.clone())?,
        };
        self.retire();
        self.interpreters.push(Kept {
            generation: handle.number,
            handle: Arc::downgrade(handle),
            interpreter,
        });
        Ok(self.interpreters.len() - 1)
    }

    /// Gives up the interpreters of generations that no request of this worker uses any more.
    fn retire(&mut self) {
        let mut index = 0;
        while index < self.interpreters.len() {
            let kept = &self.interpreters[index];
            if kept.handle.strong_count() > 0 || !kept.interpreter.is_idle() {
                index += 1;
            } else {
                let kept = self.interpreters.swap_remove(index);
                discard(Box::new(Parcel::pack(kept.interpreter)));
            }
        }
    }
}
