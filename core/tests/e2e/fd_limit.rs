//! The soft limit of open files stalls accepting at 400 connections (pingap 73).

use crate::support::launch::serving;
use crate::support::load::{Until, load};
use crate::support::lock;
use crate::support::nginx::Nginx;
use crate::support::skip::not_run;
use crate::support::wait::SOON;

const CONNECTIONS: usize = 400;
const HARD: u64 = 20_000;

#[test]
fn the_soft_limit_is_raised_and_400_connections_pass() {
    let _turn = lock::turn();
    // The client's side of the connections is in this process.
    let (_, hard) = rlimit::Resource::NOFILE.get().unwrap();
    if hard < HARD {
        return not_run(
            "fd-limit",
            &format!("the hard limit of open files here is {hard}"),
        );
    }
    rlimit::increase_nofile_limit(hard).unwrap();
    let nginx = Nginx::start([127, 0, 0, 1].into(), "location / { return 200 \"ok\"; }");
    let mut proxy = serving(r#"route("/{*rest}").to("web");"#)
        .pool("web", nginx.address())
        .after_shell(&format!("ulimit -Hn {HARD} && ulimit -Sn 256"))
        .start();
    proxy
        .log
        .wait("open files: limit raised from 256 to 20000", SOON);
    assert_eq!(proxy.metric("open_files_limit", &[]), 20_000.0);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", proxy.pid())).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    assert_eq!(line.split_whitespace().nth(3), Some("20000"), "{line}");

    let report = load(proxy.address(), "/x", CONNECTIONS, Until::Requests(20_000));
    report.assert_all_ok();
    assert!(proxy.running());
    for text in ["Too many open files", "os error 24"] {
        assert_eq!(proxy.log.count(text), 0, "{:?}", proxy.log.matching(text));
    }
    assert_eq!(proxy.metric("upstream_connect_failures_total", &[]), 0.0);
}

#[test]
fn a_limit_that_needs_no_raising_is_logged() {
    let proxy = serving(r#"route("/").respond(200, "ok");"#)
        .after_shell("ulimit -n 4096")
        .start();
    proxy.log.wait("open files: limit 4096", SOON);
    assert_eq!(proxy.metric("open_files_limit", &[]), 4096.0);
}
