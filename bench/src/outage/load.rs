//! The open loop of this comparison: each request is sent when it is due, by whichever connection is free.
//!
//! [`crate::rate`] gives each connection a schedule of its own, so one slow answer holds up the next
//! request of that connection. Here a slow target must not hold up requests that another one
//! answers: as many requests as there are connections can wait at once, and the others go on.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow};
use nix::sys::prctl;

use crate::client::Client;
use crate::interrupt::Interrupt;
use crate::load::{self, BODY_LENGTH};

/// An answer that takes longer is a failure. With it a run is bounded whatever the proxy does.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);
/// How long after the last due time late requests are still sent.
const OVERTIME: Duration = Duration::from_secs(2);
/// Sleep to the microsecond; the kernel's default rounds by 50.
const TIMER_SLACK_NANOSECONDS: u64 = 1_000;
/// The threads are many and do little.
const STACK: usize = 128 * 1024;

/// What is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// To whom.
    pub(crate) address: SocketAddr,
    /// Requests in a second.
    pub(crate) rate: u64,
    /// When the first one is due.
    pub(crate) start: Instant,
    /// For so long.
    pub(crate) duration: Duration,
    /// Over at most so many connections, each with a thread of its own.
    pub(crate) connections: usize,
}

/// Why a request has no good answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Failure {
    /// Another status than 200.
    Status(u16),
    /// Status 200 and another length.
    Body,
    /// No connection to the proxy.
    Connect,
    /// Nothing for [`TIMEOUT`].
    Timeout,
    /// The connection broke, or what came was no answer.
    Broken,
    /// Every connection was waiting until long after it was due.
    Unsent,
}

/// A request and what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    /// When it was due, from the start of the load.
    pub(crate) due: Duration,
    /// Microseconds from then to the end of its answer.
    pub(crate) latency_us: u64,
    /// Why that was no good answer.
    pub(crate) failure: Option<Failure>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status(status) => write!(f, "status {status}"),
            Self::Body => f.write_str("wrong body"),
            Self::Connect => f.write_str("no connection"),
            Self::Timeout => f.write_str("timeout"),
            Self::Broken => f.write_str("broken answer"),
            Self::Unsent => f.write_str("unsent"),
        }
    }
}

/// How often what went wrong, by its name.
pub(crate) fn failures<'a>(samples: impl Iterator<Item = &'a Sample>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for failure in samples.filter_map(|sample| sample.failure) {
        *counts.entry(failure.to_string()).or_default() += 1;
    }
    counts
}

/// Sends everything and gives one sample for each request that was due, in the order in which they were.
///
/// # Errors
/// When a thread can't be started or set up, and after a signal.
pub(crate) fn run(plan: Plan, interrupt: &Interrupt) -> Result<Vec<Sample>> {
    let next = AtomicU64::new(0);
    let parts: Vec<Result<Vec<Sample>>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.connections)
            .map(|_| {
                thread::Builder::new()
                    .name("load".to_owned())
                    .stack_size(STACK)
                    .spawn_scoped(scope, || connection(plan, &next, interrupt))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .context("cannot start a thread of the load")?
                    .join()
                    .unwrap_or_else(|_| Err(anyhow!("a thread of the load panicked")))
            })
            .collect()
    });
    interrupt.check()?;
    let mut samples = Vec::new();
    for part in parts {
        samples.extend(part?);
    }
    samples.sort_by_key(|sample| sample.due);
    Ok(samples)
}

/// Takes one request after the other, each by whichever connection is free.
fn connection(plan: Plan, next: &AtomicU64, interrupt: &Interrupt) -> Result<Vec<Sample>> {
    prctl::set_timerslack(TIMER_SLACK_NANOSECONDS).context("cannot set the timer slack")?;
    let request = load::measured_request();
    let last = plan.start + plan.duration + OVERTIME;
    let mut samples = Vec::new();
    let mut client = None;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let offset = due(number, plan.rate);
        if offset >= plan.duration || interrupt.is_set() {
            return Ok(samples);
        }
        let due = plan.start + offset;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let outcome = if Instant::now() < last {
            exchange(&mut client, plan.address, &request)
        } else {
            Err(Failure::Unsent)
        };
        samples.push(Sample {
            due: offset,
            latency_us: due.elapsed().as_micros() as u64,
            failure: outcome.err(),
        });
    }
}

/// When a request is due, from the start.
fn due(number: u64, rate: u64) -> Duration {
    let nanoseconds = u128::from(number) * 1_000_000_000 / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

/// One request. The connection is kept for the next one only after a good answer that doesn't end it.
fn exchange(kept: &mut Option<Client>, address: SocketAddr, request: &[u8]) -> Result<(), Failure> {
    let mut client = match kept.take() {
        Some(client) => client,
        None => Client::connect(address, TIMEOUT).map_err(|error| match kind(&error) {
            Failure::Timeout => Failure::Timeout,
            _ => Failure::Connect,
        })?,
    };
    let answer = client.exchange(request).map_err(|error| kind(&error))?;
    if answer.status != 200 {
        return Err(Failure::Status(answer.status));
    }
    if answer.body.len() != BODY_LENGTH {
        return Err(Failure::Body);
    }
    let ends = answer
        .header("connection")
        .is_some_and(|value| value.eq_ignore_ascii_case("close"));
    if !ends {
        *kept = Some(client);
    }
    Ok(())
}

fn kind(error: &Error) -> Failure {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    let timeout = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| matches!(cause.kind(), TimedOut | WouldBlock));
    if timeout {
        Failure::Timeout
    } else {
        Failure::Broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outage::target::Target;

    fn plan(address: SocketAddr, connections: usize) -> Plan {
        Plan {
            address,
            rate: 200,
            start: Instant::now(),
            duration: Duration::from_millis(500),
            connections,
        }
    }

    #[test]
    fn every_request_that_is_due_has_a_sample() {
        let target = Target::start(Duration::ZERO).unwrap();
        let samples = run(plan(target.address(), 8), &Interrupt::never()).unwrap();
        assert_eq!(samples.len(), 100);
        for (number, sample) in samples.iter().enumerate() {
            assert_eq!(sample.due, Duration::from_millis(5) * number as u32);
            assert_eq!(sample.failure, None);
        }
        assert_eq!(target.requests(), 100);
    }

    #[test]
    fn a_slow_answer_holds_up_only_what_has_no_free_connection() {
        // 200 requests/s of 100 ms each keep 20 connections busy.
        let delay = Duration::from_millis(100);
        let late = |connections| {
            let target = Target::start(delay).unwrap();
            let samples = run(plan(target.address(), connections), &Interrupt::never()).unwrap();
            assert!(samples.iter().all(|one| one.latency_us >= 100_000));
            samples.into_iter().map(|one| one.latency_us).max().unwrap()
        };
        // With one connection the requests are sent one after the other: at 2.5 s, when the overtime
        // is over, 25 of them; all of them count from when they were due.
        assert!(late(1) >= 1_500_000);
        let target = Target::start(delay).unwrap();
        let samples = run(plan(target.address(), 100), &Interrupt::never()).unwrap();
        assert!(samples.iter().all(|one| one.failure.is_none()));
    }

    #[test]
    fn what_could_not_be_sent_is_told() {
        let target = Target::start(Duration::from_millis(400)).unwrap();
        let samples = run(plan(target.address(), 1), &Interrupt::never()).unwrap();
        assert_eq!(samples.len(), 100);
        let counts = failures(samples.iter());
        assert!(counts["unsent"] >= 90, "{counts:?}");
    }

    #[test]
    fn without_a_listener_there_is_no_connection() {
        let mut target = Target::start(Duration::ZERO).unwrap();
        target.kill();
        let samples = run(plan(target.address(), 2), &Interrupt::never()).unwrap();
        let counts = failures(samples.iter());
        assert_eq!(
            counts.into_iter().collect::<Vec<_>>(),
            [("no connection".to_owned(), 100)]
        );
    }
}
