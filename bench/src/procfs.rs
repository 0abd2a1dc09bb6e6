//! What the kernel counts about processes and sockets, from /proc.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::{Pid, SysconfVar, sysconf};

/// CPU time of one or more processes, in microseconds. The kernel counts in clock ticks (10 ms on
/// most machines), so an interval is exact to about one tick per process and kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    /// In user space.
    pub(crate) user_us: u64,
    /// In the kernel, on behalf of the process.
    pub(crate) system_us: u64,
}

impl CpuTime {
    /// The time since an earlier reading.
    pub(crate) fn since(self, earlier: CpuTime) -> CpuTime {
        CpuTime {
            user_us: self.user_us.saturating_sub(earlier.user_us),
            system_us: self.system_us.saturating_sub(earlier.system_us),
        }
    }
}

/// The fields of /proc/PID/stat that are used here (proc(5): fields 4, 14 and 15).
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    user_ticks: u64,
    system_ticks: u64,
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The name stands in parentheses and may itself contain spaces and parentheses.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let user_ticks = fields.nth(9)?.parse().ok()?;
    let system_ticks = fields.next()?.parse().ok()?;
    Some(Stat {
        parent,
        user_ticks,
        system_ticks,
    })
}

/// A process and all its living descendants.
pub(crate) struct ProcessTree(Vec<u32>);

impl ProcessTree {
    /// Finds the descendants of `root` as they are now.
    pub(crate) fn of(root: u32) -> Result<Self> {
        let parents: Vec<(u32, u32)> = fs::read_dir("/proc")
            .context("cannot read /proc")?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            // A process that ended meanwhile is no descendant any more.
            .filter_map(|id: u32| Some((id, read_stat(id).ok()?.parent)))
            .collect();
        let mut tree = vec![root];
        let mut next = 0;
        while let Some(parent) = tree.get(next).copied() {
            tree.extend(
                parents
                    .iter()
                    .filter(|(_, of)| *of == parent)
                    .map(|(id, _)| *id),
            );
            next += 1;
        }
        Ok(Self(tree))
    }

    /// The CPU time that all of them have used so far, ended threads included.
    pub(crate) fn cpu_time(&self) -> Result<CpuTime> {
        let ticks_per_second = sysconf(SysconfVar::CLK_TCK)
            .ok()
            .flatten()
            .and_then(|ticks| u64::try_from(ticks).ok())
            .filter(|ticks| *ticks > 0)
            .context("cannot read the clock tick")?;
        let mut sum = CpuTime::default();
        for id in &self.0 {
            let stat = read_stat(*id)?;
            sum.user_us += stat.user_ticks * 1_000_000 / ticks_per_second;
            sum.system_us += stat.system_ticks * 1_000_000 / ticks_per_second;
        }
        Ok(sum)
    }

    /// The same by the kernel's CPU clocks, which count nanoseconds: for short stretches. User space
    /// and kernel are not told apart.
    pub(crate) fn cpu_clock(&self) -> Result<Duration> {
        self.0.iter().try_fold(Duration::ZERO, |sum, id| {
            let id = i32::try_from(*id).context("a process id out of range")?;
            let time = clock_getcpuclockid(Pid::from_raw(id)).and_then(clock_gettime);
            let time =
                time.with_context(|| format!("cannot read the CPU clock of process {id}"))?;
            Ok(sum + Duration::from(time))
        })
    }

    /// How many file descriptors all of them have open.
    pub(crate) fn open_files(&self) -> Result<usize> {
        self.0.iter().try_fold(0, |sum, id| {
            let dir = format!("/proc/{id}/fd");
            Ok(sum
                + fs::read_dir(&dir)
                    .with_context(|| format!("cannot read {dir}"))?
                    .count())
        })
    }
}

fn read_stat(id: u32) -> Result<Stat> {
    let path = format!("/proc/{id}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    parse_stat(&text).with_context(|| format!("{path} has an unknown form"))
}

/// TCP sockets in TIME_WAIT in this network namespace.
pub(crate) fn time_wait() -> Result<u64> {
    let path = "/proc/net/sockstat";
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    parse_time_wait(&text).with_context(|| format!("{path} has an unknown form"))
}

fn parse_time_wait(text: &str) -> Option<u64> {
    let mut fields = text
        .lines()
        .find_map(|line| line.strip_prefix("TCP:"))?
        .split_whitespace();
    fields.find(|field| *field == "tw")?;
    fields.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_with_a_nasty_name() {
        let text = "4711 (a) (b c) S 12 4711 4711 0 -1 4194560 1 0 0 0 321 45 6 7 20 0 2 0 99 1 1";
        assert_eq!(
            parse_stat(text),
            Some(Stat {
                parent: 12,
                user_ticks: 321,
                system_ticks: 45
            })
        );
        assert_eq!(parse_stat("4711 (cut) S 12 4711"), None);
    }

    #[test]
    fn time_wait_is_found_by_name() {
        let text =
            "sockets: used 32\nTCP: inuse 1 orphan 0 tw 2205 alloc 1 mem 159\nUDP: inuse 0 mem 0\n";
        assert_eq!(parse_time_wait(text), Some(2205));
        assert_eq!(parse_time_wait("UDP: inuse 0\n"), None);
    }

    #[test]
    fn a_child_belongs_to_the_tree() {
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        let tree = ProcessTree::of(std::process::id()).unwrap();
        let found = tree.0.contains(&child.id()) && tree.0[0] == std::process::id();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found);
    }

    #[test]
    fn the_clock_counts_what_this_process_does() {
        let tree = ProcessTree(vec![std::process::id()]);
        let before = tree.cpu_clock().unwrap();
        while tree.cpu_clock().unwrap() < before + Duration::from_micros(50) {
            std::hint::spin_loop();
        }
        assert!(ProcessTree(vec![u32::MAX]).cpu_clock().is_err());
    }

    #[test]
    fn cpu_time_grows_by_the_difference() {
        let earlier = CpuTime {
            user_us: 10,
            system_us: 5,
        };
        let later = CpuTime {
            user_us: 30,
            system_us: 6,
        };
        assert_eq!(
            later.since(earlier),
            CpuTime {
                user_us: 20,
                system_us: 1
            }
        );
    }
}
