//! More workers than the CPU quota stall in the scheduler's throttling; fewer leave paid time
//! unused. The number of workers comes from the cgroup.

use std::time::Duration;

use crate::support::cgroup::CpuCgroup;
use crate::support::launch::serving;
use crate::support::load::{Until, load};
use crate::support::lock;
use crate::support::nginx::Nginx;
use crate::support::skip::{measured, not_run};
use crate::support::wait::SOON;

const ROUTES: &str = r#"route("/{*rest}").to("web");"#;

/// Says why quotas can't be tried on this machine.
fn obstacle() -> Option<String> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if cpus < 2 {
        return Some("this machine gives the tests fewer than two CPUs".to_owned());
    }
    CpuCgroup::create(1.0).err()
}

#[test]
fn threads_follow_the_quota() {
    let _turn = lock::turn();
    if let Some(why) = obstacle() {
        return not_run("quota", &why);
    }
    for (cpus, threads) in [(0.5, 1), (1.0, 1), (1.5, 2), (2.0, 2)] {
        let group = CpuCgroup::create(cpus).unwrap();
        let proxy = serving(ROUTES)
            .pool("web", "127.0.0.1:9")
            .after_shell(&group.enter())
            .start();
        let line = proxy.log.wait("cpu: affinity=", SOON);
        let expected = format!("quota={cpus:.2} threads={threads}");
        assert!(line.contains(&expected), "{line} instead of {expected}");
        assert_eq!(
            proxy.metric("threads", &[]),
            f64::from(threads),
            "{cpus} CPUs"
        );
        assert_eq!(proxy.status()["threads"], threads, "{cpus} CPUs");
        drop(proxy);
        drop(group);
    }
}

#[test]
fn a_number_in_the_settings_wins_over_the_quota() {
    let _turn = lock::turn();
    if let Some(why) = obstacle() {
        return not_run("quota with [server] threads", &why);
    }
    let group = CpuCgroup::create(0.5).unwrap();
    let proxy = serving(ROUTES)
        .pool("web", "127.0.0.1:9")
        .settings("[server]\nthreads = 3")
        .after_shell(&group.enter())
        .start();
    let line = proxy.log.wait("cpu: affinity=", SOON);
    assert!(line.contains("quota=0.50 threads=3"), "{line}");
    assert_eq!(proxy.metric("threads", &[]), 3.0);
}

/// With as many threads as CPUs in the quota the scheduler has next to nothing to throttle. What
/// is left comes from the few threads that are no workers (resolver, reload, allocator): a tenth
/// of the periods is allowed, where two workers on one CPU are throttled in nearly every one.
#[test]
fn one_thread_per_cpu_is_hardly_throttled_under_load() {
    let _turn = lock::turn();
    if let Some(why) = obstacle() {
        return not_run("quota under load", &why);
    }
    let nginx = Nginx::start([127, 0, 0, 1].into(), "location / { return 200 \"ok\"; }");
    let group = CpuCgroup::create(1.0).unwrap();
    let proxy = serving(ROUTES)
        .pool("web", nginx.address())
        .after_shell(&group.enter())
        .start();
    assert_eq!(proxy.metric("threads", &[]), 1.0);
    // The start (compiling, filling engines) is not what is asked about.
    load(proxy.address(), "/x", 32, Until::Requests(1_000)).assert_all_ok();
    let before = group.periods();
    let report = load(
        proxy.address(),
        "/x",
        32,
        Until::Elapsed(Duration::from_secs(5)),
    );
    let after = group.periods();
    report.assert_all_ok();
    let periods = after.all - before.all;
    let throttled = after.throttled - before.throttled;
    measured(
        "quota",
        &format!(
            "{throttled} of {periods} periods throttled, {} requests",
            report.answered()
        ),
    );
    assert!(periods > 0, "the proxy did not run in its cgroup");
    assert!(
        throttled * 10 <= periods,
        "{throttled} of {periods} periods throttled"
    );
}
