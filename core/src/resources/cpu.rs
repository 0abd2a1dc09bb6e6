//! How many worker threads the CPU quota is good for.
//!
//! More runnable threads than quota stall all of them at the end of each scheduler period
//! (100·(1−q/N) ms of every 100 ms with N threads and quota q); fewer leave paid CPU unused.
//! `std::thread::available_parallelism` rounds a quota of 1.9 down to 1, so it is not used.

use std::fmt;
use std::path::{Path, PathBuf};

use super::cgroup::{self, Limit, Throttling};

/// Worker threads for `affinity` CPUs (those the process may run on) and a CPU quota.
///
/// The quota rounded half up, at least 1 and at most `affinity`: at most half a CPU stays
/// unused and at most half a thread is too many. Without a quota, `affinity`.
#[must_use]
pub fn threads(affinity: usize, quota: Option<f64>) -> usize {
    let affinity = affinity.max(1);
    match quota {
        // `as` saturates, so an absurdly large quota ends at the affinity.
        Some(quota) => ((quota + 0.5).floor() as usize).clamp(1, affinity),
        None => affinity,
    }
}

/// The CPU time that the process may use.
#[derive(Debug, Clone, PartialEq)]
pub struct Cpu {
    /// CPUs that the process may run on, at least 1.
    pub affinity: usize,
    limit: Option<Limit>,
}

impl Cpu {
    /// Asks the kernel. Opens files: call it at start and now and then, not per request.
    #[must_use]
    pub fn read() -> Self {
        Self::read_below(Path::new("/"), affinity())
    }

    /// As [`Cpu::read`], with `/proc` and `/sys` below `root`.
    fn read_below(root: &Path, affinity: usize) -> Self {
        Self {
            affinity: affinity.max(1),
            limit: cgroup::limit(root),
        }
    }

    /// One that no kernel has told of.
    #[cfg(test)]
    pub(super) fn with_quota(affinity: usize, quota: Option<f64>) -> Self {
        Self {
            affinity,
            limit: quota.map(Limit::of),
        }
    }

    /// CPUs that the smallest control group quota allows, such as 1.5; `None` without one.
    #[must_use]
    pub fn quota(&self) -> Option<f64> {
        self.limit.as_ref().map(|limit| limit.cpus)
    }

    /// The file that holds the quota.
    #[must_use]
    pub fn quota_source(&self) -> Option<&PathBuf> {
        self.limit.as_ref().map(|limit| &limit.source)
    }

    /// Worker threads for `threads = "auto"`; see [`threads`].
    #[must_use]
    pub fn threads(&self) -> usize {
        threads(self.affinity, self.quota())
    }

    /// How often the quota held the process back; `None` without a quota. Reads a file.
    #[must_use]
    pub fn throttling(&self) -> Option<Throttling> {
        self.limit.as_ref().and_then(Limit::throttling)
    }

    /// The line for the log: what was found and the thread count that was chosen.
    pub fn line(&self, threads: usize) -> impl fmt::Display {
        format!("cpu: {self} threads={threads}")
    }
}

/// `affinity=2 quota=1.50`, or `quota=none`.
impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "affinity={} ", self.affinity)?;
        match self.quota() {
            Some(quota) => write!(f, "quota={quota:.2}"),
            None => f.write_str("quota=none"),
        }
    }
}

/// CPUs in the affinity mask of the calling thread.
fn affinity() -> usize {
    #[cfg(target_os = "linux")]
    if let Ok(set) = rustix::thread::sched_getaffinity(None) {
        return set.count() as usize;
    }
    // More than the 1024 CPUs of a fixed-size mask (the standard library grows its own), or no
    // Linux and so no quota that it would round down.
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;

    #[test]
    fn threads_round_half_up_within_affinity() {
        for (affinity, quota, expected) in [
            (64, Some(0.1), 1),
            (64, Some(0.5), 1),
            (64, Some(1.0), 1),
            (64, Some(1.4), 1),
            (64, Some(1.49), 1),
            (64, Some(1.5), 2),
            (64, Some(1.9), 2),
            (64, Some(2.0), 2),
            (64, Some(2.5), 3),
            (64, Some(7.5), 8),
            (2, Some(7.5), 2),
            (2, Some(1e30), 2),
            (1, Some(2.0), 1),
            (0, Some(2.0), 1),
            (64, None, 64),
            (1, None, 1),
            (0, None, 1),
        ] {
            assert_eq!(
                threads(affinity, quota),
                expected,
                "affinity {affinity}, quota {quota:?}"
            );
        }
    }

    #[test]
    fn a_quota_makes_the_line_and_the_choice() {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("proc/self/cgroup", "0::/\n"),
            (
                "proc/self/mountinfo",
                "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            ),
            ("sys/fs/cgroup/cpu.max", "150000 100000\n"),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let cpu = Cpu::read_below(root.path(), 4);
        assert_eq!(cpu.threads(), 2);
        assert_eq!(
            cpu.line(cpu.threads()).to_string(),
            "cpu: affinity=4 quota=1.50 threads=2"
        );
        assert_eq!(
            cpu.quota_source(),
            Some(&root.path().join("sys/fs/cgroup/cpu.max"))
        );
        assert_eq!(cpu.throttling(), None, "no cpu.stat there");
    }

    #[test]
    fn without_a_quota_the_line_says_none() {
        let root = tempfile::tempdir().unwrap();
        let cpu = Cpu::read_below(root.path(), 4);
        assert_eq!(
            cpu.line(3).to_string(),
            "cpu: affinity=4 quota=none threads=3"
        );
        assert_eq!((cpu.threads(), cpu.quota_source()), (4, None));
    }

    #[test]
    fn this_machine_has_a_cpu() {
        assert!(Cpu::read().affinity >= 1);
    }
}
