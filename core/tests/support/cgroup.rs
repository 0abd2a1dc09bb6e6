//! A cgroup with a CPU quota, version 1 or 2.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The scheduler's period: what Kubernetes uses.
const PERIOD_US: u64 = 100_000;

/// A cgroup of its own; it goes when dropped, after the processes in it.
pub struct CpuCgroup {
    path: PathBuf,
}

/// Scheduler periods, from `cpu.stat`.
#[derive(Clone, Copy, Debug)]
pub struct Periods {
    pub all: u64,
    pub throttled: u64,
}

impl CpuCgroup {
    /// Makes one with so many CPUs. An error says what the machine does not allow.
    pub fn create(cpus: f64) -> Result<Self, String> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!(
            "edgewright-e2e-{}-{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let quota = (cpus * PERIOD_US as f64).round() as u64;
        let parent = writable_parent()?;
        let path = parent.path.join(name);
        fs::create_dir(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let group = Self { path };
        if parent.version == 1 {
            group.write("cpu.cfs_period_us", &PERIOD_US.to_string())?;
            group.write("cpu.cfs_quota_us", &quota.to_string())?;
        } else {
            group.write("cpu.max", &format!("{quota} {PERIOD_US}"))?;
        }
        Ok(group)
    }

    /// The shell command that moves the shell into the cgroup.
    pub fn enter(&self) -> String {
        format!("echo $$ > {}/cgroup.procs", self.path.display())
    }

    pub fn periods(&self) -> Periods {
        let path = self.path.join("cpu.stat");
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
                .unwrap_or_else(|| panic!("{} has no {name}", path.display()))
        };
        Periods {
            all: field("nr_periods "),
            throttled: field("nr_throttled "),
        }
    }

    fn write(&self, file: &str, value: &str) -> Result<(), String> {
        let path = self.path.join(file);
        fs::write(&path, value).map_err(|e| format!("{}: {e}", path.display()))
    }
}

impl Drop for CpuCgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}

struct Parent {
    path: PathBuf,
    version: u8,
}

/// The cgroup to make ours in. Version 1 wins where the `cpu` controller is mounted so, as it does
/// for the kernel.
fn writable_parent() -> Result<Parent, String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|e| e.to_string())?;
    let mut unified = None;
    for line in mounts.lines() {
        // `.. mount-point options - type source super-options`
        let Some((left, right)) = line.split_once(" - ") else {
            continue;
        };
        let point = left.split(' ').nth(4).unwrap_or_default();
        let mut right = right.split(' ');
        let (kind, options) = (right.next().unwrap_or_default(), right.nth(1));
        let controllers = options.unwrap_or_default();
        if kind == "cgroup" && controllers.split(',').any(|option| option == "cpu") {
            return Ok(Parent {
                path: point.into(),
                version: 1,
            });
        }
        if kind == "cgroup2" {
            unified = Some(PathBuf::from(point));
        }
    }
    let path = unified.ok_or("no cgroup file system is mounted")?;
    enable_cpu(&path)?;
    Ok(Parent { path, version: 2 })
}

/// Children of a version 2 cgroup have `cpu.max` only when their parent hands the controller on.
fn enable_cpu(path: &Path) -> Result<(), String> {
    let control = path.join("cgroup.subtree_control");
    let current =
        fs::read_to_string(&control).map_err(|e| format!("{}: {e}", control.display()))?;
    if current.split_whitespace().any(|name| name == "cpu") {
        return Ok(());
    }
    fs::write(&control, "+cpu").map_err(|e| format!("{}: {e}", control.display()))
}
