#![allow(clippy::unwrap_used)]

use super::*;

const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
const V1: &str = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct";

/// A made-up machine: `/proc/self` and the files of its cgroup file systems.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new(cgroup: &str, mountinfo: &str) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        machine
            .file("proc/self/cgroup", cgroup)
            .file("proc/self/mountinfo", mountinfo)
    }

    fn file(self, path: &str, text: &str) -> Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn limit(&self) -> Option<Limit> {
        limit(self.0.path())
    }

    /// The limit and the file it comes from, relative to the machine's root.
    fn found(&self) -> Option<(f64, String)> {
        self.limit().map(|limit| {
            let source = limit.source.strip_prefix(self.0.path()).unwrap();
            (limit.cpus, source.display().to_string())
        })
    }
}

fn some(cpus: f64, source: &str) -> Option<(f64, String)> {
    Some((cpus, source.to_string()))
}

#[test]
fn v2_leaf() {
    let machine = Machine::new("0::/kubepods/pod1/web\n", V2)
        .file("sys/fs/cgroup/kubepods/cpu.max", "max 100000\n")
        .file("sys/fs/cgroup/kubepods/pod1/cpu.max", "max 100000\n")
        .file("sys/fs/cgroup/kubepods/pod1/web/cpu.max", "150000 100000\n");
    assert_eq!(
        machine.found(),
        some(1.5, "sys/fs/cgroup/kubepods/pod1/web/cpu.max")
    );
}

#[test]
fn v2_ancestor_is_smaller() {
    let machine = Machine::new("0::/pod1/web\n", V2)
        .file("sys/fs/cgroup/pod1/cpu.max", "50000 50000\n")
        .file("sys/fs/cgroup/pod1/web/cpu.max", "400000 100000\n");
    assert_eq!(machine.found(), some(1.0, "sys/fs/cgroup/pod1/cpu.max"));
}

#[test]
fn v2_private_namespace_shows_the_limit_at_its_root() {
    let machine = Machine::new("0::/\n", V2).file("sys/fs/cgroup/cpu.max", "250000 100000\n");
    assert_eq!(machine.found(), some(2.5, "sys/fs/cgroup/cpu.max"));
}

#[test]
fn v2_max_is_no_limit() {
    let machine = Machine::new("0::/\n", V2).file("sys/fs/cgroup/cpu.max", "max 100000\n");
    assert_eq!(machine.found(), None);
}

#[test]
fn v1_with_cpuacct_on_the_same_mount() {
    let machine = Machine::new("4:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n", V1)
        .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
        .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
        .file(
            "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us",
            "190000\n",
        )
        .file(
            "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us",
            "100000\n",
        );
    assert_eq!(
        machine.found(),
        some(1.9, "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us")
    );
}

#[test]
fn v1_container_sees_only_its_own_part() {
    let mount = "40 31 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu";
    let machine = Machine::new("4:cpu:/docker/abc\n", mount)
        .file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n")
        .file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_eq!(
        machine.found(),
        some(0.5, "sys/fs/cgroup/cpu/cpu.cfs_quota_us")
    );
}

#[test]
fn hybrid_uses_the_hierarchy_that_has_the_controller() {
    let mounts = format!(
        "{V1}\n41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
         42 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    );
    let machine = Machine::new("9:cpuset:/\n4:cpu,cpuacct:/web\n0::/web\n", &mounts)
        .file("sys/fs/cgroup/unified/web/cgroup.procs", "1\n")
        .file("sys/fs/cgroup/cpu,cpuacct/web/cpu.cfs_quota_us", "300000\n")
        .file(
            "sys/fs/cgroup/cpu,cpuacct/web/cpu.cfs_period_us",
            "100000\n",
        );
    assert_eq!(
        machine.found(),
        some(3.0, "sys/fs/cgroup/cpu,cpuacct/web/cpu.cfs_quota_us")
    );
}

#[test]
fn a_path_outside_the_namespace_falls_back_to_the_mount() {
    let machine = Machine::new("0::/../other\n", V2)
        .file("sys/fs/cgroup/cpu.max", "200000 100000\n")
        .file("sys/fs/other/cpu.max", "100000 100000\n");
    assert_eq!(machine.found(), some(2.0, "sys/fs/cgroup/cpu.max"));
}

#[test]
fn nothing_readable_is_no_limit() {
    let bare = tempfile::tempdir().unwrap();
    assert_eq!(limit(bare.path()), None);

    let nonsense = Machine::new("what is this\n", V2);
    assert_eq!(nonsense.found(), None);

    let no_number = Machine::new("0::/\n", V2).file("sys/fs/cgroup/cpu.max", "lots 0\n");
    assert_eq!(no_number.found(), None);

    // A folder in the file's place is unreadable for root too.
    let folder = Machine::new("0::/\n", V2).file("sys/fs/cgroup/cpu.max/x", "");
    assert_eq!(folder.found(), None);

    let no_mount = Machine::new("0::/\n", "22 1 8:1 / / rw - ext4 /dev/sda1 rw");
    assert_eq!(no_mount.found(), None);
}

#[test]
fn an_unreadable_leaf_does_not_hide_its_parent() {
    let machine = Machine::new("0::/pod1/web\n", V2)
        .file("sys/fs/cgroup/pod1/cpu.max", "100000 100000\n")
        .file("sys/fs/cgroup/pod1/web/cpu.max", "broken\n");
    assert_eq!(machine.found(), some(1.0, "sys/fs/cgroup/pod1/cpu.max"));
}

#[test]
fn throttling_is_read_beside_the_limit() {
    let v2 = Machine::new("0::/pod1/web\n", V2)
        .file("sys/fs/cgroup/pod1/cpu.max", "100000 100000\n")
        .file(
            "sys/fs/cgroup/pod1/cpu.stat",
            "usage_usec 5\nnr_periods 40\nnr_throttled 7\nthrottled_usec 1234\n",
        )
        .file("sys/fs/cgroup/pod1/web/cpu.max", "max 100000\n");
    let expected = Throttling {
        periods: 40,
        throttled_periods: 7,
        throttled_micros: 1234,
    };
    assert_eq!(v2.limit().unwrap().throttling(), Some(expected));

    let v1 = Machine::new("4:cpu,cpuacct:/\n", V1)
        .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "100000\n")
        .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
        .file(
            "sys/fs/cgroup/cpu,cpuacct/cpu.stat",
            "nr_periods 40\nnr_throttled 7\nthrottled_time 1234567\n",
        );
    assert_eq!(v1.limit().unwrap().throttling(), Some(expected));
}

#[test]
fn throttling_without_counters_is_none() {
    let machine = Machine::new("0::/\n", V2)
        .file("sys/fs/cgroup/cpu.max", "100000 100000\n")
        .file("sys/fs/cgroup/cpu.stat", "usage_usec 5\n");
    assert_eq!(machine.limit().unwrap().throttling(), None);
}

#[test]
fn the_smallest_memory_limit_counts() {
    let machine = Machine::new("0::/pod1/web\n", V2)
        .file("sys/fs/cgroup/pod1/memory.max", "536870912\n")
        .file("sys/fs/cgroup/pod1/web/memory.max", "268435456\n");
    assert_eq!(memory_limit(machine.0.path()), Some(256 << 20));
    let parent = Machine::new("0::/pod1/web\n", V2)
        .file("sys/fs/cgroup/pod1/memory.max", "1048576\n")
        .file("sys/fs/cgroup/pod1/web/memory.max", "max\n");
    assert_eq!(memory_limit(parent.0.path()), Some(1 << 20));
    let mount = "33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
    let old = |limit: &str| {
        Machine::new("5:memory:/web\n", mount)
            .file("sys/fs/cgroup/memory/web/memory.limit_in_bytes", limit)
            .file(
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            )
    };
    assert_eq!(memory_limit(old("1000000\n").0.path()), Some(1_000_000));
    assert_eq!(memory_limit(old("9223372036854771712\n").0.path()), None);
}
