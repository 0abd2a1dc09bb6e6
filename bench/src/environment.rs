//! Where a measurement was taken.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// Runnable tasks before the start from which on the machine counts as busy.
const BUSY: f64 = 0.5;

/// What has to be known to read the numbers; a field that can't be found out is "unknown".
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Environment {
    /// Seconds since the epoch.
    pub(crate) started_at: u64,
    /// Kernel release.
    pub(crate) kernel: String,
    /// Name of the CPU.
    pub(crate) cpu: String,
    /// CPUs that this process may use.
    pub(crate) cpus: usize,
    /// Runnable tasks, mean of the last minute, before the start.
    pub(crate) load_average: f64,
    /// What `nginx -v` says.
    pub(crate) nginx: String,
    /// What `wrk -v` says.
    pub(crate) wrk: String,
}

impl Environment {
    /// CPUs and kernel, for the head of a report.
    pub(crate) fn machine(&self) -> String {
        format!("{} × {}, Linux {}", self.cpus, self.cpu, self.kernel)
    }

    /// Looks around.
    pub(crate) fn capture(nginx: &Path, wrk: &Path) -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let known = |text: Option<&str>| text.unwrap_or("unknown").trim().to_owned();
        let cpuinfo = read("/proc/cpuinfo");
        let load = read("/proc/loadavg");
        Self {
            started_at: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |time| time.as_secs()),
            kernel: known(read("/proc/sys/kernel/osrelease").lines().next()),
            cpu: known(
                cpuinfo
                    .lines()
                    .find(|line| line.starts_with("model name"))
                    .and_then(|line| line.split_once(':'))
                    .map(|(_, name)| name),
            ),
            cpus: thread::available_parallelism().map_or(1, usize::from),
            load_average: load
                .split_whitespace()
                .next()
                .and_then(|value| value.parse().ok())
                .unwrap_or(0.0),
            nginx: first_line(nginx, "-v"),
            wrk: first_line(wrk, "-v"),
        }
    }

    /// What speaks against measuring here and now.
    pub(crate) fn busy(&self) -> Option<String> {
        (self.load_average > BUSY).then(|| {
            format!(
                "the machine was busy before the start (load average {:.2})",
                self.load_average
            )
        })
    }
}

/// What speaks against numbers of this program: it doesn't lie where release builds do.
pub(crate) fn other_profile(program: &Path) -> Option<String> {
    let folder = program.parent().and_then(|folder| folder.file_name());
    folder
        .is_none_or(|folder| folder != "release" && folder != "pgo")
        .then(|| format!("{} may be no release build", program.display()))
}

/// The first line that a program prints about itself. Exit codes differ, so they don't count.
pub(crate) fn first_line(program: &Path, argument: &str) -> String {
    Command::new(program)
        .arg(argument)
        .stdin(Stdio::null())
        .output()
        .ok()
        .and_then(|output| {
            let text = [output.stdout, output.stderr].concat();
            Some(
                String::from_utf8_lossy(&text)
                    .lines()
                    .next()?
                    .trim()
                    .to_owned(),
            )
        })
        .unwrap_or_else(|| "unknown".to_owned())
}

/// How often the CPU quota has held this cgroup up so far; `None` where no quota is counted.
pub(crate) fn throttled() -> Option<u64> {
    ["/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat"]
        .iter()
        .find_map(|path| parse_throttled(&fs::read_to_string(path).ok()?))
}

fn parse_throttled(text: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix("nr_throttled "))?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_folders_of_releases_are_trusted() {
        for trusted in ["/t/release/edgewright", "/t/pgo/edgewright"] {
            assert_eq!(other_profile(Path::new(trusted)), None);
        }
        assert!(other_profile(Path::new("/t/release-fast/edgewright")).is_some());
    }

    #[test]
    fn throttling_is_found_in_either_form() {
        let v2 = "usage_usec 1\nnr_periods 10\nnr_throttled 7\nthrottled_usec 12\n";
        assert_eq!(parse_throttled(v2), Some(7));
        assert_eq!(parse_throttled("usage_usec 1\nuser_usec 1\n"), None);
    }
}
