//! Which CPUs the proxy and the rest of the world run on.

use std::fs;

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
        let cpus = allowed()?;
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

/// The CPUs that this process may use, each as a set of its own: first one of each core, then the
/// other threads of the cores.
pub(crate) fn single_cpus() -> Result<Vec<CpuSet>> {
    let ordered = cores_first(&allowed()?, siblings);
    ordered.into_iter().map(|cpu| set(&[cpu])).collect()
}

/// How many cores the CPUs belong to that this process may use. A virtual machine may not know.
pub(crate) fn cores() -> Result<usize> {
    let mut firsts: Vec<_> = allowed()?
        .into_iter()
        .map(|cpu| siblings(cpu).first().copied().unwrap_or(cpu))
        .collect();
    firsts.sort_unstable();
    firsts.dedup();
    Ok(firsts.len())
}

fn cores_first(cpus: &[usize], siblings: impl Fn(usize) -> Vec<usize>) -> Vec<usize> {
    let mut taken: Vec<usize> = Vec::new();
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for &cpu in cpus {
        if taken.contains(&cpu) {
            rest.push(cpu);
        } else {
            first.push(cpu);
            taken.extend(siblings(cpu));
        }
    }
    first.append(&mut rest);
    first
}

/// The CPUs that share a core with this one, itself included; none when that isn't known.
fn siblings(cpu: usize) -> Vec<usize> {
    let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let text = fs::read_to_string(file).unwrap_or_default();
    parse_list(&text).unwrap_or_default()
}

/// A list of the kernel's, such as `0-1,8`.
fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        numbers.extend(first..=last);
    }
    Some(numbers)
}

fn allowed() -> Result<Vec<usize>> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).context("cannot read the CPU affinity")?;
    Ok((0..CpuSet::count())
        .filter(|cpu| allowed.is_set(*cpu).unwrap_or(false))
        .collect())
}

fn set(cpus: &[usize]) -> Result<CpuSet> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu).context("CPU number out of range")?;
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_core_comes_before_its_second_thread() {
        let siblings = |cpu: usize| vec![cpu / 2 * 2, cpu / 2 * 2 + 1];
        assert_eq!(cores_first(&[0, 1, 2, 3, 5], siblings), [0, 2, 5, 1, 3]);
        assert_eq!(cores_first(&[4, 7], |_| Vec::new()), [4, 7]);
    }

    #[test]
    fn lists_have_numbers_and_ranges() {
        assert_eq!(parse_list("0-2,8\n"), Some(vec![0, 1, 2, 8]));
        assert_eq!(parse_list("5\n"), Some(vec![5]));
        assert_eq!(parse_list(""), None);
    }
}
