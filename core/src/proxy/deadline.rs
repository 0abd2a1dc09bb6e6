//! `.timeout`: the time until the upstream's response header is there.
//!
//! Pingora has one timeout for each read, which a slow header would reset with every byte and
//! which would also cut a stream that pauses. So the deadline is kept beside it: when it passes,
//! the connection is shut down from outside, and Pingora's read ends.

use std::{
    os::fd::{BorrowedFd, OwnedFd, RawFd},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use rustix::net::{Shutdown, shutdown};
use tokio::task::JoinHandle;

/// Shuts a connection down when a deadline passes, unless it is dropped before.
#[derive(Debug)]
pub(super) struct Deadline {
    passed: Arc<AtomicBool>,
    timer: JoinHandle<()>,
}

impl Deadline {
    /// Watches the connection behind `fd`.
    ///
    /// # Errors
    /// When the descriptor can't be duplicated, for want of open files.
    pub(super) fn watch(fd: RawFd, deadline: Instant) -> std::io::Result<Self> {
        let connection = own(fd)?;
        let passed = Arc::new(AtomicBool::new(false));
        let flag = passed.clone();
        let timer = tokio::spawn(async move {
            tokio::time::sleep_until(deadline.into()).await;
            flag.store(true, Ordering::Relaxed);
            // A connection that is gone already needs no end.
            let _ = shutdown(&connection, Shutdown::Both);
        });
        Ok(Self { passed, timer })
    }

    /// Whether the deadline has passed, so that the connection's end means a timeout.
    pub(super) fn has_passed(&self) -> bool {
        self.passed.load(Ordering::Relaxed)
    }
}

/// A descriptor of our own for the connection behind `fd`: Pingora may close its own, and the number may soon
/// name somebody else's connection. For the callbacks in which Pingora names it.
///
/// # Errors
/// When it can't be duplicated, for want of open files.
pub(super) fn own(fd: RawFd) -> std::io::Result<OwnedFd> {
    // SAFETY: Pingora names the descriptor of a connection that it keeps open during the
    // callback that this is called from; it is only borrowed until the next line.
    let connection = unsafe { BorrowedFd::borrow_raw(fd) };
    connection.try_clone_to_owned()
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.timer.abort();
    }
}
