//! The open loop: requests at a constant rate, whether or not earlier answers are there.
//!
//! Each connection has a fixed schedule. A latency counts from the moment at which the request
//! was due, not from when it could be sent: a proxy that stalls is charged for every request that
//! it held up (the correction for coordinated omission, as in wrk2). One thread serves one
//! connection, because an asynchronous runtime's timers are too coarse for it (tokio: 1 ms).

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl;
use nix::unistd::Pid;
use serde::Serialize;

use crate::client::Client;
use crate::interrupt::Interrupt;
use crate::load;
use crate::stats::percentile;

/// Threads of the loader, and so the most connections that it uses.
pub(crate) const MAX_CONNECTIONS: usize = 128;
/// A request that takes longer is an error. With it a run is bounded whatever the proxy does.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How long after the last due time late requests are still sent.
const OVERTIME: Duration = Duration::from_secs(2);
const LEAD: Duration = Duration::from_millis(20);
/// Sleep to the microsecond; the kernel's default rounds by 50.
const TIMER_SLACK_NANOSECONDS: u64 = 1_000;

/// What is sent.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// Requests in a second, of all connections together.
    pub(crate) rate: u64,
    /// For so long.
    pub(crate) duration: Duration,
    /// Over so many connections.
    pub(crate) connections: usize,
    /// On these CPUs.
    pub(crate) cpus: Option<CpuSet>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct RateResult {
    /// Good answers: status 200 and the right length.
    pub(crate) completed: u64,
    /// Bad answers and failed connections.
    pub(crate) errors: u64,
    /// Requests that were due and never sent, because the proxy was too slow.
    pub(crate) unsent: u64,
    /// Half of the answers came no later after the request was due, in microseconds.
    pub(crate) p50_us: u64,
    /// 99 of 100.
    pub(crate) p99_us: u64,
    /// 999 of 1000.
    pub(crate) p999_us: u64,
    /// All.
    pub(crate) max_us: u64,
    /// The first error, in words.
    pub(crate) first_error: Option<String>,
}

#[derive(Default)]
struct Tally {
    latencies_us: Vec<u64>,
    errors: u64,
    unsent: u64,
    first_error: Option<String>,
}

/// Runs the plan against `address`.
pub(crate) fn run(address: SocketAddr, plan: Plan, interrupt: &Interrupt) -> Result<RateResult> {
    ensure!(
        (1..=MAX_CONNECTIONS).contains(&plan.connections),
        "the constant-rate load takes 1 to {MAX_CONNECTIONS} connections"
    );
    let start = Instant::now() + LEAD;
    let tallies: Vec<Result<Tally>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.connections)
            .map(|index| scope.spawn(move || connection(address, plan, index, start, interrupt)))
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(anyhow!("a thread of the load panicked")))
            })
            .collect()
    });
    interrupt.check()?;
    let mut sum = Tally::default();
    for tally in tallies {
        let tally = tally?;
        sum.latencies_us.extend(tally.latencies_us);
        sum.errors += tally.errors;
        sum.unsent += tally.unsent;
        sum.first_error = sum.first_error.or(tally.first_error);
    }
    summarize(sum)
}

fn summarize(mut tally: Tally) -> Result<RateResult> {
    tally.latencies_us.sort_unstable();
    let at = |per_mille| {
        percentile(&tally.latencies_us, per_mille).with_context(|| {
            let error = tally.first_error.as_deref().unwrap_or("no request was due");
            format!("no good answer at a constant rate: {error}")
        })
    };
    Ok(RateResult {
        completed: tally.latencies_us.len() as u64,
        errors: tally.errors,
        unsent: tally.unsent,
        p50_us: at(500)?,
        p99_us: at(990)?,
        p999_us: at(999)?,
        max_us: at(1000)?,
        first_error: tally.first_error,
    })
}

/// When the `number`th request of connection `index` is due, counted from the start.
fn due(plan: Plan, index: usize, number: u64) -> Duration {
    let position = number * plan.connections as u64 + index as u64;
    Duration::from_nanos(
        (u128::from(position) * 1_000_000_000 / u128::from(plan.rate.max(1))) as u64,
    )
}

fn connection(
    address: SocketAddr,
    plan: Plan,
    index: usize,
    start: Instant,
    interrupt: &Interrupt,
) -> Result<Tally> {
    prctl::set_timerslack(TIMER_SLACK_NANOSECONDS).context("cannot set the timer slack")?;
    if let Some(cpus) = &plan.cpus {
        sched_setaffinity(Pid::from_raw(0), cpus).context("cannot set the CPU affinity")?;
    }
    let request = load::measured_request();
    let deadline = start + plan.duration + OVERTIME;
    let mut tally = Tally::default();
    let mut client = None;
    let mut number = 0;
    loop {
        let offset = due(plan, index, number);
        if offset >= plan.duration || interrupt.is_set() {
            return Ok(tally);
        }
        let due = start + offset;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if Instant::now() >= deadline {
            tally.unsent += 1;
        } else {
            match exchange(&mut client, address, &request) {
                Ok(()) => tally.latencies_us.push(due.elapsed().as_micros() as u64),
                Err(error) => {
                    client = None;
                    tally.errors += 1;
                    tally
                        .first_error
                        .get_or_insert_with(|| format!("{error:#}"));
                }
            }
        }
        number += 1;
    }
}

fn exchange(client: &mut Option<Client>, address: SocketAddr, request: &[u8]) -> Result<()> {
    let client = match client {
        Some(client) => client,
        None => client.insert(Client::connect(address, TIMEOUT)?),
    };
    let answer = client.exchange(request)?;
    ensure!(answer.status == 200, "status {}", answer.status);
    ensure!(
        answer.body.len() == load::BODY_LENGTH,
        "a body of {} bytes",
        answer.body.len()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    const PLAN: Plan = Plan {
        rate: 1000,
        duration: Duration::from_secs(1),
        connections: 4,
        cpus: None,
    };

    #[test]
    fn connections_take_turns_at_even_distances() {
        let mut times: Vec<Duration> = (0..250)
            .flat_map(|number| (0..4).map(move |index| due(PLAN, index, number)))
            .collect();
        times.sort();
        assert_eq!(times[0], Duration::ZERO);
        assert!(
            times
                .windows(2)
                .all(|pair| pair[1] - pair[0] == Duration::from_millis(1))
        );
        assert_eq!(times[999], Duration::from_millis(999));
    }

    #[test]
    fn percentiles_come_from_all_connections() {
        let result = summarize(Tally {
            latencies_us: (1..=1000).rev().collect(),
            errors: 2,
            ..Tally::default()
        })
        .unwrap();
        assert_eq!((result.completed, result.errors), (1000, 2));
        assert_eq!(
            (result.p50_us, result.p99_us, result.p999_us, result.max_us),
            (500, 990, 999, 1000)
        );
    }

    /// Answers one connection, but keeps the first request waiting.
    fn stalling_server(stall: Duration) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n",
                load::BODY_LENGTH
            );
            let answer = head + load::body().as_str();
            let mut stall = Some(stall);
            let mut request = vec![0; load::measured_request().len()];
            while stream.read_exact(&mut request).is_ok() {
                thread::sleep(stall.take().unwrap_or_default());
                if stream.write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
        });
        address
    }

    #[test]
    fn a_stall_is_charged_for_every_request_that_it_held_up() {
        let plan = Plan {
            rate: 400,
            duration: Duration::from_millis(500),
            connections: 1,
            cpus: None,
        };
        let stall = Duration::from_millis(300);
        let result = run(stalling_server(stall), plan, &Interrupt::never()).unwrap();
        // 200 requests are due, 120 of them during the stall. A closed loop would see a single
        // slow one, so its 99th percentile would be fast.
        assert_eq!(
            (result.completed, result.errors, result.unsent),
            (200, 0, 0)
        );
        assert!(result.p99_us >= 250_000, "{result:?}");
    }

    #[test]
    fn without_a_good_answer_the_error_is_told() {
        let error = summarize(Tally {
            errors: 1,
            first_error: Some("status 502".to_owned()),
            ..Tally::default()
        })
        .unwrap_err();
        assert!(error.to_string().contains("status 502"));
    }
}
