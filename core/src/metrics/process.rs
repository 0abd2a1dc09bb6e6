//! The `process_*` metrics that every Prometheus client offers, from `/proc/self`.

use super::family::{Families, Kind};

/// What the kernel says about this process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProcessSample {
    /// User and system time, in seconds.
    pub cpu_seconds: f64,
    /// Resident memory, in bytes.
    pub resident_bytes: u64,
    /// Address space, in bytes.
    pub virtual_bytes: u64,
    /// Open file descriptors.
    pub open_fds: u64,
    /// The soft limit on them; `None` when there is none.
    pub max_fds: Option<u64>,
    /// All threads, not only workers.
    pub threads: u64,
    /// Seconds since the epoch.
    pub start_time: f64,
}

/// Reads the values; `None` where there is no `/proc`.
#[cfg(target_os = "linux")]
pub fn read() -> Option<ProcessSample> {
    use procfs::WithCurrentSystemInfo;
    use procfs::process::{LimitValue, Process};

    let process = Process::myself().ok()?;
    let stat = process.stat().ok()?;
    let ticks = procfs::ticks_per_second() as f64;
    let boot = procfs::boot_time_secs().ok()? as f64;
    let limits = process.limits().ok()?;
    Some(ProcessSample {
        cpu_seconds: (stat.utime + stat.stime) as f64 / ticks,
        resident_bytes: stat.rss_bytes().get(),
        virtual_bytes: stat.vsize,
        open_fds: process.fd_count().ok()? as u64,
        max_fds: match limits.max_open_files.soft_limit {
            LimitValue::Value(limit) => Some(limit),
            LimitValue::Unlimited => None,
        },
        threads: u64::try_from(stat.num_threads).unwrap_or(0),
        start_time: boot + stat.starttime as f64 / ticks,
    })
}

/// Reads the values; `None` where there is no `/proc`.
#[cfg(not(target_os = "linux"))]
pub fn read() -> Option<ProcessSample> {
    None
}

/// Adds the families of `sample`.
pub(super) fn describe(sample: &ProcessSample, families: &mut Families) {
    let mut one = |name, help, kind, value| {
        let mut family = families.family(name, help, kind);
        family.add(&[], value);
    };
    one(
        "process_cpu_seconds_total",
        "Total user and system CPU time spent in seconds.",
        Kind::Counter,
        sample.cpu_seconds,
    );
    one(
        "process_resident_memory_bytes",
        "Resident memory size in bytes.",
        Kind::Gauge,
        sample.resident_bytes as f64,
    );
    one(
        "process_virtual_memory_bytes",
        "Virtual memory size in bytes.",
        Kind::Gauge,
        sample.virtual_bytes as f64,
    );
    one(
        "process_open_fds",
        "Number of open file descriptors.",
        Kind::Gauge,
        sample.open_fds as f64,
    );
    if let Some(limit) = sample.max_fds {
        one(
            "process_max_fds",
            "Maximum number of open file descriptors.",
            Kind::Gauge,
            limit as f64,
        );
    }
    one(
        "process_threads",
        "Number of OS threads in the process.",
        Kind::Gauge,
        sample.threads as f64,
    );
    one(
        "process_start_time_seconds",
        "Start time of the process since unix epoch in seconds.",
        Kind::Gauge,
        sample.start_time,
    );
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn this_process_looks_like_a_process() {
        let sample = read().unwrap();
        assert!(sample.resident_bytes > 100 * 1024, "{sample:?}");
        assert!(sample.virtual_bytes > sample.resident_bytes, "{sample:?}");
        assert!(sample.threads >= 1, "{sample:?}");
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let age = now.unwrap().as_secs_f64() - sample.start_time;
        assert!((-2.0..86_400.0).contains(&age), "{sample:?}");
    }

    #[test]
    fn open_files_are_counted() {
        let held: Vec<_> = (0..100)
            .map(|_| std::fs::File::open("/proc/self/stat").unwrap())
            .collect();
        let sample = read().unwrap();
        assert!(sample.open_fds >= 100, "{sample:?}");
        assert!(sample.max_fds.is_none_or(|max| max >= sample.open_fds));
        drop(held);
    }
}
