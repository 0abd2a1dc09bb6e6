//! SIGHUP means reload, as with nginx and HAProxy.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use anyhow::Context as _;
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::{Handle, Signals};

use super::ReloadHandle;

/// Keeps SIGHUP connected to the pipeline; dropping it disconnects.
///
/// After that the signal does nothing: its default action, ending the process, doesn't come back.
#[derive(Debug)]
pub struct Hangup {
    signals: Handle,
    thread: Option<JoinHandle<()>>,
}

/// Makes each SIGHUP an explicit reload request. It doesn't keep the pipeline alive.
///
/// # Errors
/// When the signal can't be registered or the thread can't be started.
pub fn reload_on_hangup(reload: &ReloadHandle) -> anyhow::Result<Hangup> {
    let mut signals = Signals::new([SIGHUP]).context("cannot register for SIGHUP")?;
    let handle = signals.handle();
    let triggers = Arc::clone(&reload.pipeline.triggers);
    let thread = thread::Builder::new()
        .name("sighup".to_owned())
        .spawn(move || {
            for _ in signals.forever() {
                triggers.ask(None);
            }
        })
        .context("cannot start the thread that waits for SIGHUP")?;
    Ok(Hangup {
        signals: handle,
        thread: Some(thread),
    })
}

impl Drop for Hangup {
    fn drop(&mut self) {
        self.signals.close();
        if let Some(thread) = self.thread.take() {
            // Nothing in it can panic, and there is no one to tell.
            let _ = thread.join();
        }
    }
}
