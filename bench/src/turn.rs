//! One turn: a contestant is started, checked, warmed up, loaded, measured and ended.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::checks;
use crate::peers::{Field, Peer};
use crate::procfs::{self, CpuTime};
use crate::rate::{self, RateResult};
use crate::start::{Running, Wrapper};
use crate::wrk::{Wrk, WrkResult};

/// How long a contestant may take to end after its turn.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// How far the mean length of wrk's answers may be from the sampled one: answers that were cut
/// off at the end of the run count as bytes and not as answers.
const LENGTH_TOLERANCE: f64 = 0.02;

/// What a turn consists of.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// Seconds of closed loop before anything is measured.
    pub(crate) warmup: u64,
    /// Seconds of measured closed loop.
    pub(crate) seconds: u64,
    /// The load at a constant rate, if there is one.
    pub(crate) rate: Option<rate::Plan>,
}

/// CPU microseconds of the proxy's processes for each good answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Cost {
    /// In user space.
    pub(crate) user_us: f64,
    /// In the kernel.
    pub(crate) system_us: f64,
}

impl Cost {
    fn of(time: CpuTime, completed: u64) -> Self {
        let completed = completed as f64;
        Self {
            user_us: time.user_us as f64 / completed,
            system_us: time.system_us as f64 / completed,
        }
    }

    /// Both together.
    pub(crate) fn total_us(&self) -> f64 {
        self.user_us + self.system_us
    }
}

/// A measured stretch of load.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Measured<T> {
    /// What the load saw.
    pub(crate) load: T,
    /// What it cost.
    pub(crate) cpu: Cost,
}

/// The result of a turn.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Turn {
    /// The round, from 1.
    pub(crate) round: usize,
    /// At full speed, by wrk.
    pub(crate) closed: Measured<WrkResult>,
    /// At a constant rate, by this program.
    pub(crate) open: Option<Measured<RateResult>>,
    /// Connections that the backend accepted while the load ran, after the warm-up.
    pub(crate) upstream_connections: u64,
    /// File descriptors of the proxy after the warm-up.
    pub(crate) open_files_before: usize,
    /// File descriptors of the proxy after the load.
    pub(crate) open_files_after: usize,
    /// TIME_WAIT sockets of the whole network namespace after the warm-up.
    pub(crate) time_wait_before: u64,
    /// TIME_WAIT sockets of the whole network namespace after the load.
    pub(crate) time_wait_after: u64,
}

impl Turn {
    /// Everything that went wrong in both loads.
    pub(crate) fn errors(&self) -> u64 {
        let open = self
            .open
            .as_ref()
            .map_or(0, |open| open.load.errors + open.load.unsent);
        self.closed.load.errors() + open
    }
}

/// Plays one turn.
pub(crate) fn take(
    field: &Field,
    wrk: &Wrk,
    peer: &Peer,
    plan: Plan,
    round: usize,
) -> Result<Turn> {
    turn(field, wrk, peer, plan, round).with_context(|| format!("{}, round {round}", peer.name))
}

fn turn(field: &Field, wrk: &Wrk, peer: &Peer, plan: Plan, round: usize) -> Result<Turn> {
    let running = Running::start(peer, field, Wrapper::None)?;
    let address = running.address();
    let answer_length = checks::sample(address)?;
    if plan.warmup > 0 {
        wrk.run(address, plan.warmup, &field.interrupt)?;
    }

    let processes = running.processes()?;
    let accepted = field.backend.accepted()?;
    let open_files_before = processes.open_files()?;
    let time_wait_before = procfs::time_wait()?;

    let before = processes.cpu_time()?;
    let load = wrk.run(address, plan.seconds, &field.interrupt)?;
    let between = processes.cpu_time()?;
    ensure!(load.completed() > 0, "no good answer: {load:?}");
    ensure_length(&load, answer_length)?;
    let closed = Measured {
        cpu: Cost::of(between.since(before), load.completed()),
        load,
    };

    let open = match plan.rate {
        None => None,
        Some(plan) => {
            let before = processes.cpu_time()?;
            let load = rate::run(address, plan, &field.interrupt)?;
            let after = processes.cpu_time()?;
            Some(Measured {
                cpu: Cost::of(after.since(before), load.completed),
                load,
            })
        }
    };

    let turn = Turn {
        round,
        closed,
        open,
        upstream_connections: field.backend.accepted()?.saturating_sub(accepted),
        open_files_before,
        open_files_after: processes.open_files()?,
        time_wait_before,
        time_wait_after: procfs::time_wait()?,
    };
    checks::sample(address)?;
    running.stop(STOP_PATIENCE)?;
    Ok(turn)
}

/// wrk looks at no body, but it counts bytes. Answers of another status have another length, so
/// this can only be said of a run without errors.
pub(crate) fn ensure_length(load: &WrkResult, answer_length: usize) -> Result<()> {
    if load.errors() > 0 {
        return Ok(());
    }
    let mean = load.bytes as f64 / load.requests as f64;
    let expected = answer_length as f64;
    ensure!(
        (mean - expected).abs() <= expected * LENGTH_TOLERANCE,
        "answers of {mean:.0} bytes on average, the checked ones had {expected}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(requests: u64, bytes: u64) -> WrkResult {
        WrkResult {
            requests,
            duration_us: 1_000_000,
            bytes,
            connect: 0,
            read: 0,
            write: 0,
            status: 0,
            timeout: 0,
            p50_us: 1,
            p99_us: 1,
        }
    }

    #[test]
    fn cost_is_per_good_answer() {
        let cost = Cost::of(
            CpuTime {
                user_us: 600,
                system_us: 300,
            },
            30,
        );
        assert_eq!(
            (cost.user_us, cost.system_us, cost.total_us()),
            (20.0, 10.0, 30.0)
        );
    }

    #[test]
    fn answers_of_another_length_are_found() {
        assert!(ensure_length(&load(1000, 1_203_000), 1200).is_ok());
        assert!(ensure_length(&load(1000, 700_000), 1200).is_err());
        let mut faulty = load(1000, 700_000);
        faulty.status = 500;
        assert!(ensure_length(&faulty, 1200).is_ok());
    }
}
