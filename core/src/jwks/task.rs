//! Keeps one key set up to date.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use edgewright_script::jwt::{JwksSource, Slot};
use tokio::sync::Notify;

use super::{KeySets, fetch::fetch};

/// The least time between two fetches of a set, however many tokens name keys that are not there.
pub(super) const LEAST: Duration = Duration::from_secs(5);

/// Until the next attempt after the first failure; each further one doubles it, up to `refresh`.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// Fetches the set until the task is ended.
pub(super) async fn keep(
    sets: Arc<KeySets>,
    source: JwksSource,
    slot: Arc<Slot>,
    wake: Arc<Notify>,
) {
    let mut failed = 0;
    loop {
        let began = Instant::now();
        // What is wanted from here on is newer than what comes now.
        slot.take_wanted();
        let fetched = fetch(&source, &sets.shared).await;
        let pause = match fetched {
            Ok(set) => {
                if failed > 0 {
                    tracing::info!("key set fetched again source={}", source.name);
                }
                failed = 0;
                slot.put(set);
                sets.note(&source.name, true);
                source.refresh
            }
            Err(reason) => {
                tracing::warn!("key set not fetched source={} error={reason}", source.name);
                sets.note(&source.name, false);
                failed += 1;
                retry(failed, source.refresh)
            }
        };
        let wanted = async {
            wake.notified().await;
            tokio::time::sleep(LEAST.saturating_sub(began.elapsed())).await;
        };
        tokio::select! {
            () = tokio::time::sleep(jittered(pause)) => {}
            () = wanted => {}
        }
    }
}

/// The time before the next attempt after so many failures in a row.
pub(super) fn retry(failed: u32, refresh: Duration) -> Duration {
    let factor = 2u32.saturating_pow(failed.saturating_sub(1));
    FIRST_RETRY.saturating_mul(factor).min(refresh)
}

/// Up to a tenth less, so that many proxies don't ask at the same moment.
fn jittered(time: Duration) -> Duration {
    time.mul_f64(1.0 - 0.1 * fastrand::f64())
}
