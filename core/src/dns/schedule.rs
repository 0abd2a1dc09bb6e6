//! Asking again whenever it is due.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::error;

use super::system::System;

/// What is brought up to date by its own clock.
pub(super) trait Refresh: Sync {
    /// Brings it up to date. Gives the time to the next time, `None` when only a change of the
    /// system's configuration can change anything.
    fn refresh(&self, system: &System) -> impl Future<Output = Option<Duration>> + Send;

    /// Notes when the next time is.
    fn scheduled(&self, next: Option<Duration>);
}

/// Refreshes `what` when it is due and when the system's configuration changes, until the resolver
/// ends.
///
/// Time is that of the monotonic clock: when somebody sets the other one, nothing comes sooner or
/// later.
pub(super) async fn follow(what: &impl Refresh, mut systems: watch::Receiver<Arc<System>>) {
    loop {
        let system = systems.borrow_and_update().clone();
        let next = what.refresh(&system).await;
        what.scheduled(next);
        let due = async {
            match next {
                Some(delay) => tokio::time::sleep(delay).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            changed = systems.changed() => if changed.is_err() {
                return;
            }
        }
    }
}

/// Keeps `run` going for the name until it is aborted or the resolver ends.
///
/// A panic, in the library say, must not pin a name's addresses for the life of the process: it is
/// started again, with all that is known.
pub(super) async fn keep<F>(name: &str, systems: &watch::Receiver<Arc<System>>, run: impl Fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        // Dropped with this future, and then the schedules end too.
        let mut schedules = JoinSet::new();
        schedules.spawn(run());
        match schedules.join_next().await {
            Some(Err(failure)) if failure.is_panic() => {
                error!(name, "dns: panic while looking up, starting again");
                let pause = systems.borrow().timing.backoff_min;
                tokio::time::sleep(pause).await;
            }
            _ => return,
        }
    }
}
