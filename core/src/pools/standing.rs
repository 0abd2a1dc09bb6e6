//! How an endpoint stands: what checks and requests have shown of it.
//!
//! It belongs to the address in its pool, not to the endpoint: an endpoint that is made anew, since
//! the pool's settings have changed, gets it from the one before.

use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::latency::PeakEwma;
use crate::config::{Balance, Ejection, HealthCheck, PoolConfig, Thousandths};
use crate::metrics::shard::Padded;
use crate::metrics::{ConnectFailure, EjectionReason};

/// The most characters of a failed check's reason.
const MOST_CHARACTERS: usize = 200;

/// What a request has come to, as far as it says something of the endpoint. Clients that leave, bodies that
/// break off later and what the proxy itself lacks say nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The header of a final response with this status.
    Answered(u16),
    /// None that can be used.
    Failed(Fault),
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Fault {
    /// Nothing listens there.
    Refused = 1,
    /// The connection was not accepted in time.
    ConnectTimeout,
    /// There can be no connection for another reason.
    Unreachable,
    /// A connection was closed or reset while it was in use.
    Closed,
    /// No answer in time.
    Timeout,
    /// The answer is malformed.
    Broken,
}

impl Fault {
    const ALL: [Self; 6] = [
        Self::Refused,
        Self::ConnectTimeout,
        Self::Unreachable,
        Self::Closed,
        Self::Timeout,
        Self::Broken,
    ];

    /// What a connection that could not be made says of the endpoint; `None` when it was the proxy that
    /// lacked something.
    pub fn of_connect(failure: ConnectFailure) -> Option<Self> {
        match failure {
            ConnectFailure::Refused => Some(Self::Refused),
            ConnectFailure::Timeout => Some(Self::ConnectTimeout),
            ConnectFailure::Tls | ConnectFailure::Other => Some(Self::Unreachable),
            ConnectFailure::PortExhausted | ConnectFailure::FdExhausted => None,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Refused => "connection refused",
            Self::ConnectTimeout => "connection not accepted in time",
            Self::Unreachable => "no connection",
            Self::Closed => "connection closed before an answer",
            Self::Timeout => "no answer in time",
            Self::Broken => "malformed answer",
        }
    }
}

/// How an endpoint stands.
#[derive(Debug)]
pub(crate) struct Standing {
    /// Failures in a row (upper half) and answers of 5xx in a row: each request reads it, and only those
    /// write it that change it, so it costs nothing while all is well.
    streak: AtomicU64,
    /// Why it should be ejected, until somebody has looked: an [`EjectionReason`] and one, or 0.
    tripped: AtomicU8,
    /// The last failure in use: a [`Fault`], or a status of 500 and more; 0 before the first.
    last_fault: AtomicU32,
    /// Written by each answer of a pool that looks at latencies.
    latency: Padded<Latency>,
    record: Mutex<Record>,
}

#[derive(Debug, Default)]
struct Latency {
    /// The sum of all since somebody asked, in microseconds, and how many there are in it.
    micros: AtomicU64,
    answers: AtomicU64,
    recent: PeakEwma,
}

/// What changes now and then, never by a request.
#[derive(Debug, Clone, Default)]
pub(super) struct Record {
    /// What checks say; `None` before the first one has ended.
    healthy: Option<bool>,
    /// Checks in a row that say otherwise.
    contrary: u32,
    /// Why the last check failed.
    check_failure: Option<Box<str>>,
    ejected: Option<Ejected>,
    /// Times that the next ejection is longer than the first, less one.
    ejections: u32,
    /// When the last ejection ended.
    returned: Option<Instant>,
    /// When it was last taken out, or came back.
    since: Option<SystemTime>,
}

/// An ejection under way.
#[derive(Debug, Clone, Copy)]
struct Ejected {
    until: Instant,
    reason: EjectionReason,
}

/// What is told of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) healthy: Option<bool>,
    pub(super) ejected: Option<EjectionReason>,
    pub(super) since: Option<SystemTime>,
    pub(super) last_failure: Option<String>,
}

const FAILURE: u64 = 1 << 32;
const RUN_OF_5XX: u64 = FAILURE - 1;

impl Default for Standing {
    fn default() -> Self {
        Self {
            streak: AtomicU64::new(0),
            tripped: AtomicU8::new(0),
            last_fault: AtomicU32::new(0),
            latency: Padded::default(),
            record: Mutex::default(),
        }
    }
}

impl Standing {
    /// Takes in what a request has come to; true when it should be looked at whether the endpoint is to be
    /// ejected. While all is well this is one relaxed load.
    #[inline]
    pub(super) fn note(&self, outcome: Outcome, limits: &Ejection) -> bool {
        if let Outcome::Answered(..500) = outcome {
            if self.streak.load(Relaxed) != 0 {
                self.streak.store(0, Relaxed);
            }
            return false;
        }
        self.note_failure(outcome, limits)
    }

    #[cold]
    fn note_failure(&self, outcome: Outcome, limits: &Ejection) -> bool {
        let (code, reason, limit, run) = match outcome {
            Outcome::Failed(fault) => {
                // An answer of 5xx before it stays: this is none.
                let before = self.streak.fetch_add(FAILURE, Relaxed);
                let run = (before >> 32) + 1;
                let limit = limits.consecutive_failures;
                (fault as u32, EjectionReason::Failures, limit, run)
            }
            Outcome::Answered(status) => {
                // It answers, so a run of failures has ended. Counts that several requests change at the
                // same moment may differ by one.
                let before = self.streak.load(Relaxed) & RUN_OF_5XX;
                let run = (before + 1).min(RUN_OF_5XX);
                self.streak.store(run, Relaxed);
                let limit = limits.consecutive_5xx;
                (u32::from(status), EjectionReason::Status, limit, run)
            }
        };
        self.last_fault.store(code, Relaxed);
        if limit == 0 || run < u64::from(limit) {
            return false;
        }
        // It takes as many again to be looked at again.
        self.streak.store(0, Relaxed);
        self.trip(reason);
        true
    }

    /// Asks for an ejection.
    pub(super) fn trip(&self, reason: EjectionReason) {
        self.tripped.store(reason as u8 + 1, Relaxed);
    }

    /// Why it should be ejected, if it should; asked once.
    pub(super) fn take_tripped(&self) -> Option<EjectionReason> {
        // Most are not: they are only read.
        if self.tripped.load(Relaxed) == 0 {
            return None;
        }
        let code = self.tripped.swap(0, Relaxed);
        EjectionReason::ALL
            .get(usize::from(code).checked_sub(1)?)
            .copied()
    }

    /// Takes in how long it took to come to this.
    #[inline]
    pub(super) fn took(&self, latency: Duration, outcome: Outcome, config: &PoolConfig) {
        let Latency {
            micros,
            answers,
            recent,
        } = &self.latency.0;
        if config.balance == Balance::PeakEwma {
            let is_good = matches!(outcome, Outcome::Answered(..500));
            recent.observe(Instant::now(), latency, !is_good);
        }
        if config.ejection.latency_factor != Thousandths::ZERO
            && let Outcome::Answered(_) = outcome
        {
            let latency = latency.as_micros().min(u128::from(u32::MAX)) as u64;
            micros.fetch_add(latency, Relaxed);
            answers.fetch_add(1, Relaxed);
        }
    }

    /// How long its answers have taken lately, for `balance = "peak_ewma"`.
    #[inline]
    pub(super) fn recent(&self) -> &PeakEwma {
        &self.latency.0.recent
    }

    /// The sum of latencies in microseconds and how many there were since this was asked last.
    pub(super) fn take_latency(&self) -> (u64, u64) {
        let Latency {
            micros, answers, ..
        } = &self.latency.0;
        (micros.swap(0, Relaxed), answers.swap(0, Relaxed))
    }

    /// Takes in the result of a check; the verdict when it has changed with it. The first result counts
    /// alone.
    pub(crate) fn checked(
        &self,
        result: Result<(), &str>,
        check: &HealthCheck,
        now: SystemTime,
    ) -> Option<bool> {
        let mut record = self.lock();
        let well = result.is_ok();
        if let Err(reason) = result {
            record.check_failure = Some(one_line(reason));
        }
        if record.healthy == Some(well) {
            record.contrary = 0;
            return None;
        }
        let needed = match record.healthy {
            None => 1,
            Some(true) => check.unhealthy,
            Some(false) => check.healthy,
        };
        record.contrary += 1;
        if record.contrary < needed {
            return None;
        }
        let changes = record.healthy.is_some() || !well;
        record.contrary = 0;
        record.healthy = Some(well);
        if changes {
            record.since = Some(now);
        }
        Some(well)
    }

    /// What checks say; `None` before the first one has ended.
    pub(crate) fn verdict(&self) -> Option<bool> {
        self.lock().healthy
    }

    /// Until when it is ejected.
    pub(super) fn ejected_until(&self) -> Option<Instant> {
        self.lock().ejected.map(|ejected| ejected.until)
    }

    /// Ejects it at `now`; for how long.
    pub(super) fn eject(
        &self,
        reason: EjectionReason,
        limits: &Ejection,
        now: Instant,
    ) -> Duration {
        let mut record = self.lock();
        let good = record.returned.map(|at| now.saturating_duration_since(at));
        let (ejections, time) = ejection_time(record.ejections, good, limits);
        record.ejections = ejections;
        record.ejected = Some(Ejected {
            until: now + time,
            reason,
        });
        record.since = Some(SystemTime::now());
        time
    }

    /// Ends an ejection.
    pub(super) fn readmit(&self, now: Instant) {
        let mut record = self.lock();
        if record.ejected.take().is_some() {
            record.returned = Some(now);
            record.since = Some(SystemTime::now());
            // What still came back from before says nothing of it now.
            self.streak.store(0, Relaxed);
            self.tripped.store(0, Relaxed);
        }
    }

    pub(super) fn told(&self) -> Told {
        let record = self.lock().clone();
        let in_use = match self.last_fault.load(Relaxed) {
            0 => None,
            status @ 500.. => Some(format!("status {status}")),
            code => Fault::ALL
                .get(code as usize - 1)
                .map(|fault| fault.text().to_owned()),
        };
        let by_check = record
            .check_failure
            .map(|reason| format!("check: {reason}"));
        let prefers_check = record.healthy == Some(false);
        Told {
            healthy: record.healthy,
            ejected: record.ejected.map(|ejected| ejected.reason),
            since: record.since,
            last_failure: if prefers_check {
                by_check.or(in_use)
            } else {
                in_use.or(by_check)
            },
        }
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        // Each change is complete in itself, so a panic elsewhere leaves nothing half done.
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long the next ejection lasts, after so many that still count; and how many count then. As in Envoy's
/// outlier detection each ejection makes the next longer by `base_time`, and each `base_time` without one
/// shorter again.
fn ejection_time(ejections: u32, good: Option<Duration>, limits: &Ejection) -> (u32, Duration) {
    let base = limits.base_time.max(Duration::from_millis(1));
    let forgiven = good.map_or(0, |good| good.as_millis() / base.as_millis().max(1));
    let forgiven = u32::try_from(forgiven).unwrap_or(u32::MAX);
    // More would make no ejection longer, and take longer to be forgiven.
    let most = limits
        .max_time
        .as_millis()
        .div_ceil(base.as_millis().max(1));
    let most = u32::try_from(most).unwrap_or(u32::MAX).max(1);
    let ejections = ejections
        .saturating_sub(forgiven)
        .saturating_add(1)
        .min(most);
    (
        ejections,
        base.saturating_mul(ejections).min(limits.max_time),
    )
}

/// Without control characters (log lines must not be forged) and not longer than the bound.
fn one_line(text: &str) -> Box<str> {
    let characters = text.chars().take(MOST_CHARACTERS);
    characters
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect::<String>()
        .into()
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests;
