//! Says so when the CPU quota holds the process back, and when the quota is another one than at the start.
//!
//! Throttling is what makes a p99 of 100 ms out of nothing else (`kernel/Documentation/scheduler/sched-bwc.rst`), and
//! nothing in the process sees it but the control group's counters. A quota that is changed in a running pod (Kubernetes
//! 1.33 resizes in place) is noticed by nobody: the number of workers is that of the start.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;

use super::cgroup::Throttling;
use super::cpu::Cpu;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_secs(60);

/// From this share of the periods on there is a warning; some throttling belongs to a quota that is used.
const NOTICEABLE: f64 = 0.1;

/// Below this share it is over.
const OVER: f64 = 0.05;

/// Fewer periods than this, which is a second of work, say nothing.
const FEW: u64 = 10;

/// Looks on while it lives.
#[derive(Debug)]
pub struct Watch {
    _end: mpsc::Sender<()>,
}

/// Looks once a minute from now on, on a thread of its own, what has become of `cpu`, on which `threads` workers run.
///
/// # Errors
/// When the thread can't be started.
pub fn watch(cpu: Cpu, threads: usize) -> anyhow::Result<Watch> {
    let (end, ended) = mpsc::channel();
    let mut seen = Seen::new(cpu, threads);
    thread::Builder::new()
        .name("cpu".to_owned())
        .spawn(move || {
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let cpu = Cpu::read();
                let throttling = cpu.throttling();
                for news in seen.look(cpu, throttling) {
                    match news {
                        News::Bad(text) => tracing::warn!("{text}"),
                        News::Good(text) => tracing::info!("{text}"),
                    }
                }
            }
        })
        .context("can't start the thread that looks at the CPU quota")?;
    Ok(Watch { _end: end })
}

#[derive(Debug, PartialEq, Eq)]
enum News {
    Bad(String),
    Good(String),
}

/// What was seen last.
struct Seen {
    cpu: Cpu,
    threads: usize,
    throttling: Option<Throttling>,
    held_back: bool,
}

impl Seen {
    fn new(cpu: Cpu, threads: usize) -> Self {
        Self {
            throttling: cpu.throttling(),
            cpu,
            threads,
            held_back: false,
        }
    }

    /// What is new since the last look.
    fn look(&mut self, cpu: Cpu, throttling: Option<Throttling>) -> Vec<News> {
        let mut news = Vec::new();
        if cpu.quota() != self.cpu.quota() || cpu.affinity != self.cpu.affinity {
            let (threads, would) = (self.threads, cpu.threads());
            news.push(News::Bad(format!(
                "cpu: {cpu} now, {} before: threads={threads} until the next start, where \"auto\" is {would}",
                self.cpu
            )));
        } else if let (Some(before), Some(now)) = (self.throttling, throttling) {
            news.extend(self.throttled(before, now));
        }
        self.cpu = cpu;
        self.throttling = throttling;
        news
    }

    fn throttled(&mut self, before: Throttling, now: Throttling) -> Option<News> {
        // Counters that go back are those of another group.
        let periods = now.periods.checked_sub(before.periods)?;
        let throttled = now
            .throttled_periods
            .checked_sub(before.throttled_periods)?;
        let micros = now.throttled_micros.checked_sub(before.throttled_micros)?;
        if periods < FEW {
            return None;
        }
        let share = throttled as f64 / periods as f64;
        if !self.held_back && share >= NOTICEABLE {
            self.held_back = true;
            return Some(News::Bad(format!(
                "cpu: throttled in {throttled} of the last {periods} periods of the quota, {:.1} s in all: \
                 requests wait for CPU time. {}, threads={}",
                micros as f64 / 1e6,
                self.cpu,
                self.threads
            )));
        }
        if self.held_back && share < OVER {
            self.held_back = false;
            return Some(News::Good("cpu: no longer throttled".to_owned()));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(periods: u64, throttled_periods: u64) -> Option<Throttling> {
        Some(Throttling {
            periods,
            throttled_periods,
            throttled_micros: throttled_periods * 50_000,
        })
    }

    fn seen(throttling: Option<Throttling>) -> Seen {
        let mut seen = Seen::new(Cpu::with_quota(4, Some(2.0)), 2);
        seen.throttling = throttling;
        seen
    }

    #[test]
    fn throttling_is_told_when_it_begins_and_when_it_is_over() {
        let cpu = || Cpu::with_quota(4, Some(2.0));
        let mut seen = seen(counters(0, 0));
        // A few periods, and some throttling, are nothing.
        assert_eq!(seen.look(cpu(), counters(9, 9)), []);
        assert_eq!(seen.look(cpu(), counters(609, 50)), []);
        let told = seen.look(cpu(), counters(1209, 350));
        let expected = "cpu: throttled in 300 of the last 600 periods of the quota, 15.0 s in all: \
                        requests wait for CPU time. affinity=4 quota=2.00, threads=2";
        assert_eq!(told, [News::Bad(expected.to_owned())]);
        // Once, while it lasts.
        assert_eq!(seen.look(cpu(), counters(1809, 700)), []);
        assert_eq!(seen.look(cpu(), counters(2409, 745)), []);
        let told = seen.look(cpu(), counters(3009, 745));
        assert_eq!(told, [News::Good("cpu: no longer throttled".to_owned())]);
        assert_eq!(seen.look(cpu(), counters(3609, 1345)).len(), 1, "again");
    }

    #[test]
    fn another_quota_is_told_once() {
        let mut seen = seen(counters(0, 0));
        let resized = || Cpu::with_quota(4, Some(3.5));
        // Counters start anew in another group.
        let told = seen.look(resized(), counters(0, 0));
        let expected = "cpu: affinity=4 quota=3.50 now, affinity=4 quota=2.00 before: threads=2 until the \
                        next start, where \"auto\" is 4";
        assert_eq!(told, [News::Bad(expected.to_owned())]);
        assert_eq!(seen.look(resized(), counters(600, 0)), []);
        assert_eq!(seen.look(Cpu::with_quota(4, None), None).len(), 1);
    }

    #[test]
    fn counters_that_go_back_are_no_news() {
        let mut seen = seen(counters(1000, 900));
        let cpu = Cpu::with_quota(4, Some(2.0));
        assert_eq!(seen.look(cpu, counters(100, 90)), []);
    }
}
