//! Which CPUs the proxy and the rest of the world run on.

use anyhow::{Context, Result, ensure};
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

/// CPU sets for the proxy under test and for backend and load; `None` leaves it to the scheduler.
#[derive(Clone, Copy, Default)]
pub(crate) struct Placement {
    /// Where the proxy runs.
    pub(crate) proxy: Option<CpuSet>,
    /// Where backend and load run.
    pub(crate) others: Option<CpuSet>,
}

impl Placement {
    /// Gives the proxy the first `threads` CPUs that this process may use, everything else the rest.
    pub(crate) fn pinned(threads: usize) -> Result<Self> {
        let allowed =
            sched_getaffinity(Pid::from_raw(0)).context("cannot read the CPU affinity")?;
        let cpus: Vec<usize> = (0..CpuSet::count())
            .filter(|cpu| allowed.is_set(*cpu).unwrap_or(false))
            .collect();
        ensure!(
            cpus.len() > threads,
            "--pin needs more than {threads} CPUs, this process may use {}",
            cpus.len()
        );
        let (proxy, others) = cpus.split_at(threads);
        Ok(Self {
            proxy: Some(set(proxy)?),
            others: Some(set(others)?),
        })
    }
}

fn set(cpus: &[usize]) -> Result<CpuSet> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu).context("CPU number out of range")?;
    }
    Ok(set)
}
