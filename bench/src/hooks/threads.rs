//! Several workers at once: each on a CPU of its own, with an interpreter of its own for the same
//! program.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use serde::Serialize;

use super::cpu::{WARMUP, per_call, thread_cpu_time};
use super::work::{Shared, Work};
use crate::interrupt::Interrupt;
use crate::run::turn_order;
use crate::stats::Spread;

/// What all threads of one turn did together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Speed {
    /// Calls in a second of all threads, from the common start to the end of the last.
    pub(crate) per_second: f64,
    /// Nanoseconds of CPU time for each call: grows when threads wait for each other's cache lines,
    /// even where there are no free CPUs to see it in the throughput.
    pub(crate) cpu_ns: f64,
}

/// One thread and all threads, one after the other in the same round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Pair {
    /// The round, from 1.
    pub(crate) round: usize,
    /// One thread.
    pub(crate) single: Speed,
    /// All threads.
    pub(crate) many: Speed,
}

/// The turns of one kind of work.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Scaled {
    /// The work.
    pub(crate) work: Work,
    /// One a round.
    pub(crate) pairs: Vec<Pair>,
}

impl Scaled {
    /// How many times the calls of one thread all threads make in the same time.
    pub(crate) fn throughput(&self) -> Option<Spread> {
        self.spread(|pair| pair.many.per_second / pair.single.per_second)
    }

    /// How many times the CPU time of one thread's call a call takes when all threads run.
    pub(crate) fn cpu(&self) -> Option<Spread> {
        self.spread(|pair| pair.many.cpu_ns / pair.single.cpu_ns)
    }

    /// The throughput factor over that of `control` in the same round: what the machine didn't give
    /// to either falls out.
    pub(crate) fn against(&self, control: &Self) -> Option<Spread> {
        Spread::of(self.pairs.iter().filter_map(|pair| {
            let same_round = control
                .pairs
                .iter()
                .find(|other| other.round == pair.round)?;
            let factor = |pair: &Pair| pair.many.per_second / pair.single.per_second;
            Some(factor(pair) / factor(same_round))
        }))
    }

    fn spread(&self, value: impl Fn(&Pair) -> f64) -> Option<Spread> {
        Spread::of(self.pairs.iter().map(value))
    }
}

/// Measures every kind of work with one thread and with one on each of `cpus`, `rounds` times.
pub(super) fn scale(
    cpus: &[CpuSet],
    calls: u64,
    rounds: usize,
    interrupt: &Interrupt,
) -> Result<Vec<Scaled>> {
    let mut rows = Vec::new();
    let mut shared = Vec::new();
    for work in Work::ALL {
        let pairs = Vec::new();
        rows.push(Scaled { work, pairs });
        shared.push(Shared::new(work)?);
    }
    let single = cpus.get(..1).context("no CPU")?;
    for round in 1..=rounds {
        for position in 0..rows.len() {
            let index = turn_order(position, round, rows.len());
            let measure = |cpus| -> Result<Speed> {
                interrupt.check()?;
                together(&shared[index], cpus, calls)
                    .with_context(|| rows[index].work.name().to_owned())
            };
            let pair = Pair {
                round,
                single: measure(single)?,
                many: measure(cpus)?,
            };
            rows[index].pairs.push(pair);
        }
    }
    Ok(rows)
}

/// When a thread worked, and the CPU time it took.
struct Stretch {
    start: Instant,
    end: Instant,
    cpu: Duration,
}

/// Runs `calls` calls on each of `cpus` at once.
fn together(shared: &Shared, cpus: &[CpuSet], calls: u64) -> Result<Speed> {
    let start = Barrier::new(cpus.len());
    let stretches = thread::scope(|scope| {
        let threads: Vec<_> = cpus
            .iter()
            .map(|cpu| scope.spawn(|| stretch(shared, cpu, calls, &start)))
            .collect();
        let ended = threads.into_iter().map(|thread| match thread.join() {
            Ok(stretch) => stretch,
            Err(_) => bail!("a thread panicked"),
        });
        ended.collect::<Result<Vec<Stretch>>>()
    })?;
    speed(&stretches, calls)
}

fn stretch(shared: &Shared, cpu: &CpuSet, calls: u64, start: &Barrier) -> Result<Stretch> {
    let prepared = sched_setaffinity(Pid::from_raw(0), cpu)
        .context("cannot pin a thread")
        .and_then(|()| {
            let mut worker = shared.worker()?;
            worker.run(WARMUP)?;
            Ok(worker)
        });
    // Also after an error, because the others wait.
    start.wait();
    let mut worker = prepared?;
    let (start, cpu) = (Instant::now(), thread_cpu_time());
    worker.run(calls)?;
    Ok(Stretch {
        start,
        cpu: thread_cpu_time().saturating_sub(cpu),
        end: Instant::now(),
    })
}

fn speed(stretches: &[Stretch], calls: u64) -> Result<Speed> {
    let first = stretches.iter().map(|one| one.start).min();
    let last = stretches.iter().map(|one| one.end).max();
    let (Some(first), Some(last)) = (first, last) else {
        bail!("no thread");
    };
    let all = calls * stretches.len() as u64;
    let cpu: Duration = stretches.iter().map(|one| one.cpu).sum();
    Ok(Speed {
        per_second: all as f64 / last.duration_since(first).as_secs_f64().max(1e-9),
        cpu_ns: per_call(cpu.as_nanos() as f64, all),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speeds(per_second: f64, cpu_ns: f64) -> Speed {
        Speed { per_second, cpu_ns }
    }

    fn scaled(factors: &[(usize, f64)]) -> Scaled {
        let pairs = factors.iter().map(|&(round, factor)| Pair {
            round,
            single: speeds(100.0, 10.0),
            many: speeds(100.0 * factor, 10.0 / factor),
        });
        Scaled {
            work: Work::Spin,
            pairs: pairs.collect(),
        }
    }

    #[test]
    fn factors_are_compared_within_a_round() {
        // In the second round there was one core only, for both.
        let control = scaled(&[(1, 2.0), (2, 1.0)]);
        let own = scaled(&[(2, 0.9), (1, 1.8)]);
        let against = own.against(&control).unwrap();
        assert_eq!((against.min, against.median, against.max), (0.9, 0.9, 0.9));
        assert_eq!(own.throughput().unwrap().median, 1.35);
        assert!((own.cpu().unwrap().max - 1.0 / 0.9).abs() < 1e-9);
        assert_eq!(own.against(&scaled(&[])), None);
    }

    #[test]
    fn throughput_is_from_the_first_start_to_the_last_end() {
        let origin = Instant::now();
        let at = |ms| origin + Duration::from_millis(ms);
        let stretches = [(0, 400), (100, 500)].map(|(start, end)| Stretch {
            start: at(start),
            end: at(end),
            cpu: Duration::from_millis(300),
        });
        let speed = speed(&stretches, 1000).unwrap();
        assert!((speed.per_second - 4000.0).abs() < 1e-6);
        assert!((speed.cpu_ns - 300_000.0).abs() < 1e-6);
        assert!(super::speed(&[], 1000).is_err());
    }

    #[test]
    fn every_kind_of_work_runs_in_two_threads() {
        let cpus = crate::placement::single_cpus().unwrap();
        // Both on one CPU where there is only one: they still run.
        let two = [cpus[0], *cpus.last().unwrap()];
        for work in Work::ALL {
            let speed = together(&Shared::new(work).unwrap(), &two, 10).unwrap();
            assert!(speed.per_second > 0.0, "{work:?}");
        }
    }
}
