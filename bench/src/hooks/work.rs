//! What threads do side by side: the hooks, and two controls between which the hooks must lie.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;

use super::interpreted::{Hooked, Interpreted};
use super::job::{Hooks, Job};
use super::requests;

/// Parts of a call of the controls. After each, the counter of all threads gets one addition, if it has
/// to: so many, and so far apart, that it shows between two cores.
const PARTS: u32 = 16;
/// Rounds of arithmetic in a part; all together take about as long as a hook.
const SPINS: u32 = 25;

/// What a thread does again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Work {
    /// Arithmetic in registers: scales as far as there are free cores, whatever memory does.
    Spin,
    /// The same and additions to a counter of all threads: what must not be in a hook.
    SharedCounter,
    /// Both hooks of a request, auth and routing.
    Request,
    /// The routing hook, whose program reads no shared value in it.
    Routing,
    /// The auth hook, which reads a table.
    Auth,
    /// A gate that reads a set of networks.
    Networks,
    /// A gate that reads a pattern.
    Pattern,
}

impl Work {
    /// All of it, in the order of the report.
    pub(crate) const ALL: [Self; 7] = [
        Self::Spin,
        Self::SharedCounter,
        Self::Request,
        Self::Routing,
        Self::Auth,
        Self::Networks,
        Self::Pattern,
    ];

    /// What it is, for the report.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Spin => "control: registers only",
            Self::SharedCounter => "control: a shared counter",
            Self::Request => "auth and routing",
            Self::Routing => "routing (no shared value)",
            Self::Auth => "auth (`table`)",
            Self::Networks => "gate with `cidr`",
            Self::Pattern => "gate with `regex`",
        }
    }

    const fn jobs(self) -> &'static [Job] {
        match self {
            Self::Spin | Self::SharedCounter => &[],
            Self::Request => &[Job::Auth, Job::Routing],
            Self::Routing => &[Job::Routing],
            Self::Auth => &[Job::Auth],
            Self::Networks => &[Job::Networks],
            Self::Pattern => &[Job::Pattern],
        }
    }
}

/// What the threads have in common.
pub(super) struct Shared {
    work: Work,
    hooked: Option<Hooked>,
    counter: AtomicU64,
}

/// What one thread has for itself.
pub(super) enum Worker<'s> {
    Spin(Option<&'s AtomicU64>),
    Hooks(Box<Interpreted>, &'static [Job]),
}

impl Shared {
    /// Loads the program, once for all threads.
    pub(super) fn new(work: Work) -> Result<Self> {
        let job = work.jobs().first();
        Ok(Self {
            work,
            hooked: job.map(|job| Hooked::load(*job)).transpose()?,
            counter: AtomicU64::new(0),
        })
    }

    /// A worker for the thread that calls this: with an interpreter of its own, as in `edgewright`.
    pub(super) fn worker(&self) -> Result<Worker<'_>> {
        Ok(match &self.hooked {
            Some(hooked) => Worker::Hooks(
                Box::new(Interpreted::new(hooked.clone(), requests::measured())?),
                self.work.jobs(),
            ),
            None => Worker::Spin((self.work == Work::SharedCounter).then_some(&self.counter)),
        })
    }
}

impl Worker<'_> {
    /// Does the work so many times.
    pub(super) fn run(&mut self, calls: u64) -> Result<()> {
        match self {
            Worker::Spin(counter) => {
                for _ in 0..calls * u64::from(PARTS) {
                    spin();
                    if let Some(counter) = counter {
                        counter.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            Worker::Hooks(interpreted, jobs) => {
                for request in (0..requests::COUNT).cycle().take(calls as usize) {
                    for job in *jobs {
                        black_box(interpreted.call(*job, request)?);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Keeps as many execution units busy as it can, so that two threads on one core are seen: eight
/// chains that don't wait for each other.
fn spin() {
    let mut lanes: [u64; 8] = black_box([1, 2, 3, 4, 5, 6, 7, 8]);
    for _ in 0..SPINS {
        for lane in &mut lanes {
            *lane = lane.rotate_left(7) ^ lane.wrapping_add(0x9e37_79b9_7f4a_7c15);
        }
    }
    black_box(lanes);
}
