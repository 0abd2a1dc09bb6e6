//! Hooks that run without a request: `every("30s", fn)`.
//!
//! One worker of the process runs them, on its own runtime and interpreter, beside its requests. They
//! belong to the generation in force: when another one goes live, what runs is cancelled, as a hook is
//! whose client leaves, and the hooks of the new one begin. So nothing of an old generation is held.

use std::{future::pending, sync::Arc};

use edgewright_script::{
    engine::{Failure, Finished, Step, Subject},
    program::Background,
};
use futures_util::future::join_all;
use http::HeaderMap;
use tokio::{sync::watch, time::sleep};

use crate::{
    outbound::Client,
    proxy::{Shared, loops, verify_password},
    worker::{self, Handle},
};

/// Runs the background hooks of the generation in force, until `closing` says that the process ends.
pub(crate) async fn run(
    shared: Arc<Shared>,
    client: Arc<Client>,
    mut closing: watch::Receiver<bool>,
) {
    let mut swapped = shared.swapped.subscribe();
    loop {
        swapped.borrow_and_update();
        let handle = worker::current(&shared.generation, &client);
        tokio::select! {
            biased;
            // Also when whoever could say so is gone.
            _ = closing.wait_for(|closing| *closing) => return,
            changed = swapped.changed() => if changed.is_err() {
                return;
            },
            () = run_all(&handle) => {}
        }
    }
}

/// Runs all background hooks of a generation, for ever.
async fn run_all(handle: &Arc<Handle>) {
    let hooks = handle.program.background.iter();
    join_all(hooks.map(|background| repeat(handle, *background))).await;
    // There are none.
    pending::<()>().await;
}

/// Runs one hook, and again when its interval has passed since it ended.
async fn repeat(handle: &Arc<Handle>, background: Background) {
    loop {
        handle.metrics().background_run();
        if let Err(failure) = run_once(handle, background).await {
            handle.metrics().background_failure();
            handle.script_failure(None, background.hook, &failure);
        }
        sleep(background.interval).await;
    }
}

async fn run_once(handle: &Arc<Handle>, background: Background) -> Result<Finished, Failure> {
    let mut running = worker::start::<Finished>(handle, background.hook)?;
    let mut step = running.resume(Subject::Nothing);
    loop {
        step = match step {
            Step::Ended(said) => return said,
            Step::Turn => {
                tokio::task::yield_now().await;
                running.resume(Subject::Nothing)
            }
            Step::Calls(mut calls) => {
                // The first hook in the chain: none stands behind it.
                loops::mark(&mut calls, &HeaderMap::new());
                let most_body = handle.config.script.fetch_body;
                let replies = handle.client().call_all(&calls, handle, most_body).await;
                running.answer(Subject::Nothing, replies)
            }
            Step::Password(check) => {
                let right = verify_password(check, handle).await;
                running.verified(Subject::Nothing, right)
            }
            Step::Load(load) => {
                load.await;
                running.resume(Subject::Nothing)
            }
        };
    }
}
