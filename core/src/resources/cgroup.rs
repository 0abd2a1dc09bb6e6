//! The CPU bandwidth and memory limits of a control group, version 1 and version 2.
//!
//! The files are those of the kernel's `Documentation/admin-guide/cgroup-v2.rst` (`cpu.max`,
//! `cpu.stat`, `memory.max`), `Documentation/scheduler/sched-bwc.rst` (`cpu.cfs_quota_us`,
//! `cpu.cfs_period_us`) and `Documentation/admin-guide/cgroup-v1/memory.rst`. A limit holds for everything below it, so all ancestors count. A limit
//! above the root of a private cgroup namespace, where a container normally lives, can't be seen
//! from inside by anyone.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use procfs_core::process::MountInfo;
use procfs_core::{FromBufRead, ProcessCGroup, ProcessCGroups};

/// Which interface a directory of the cgroup file system has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// The smallest CPU limit over a process's control groups, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// CPUs: quota over period, more than 0.
    pub cpus: f64,
    /// The file that says so.
    pub source: PathBuf,
    version: Version,
}

/// How often the limit made the process wait, counted by the kernel since the group was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Throttling {
    /// Quota periods (100 ms each by default) in which the group ran.
    pub periods: u64,
    /// Periods in which the quota was used up.
    pub throttled_periods: u64,
    /// Microseconds that the group's threads were held back, summed over CPUs.
    pub throttled_micros: u64,
}

/// The smallest limit over all groups of this process and their ancestors, read below `root`
/// (`/` but in tests). `None` without a limit.
///
/// A file that is there and can't be understood is logged and counts as no limit: a proxy that
/// starts with one thread per CPU is better than none.
#[must_use]
pub fn limit(root: &Path) -> Option<Limit> {
    groups(root, "cpu")
        .filter_map(|(version, directory)| read_limit(version, &directory))
        .min_by(|a, b| a.cpus.total_cmp(&b.cpus))
}

/// The smallest memory limit over all groups of this process and their ancestors, in bytes, read below `root` (`/` but in tests):
/// `memory.max` of version 2, `memory.limit_in_bytes` of version 1. `None` without a limit.
#[must_use]
pub fn memory_limit(root: &Path) -> Option<u64> {
    let limit = |(version, directory): (Version, PathBuf)| {
        let name = match version {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.max",
        };
        let text = read_logged(&directory.join(name))?;
        // Version 1 writes the largest number of pages where version 2 writes `max`.
        text.trim().parse().ok().filter(|&bytes| bytes < NO_LIMIT)
    };
    groups(root, "memory").filter_map(limit).min()
}

/// What no machine has, and version 1 says for no limit.
const NO_LIMIT: u64 = 1 << 60;

/// The directories of the groups in which a controller may limit the process, and of their ancestors.
fn groups(root: &Path, controller: &str) -> impl Iterator<Item = (Version, PathBuf)> {
    let found = || {
        let groups = read_logged(&root.join("proc/self/cgroup"))?;
        let groups = ProcessCGroups::from_buf_read(groups.as_bytes())
            .inspect_err(|error| tracing::warn!(%error, "the list of control groups is unreadable"))
            .ok()?;
        let mounts = read_logged(&root.join("proc/self/mountinfo"))?;
        let mounts: Vec<_> = mounts
            .lines()
            .filter_map(|line| MountInfo::from_line(line).ok())
            .collect();
        // In a hybrid set-up a controller is on one of the two hierarchies; the other has no
        // limit file, so looking at both needs no decision.
        let of_group = |group: ProcessCGroup| {
            let version = version(&group, controller)?;
            let directories = directories(root, version, controller, &group.pathname, &mounts);
            Some(
                directories
                    .into_iter()
                    .map(move |directory| (version, directory)),
            )
        };
        Some(
            groups
                .into_iter()
                .filter_map(of_group)
                .flatten()
                .collect::<Vec<_>>(),
        )
    };
    found().unwrap_or_default().into_iter()
}

impl Limit {
    /// One that stands nowhere.
    #[cfg(test)]
    pub(super) fn of(cpus: f64) -> Self {
        Self {
            cpus,
            source: PathBuf::from("/nowhere/cpu.max"),
            version: Version::V2,
        }
    }

    /// The counters beside this limit. Reads a file: not for the request path.
    ///
    /// `None` when the kernel does not count them.
    #[must_use]
    pub fn throttling(&self) -> Option<Throttling> {
        let stat = fs::read_to_string(self.source.parent()?.join("cpu.stat")).ok()?;
        let field = |name: &str| {
            stat.lines()
                .filter_map(|line| line.split_once(' '))
                .find(|(key, _)| *key == name)
                .and_then(|(_, value)| value.trim().parse::<u64>().ok())
        };
        Some(Throttling {
            periods: field("nr_periods")?,
            throttled_periods: field("nr_throttled")?,
            throttled_micros: match self.version {
                Version::V1 => field("throttled_time")? / 1000,
                Version::V2 => field("throttled_usec")?,
            },
        })
    }
}

/// By which interface a controller limits `group`, if its hierarchy can.
fn version(group: &ProcessCGroup, controller: &str) -> Option<Version> {
    if group.controllers.iter().any(|name| name == controller) {
        Some(Version::V1)
    } else if group.hierarchy == 0 && group.controllers.is_empty() {
        Some(Version::V2)
    } else {
        None
    }
}

/// The directories of the group `path` and of its ancestors, as far up as the mount shows them.
fn directories(
    root: &Path,
    version: Version,
    controller: &str,
    path: &str,
    mounts: &[MountInfo],
) -> Vec<PathBuf> {
    let of_hierarchy = || {
        mounts.iter().filter(|mount| match version {
            Version::V1 => {
                mount.fs_type == "cgroup" && mount.super_options.contains_key(controller)
            }
            Version::V2 => mount.fs_type == "cgroup2",
        })
    };
    // Only some part of the hierarchy may be mounted (a container without a cgroup namespace);
    // a path that the mount does not reach leaves the mount itself as the nearest ancestor.
    let found = of_hierarchy()
        .find_map(|mount| Some((mount, below(path, &mount.root)?)))
        .or_else(|| Some((of_hierarchy().next()?, PathBuf::new())));
    let Some((mount, inside)) = found else {
        return Vec::new();
    };
    let mount_point = mount.mount_point.strip_prefix("/");
    let top = root.join(mount_point.unwrap_or(&mount.mount_point));
    inside.ancestors().map(|part| top.join(part)).collect()
}

/// What is left of the group `path` below `mount_root`. `None` when it is not below, or when
/// one of the two leaves the cgroup namespace (`/..`, cgroup_namespaces(7)).
fn below(path: &str, mount_root: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let leaves = |path: &Path| path.components().any(|part| part == Component::ParentDir);
    if leaves(path) || leaves(Path::new(mount_root)) {
        return None;
    }
    path.strip_prefix(mount_root).ok().map(Path::to_path_buf)
}

/// The limit that stands in one directory.
fn read_limit(version: Version, directory: &Path) -> Option<Limit> {
    let (source, quota, period) = match version {
        Version::V2 => {
            let source = directory.join("cpu.max");
            let text = read_logged(&source)?;
            let (quota, period) = text.trim().split_once(' ')?;
            (source, quota.to_string(), period.to_string())
        }
        Version::V1 => {
            let source = directory.join("cpu.cfs_quota_us");
            let quota = read_logged(&source)?;
            let period = read_logged(&directory.join("cpu.cfs_period_us"))?;
            (source, quota, period)
        }
    };
    // No limit is `max` in version 2 and -1 in version 1.
    let quota = quota.trim();
    if quota == "max" || quota == "-1" {
        return None;
    }
    match (quota.parse::<u64>(), period.trim().parse::<u64>()) {
        (Ok(quota @ 1..), Ok(period @ 1..)) => Some(Limit {
            cpus: quota as f64 / period as f64,
            source,
            version,
        }),
        _ => {
            tracing::warn!(file = %source.display(), quota, period = period.trim(), "not a CPU limit");
            None
        }
    }
}

/// A file's text; `None` when it isn't there, and with a log line when it can't be read.
fn read_logged(path: &Path) -> Option<String> {
    match fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            tracing::warn!(file = %path.display(), %error, "can't read a control group's file");
            None
        }
    }
}

#[cfg(test)]
mod tests;
