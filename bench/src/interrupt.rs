//! Ctrl-C and kin: asked for between steps, so that everything started is stopped on the way out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The error that ends a run after SIGINT, SIGTERM or SIGHUP.
#[derive(Debug)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted; everything that was started has been stopped")
    }
}

impl std::error::Error for Interrupted {}

/// Whether a signal has asked this process to end.
#[derive(Clone)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes over SIGINT, SIGTERM and SIGHUP. A second one ends the process at once; the children
    /// then get SIGTERM from the kernel (see [`crate::process`]).
    pub(crate) fn install() -> Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The order matters: the shutdown looks at what the flag was before this signal.
            signal_hook::flag::register_conditional_shutdown(
                signal,
                128 + signal,
                Arc::clone(&flag),
            )
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
            .with_context(|| format!("cannot handle signal {signal}"))?;
        }
        Ok(Self(flag))
    }

    /// One that no signal sets.
    #[cfg(test)]
    pub(crate) fn never() -> Self {
        Self(Arc::default())
    }

    /// One whose signal is there already.
    #[cfg(test)]
    pub(crate) fn arrived() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    /// An error once a signal has arrived.
    pub(crate) fn check(&self) -> Result<(), Interrupted> {
        if self.is_set() {
            Err(Interrupted)
        } else {
            Ok(())
        }
    }

    /// True once a signal has arrived.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_only_after_the_signal() {
        let interrupt = Interrupt(Arc::default());
        assert!(interrupt.check().is_ok());
        interrupt.0.store(true, Ordering::Relaxed);
        assert!(interrupt.check().is_err());
    }
}
