//! Asking one endpoint again and again.

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use super::keeper::Verdicts;
use super::probe::Prober;
use crate::config::HealthCheck;
use crate::metrics::{CheckResult, PoolMetrics};
use crate::pools::Endpoint;

/// Who is asked, and who wants to know.
pub(super) struct Subject {
    pub(super) pool: String,
    /// What the pool is called by, if it has a name.
    pub(super) host: Option<String>,
    pub(super) endpoint: Weak<Endpoint>,
    pub(super) metrics: Arc<PoolMetrics>,
    pub(super) verdicts: Arc<Verdicts>,
}

/// Checks an endpoint until it is gone, at first at once.
pub(super) async fn check(subject: Subject, check: HealthCheck, prober: Arc<Prober>) {
    while let Some(endpoint) = subject.endpoint.upgrade() {
        let result = prober.ask(&endpoint, &check, subject.host.as_deref()).await;
        let (counted, result) = match &result {
            Ok(()) => (CheckResult::Success, Ok(())),
            Err(failure) if failure.timed_out => (CheckResult::Timeout, Err(&*failure.reason)),
            Err(failure) => (CheckResult::Failure, Err(&*failure.reason)),
        };
        subject.metrics.checked(counted);
        let before = endpoint.standing().verdict();
        let verdict = endpoint
            .standing()
            .checked(result, &check, SystemTime::now());
        if let Some(healthy) = verdict {
            let (pool, address) = (&subject.pool, endpoint.address());
            match result {
                Err(_) => tracing::warn!(
                    "upstream unhealthy pool={pool} endpoint={address} reason={:?}",
                    endpoint.last_failure()
                ),
                Ok(()) if before.is_some() => {
                    tracing::info!("upstream healthy pool={pool} endpoint={address}");
                }
                Ok(()) => tracing::debug!("upstream healthy pool={pool} endpoint={address}"),
            }
            debug_assert_eq!(healthy, result.is_ok());
            subject.verdicts.changed();
        }
        drop(endpoint);
        tokio::time::sleep(jittered(check.interval)).await;
    }
}

/// A tenth less or more, so that many proxies don't ask at the same moment.
fn jittered(interval: Duration) -> Duration {
    interval.mul_f64(0.9 + 0.2 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_within_a_tenth() {
        let second = Duration::from_secs(1);
        for _ in 0..1000 {
            let time = jittered(second);
            assert!(time >= second.mul_f64(0.899) && time <= second.mul_f64(1.101));
        }
    }
}
