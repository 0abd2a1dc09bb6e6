//! Verifies passwords off the workers: one takes up to a quarter of a second of CPU time on purpose.

use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use edgewright_script::password::{Credentials, PasswordCheck, Verified};
use tokio::sync::Semaphore;

use super::flights::{Flights, Turn};
use crate::{metrics::Limit, worker::Handle};

/// What the process knows of passwords, and what it is verifying.
struct Passwords {
    verified: Verified,
    flights: Arc<Flights<Credentials, bool>>,
    /// Those that run. The others wait, so that requests keep half of the CPUs.
    running: Arc<Semaphore>,
    /// Those that run or wait.
    open: AtomicUsize,
}

/// Why a password was not verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotVerified {
    /// So many are being verified that no more may be.
    TooMany,
    /// The system gives no random bytes, or no thread.
    Unable,
}

static PASSWORDS: LazyLock<Option<Passwords>> = LazyLock::new(Passwords::new);

/// Whether it is the right password; `None` when that can't be said now.
pub(crate) async fn verify(check: PasswordCheck, handle: &Handle) -> Option<bool> {
    let most = handle.config.limits.password_checks;
    match PASSWORDS.as_ref()?.verify(check, most).await {
        Ok(right) => Some(right),
        Err(NotVerified::TooMany) => {
            handle.limit_passed(Limit::PasswordChecks);
            None
        }
        Err(NotVerified::Unable) => None,
    }
}

/// Counts one that runs or waits.
struct Open(&'static AtomicUsize);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Passwords {
    fn new() -> Option<Self> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Some(Self {
            verified: Verified::new()?,
            flights: Arc::default(),
            running: Arc::new(Semaphore::new((cpus / 2).max(1))),
            open: AtomicUsize::new(0),
        })
    }

    /// Whether it is the right password. At most `most` are verified at a time, those that
    /// wait for their turn included.
    ///
    /// # Errors
    /// When it can't be said.
    async fn verify(&'static self, check: PasswordCheck, most: usize) -> Result<bool, NotVerified> {
        if check.hash.is_quick() {
            return Ok(check.run());
        }
        let credentials = self.verified.credentials(&check);
        if self.verified.knows(&credentials, Instant::now()) {
            return Ok(true);
        }
        loop {
            let lead = match self.flights.join(&credentials) {
                Turn::Lead(lead) => lead,
                Turn::Follow(follow) => match follow.outcome().await {
                    Some(right) => return Ok(right),
                    None => continue,
                },
            };
            let open = self.take_place(most).ok_or(NotVerified::TooMany)?;
            let running = self.running.clone().acquire_owned().await;
            let running = running.map_err(|_| NotVerified::Unable)?;
            // All of it goes along: should the client leave meanwhile, others still want to know.
            let work = move || {
                let right = check.run();
                if right {
                    self.verified.keep(credentials, Instant::now());
                }
                lead.land(right);
                drop((running, open));
                right
            };
            let right = tokio::task::spawn_blocking(work).await;
            return right.map_err(|_| NotVerified::Unable);
        }
    }

    fn take_place(&'static self, most: usize) -> Option<Open> {
        let taken = self
            .open
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
                (open < most).then_some(open + 1)
            });
        taken.ok().map(|_| Open(&self.open))
    }
}
