//! 502s at 400 connections: a pool smaller than the load closes and opens connections until the
//! ports run out. Upstream and proxy are in different network namespaces, so that the kernel does
//! not reuse ports as it does on loopback, and the proxy has 4,000 of them.

use std::time::{Duration, Instant};

use crate::support::launch::serving;
use crate::support::load::{Load, Until};
use crate::support::lock;
use crate::support::netns::{Namespace, connections_opened};
use crate::support::nginx::Nginx;
use crate::support::skip::{measured, not_run};

const CONNECTIONS: usize = 400;

/// The full length of the case with `EDGEWRIGHT_SOAK=1`, else a short form. In five seconds a pool
/// that churns opens thousands of connections.
fn length() -> Duration {
    let soak = std::env::var_os("EDGEWRIGHT_SOAK").is_some_and(|value| value == "1");
    Duration::from_secs(if soak { 30 } else { 5 })
}

#[test]
fn four_hundred_connections_do_not_churn() {
    let _turn = lock::turn();
    let namespace = match Namespace::create((20_000, 23_999)) {
        Ok(namespace) => namespace,
        Err(why) => return not_run("keepalive-churn", &why),
    };
    let (_, hard) = rlimit::Resource::NOFILE.get().unwrap();
    rlimit::increase_nofile_limit(hard).unwrap();
    let page = "x".repeat(1000);
    let nginx = Nginx::start(
        namespace.outside(),
        &format!("location / {{ return 200 \"{page}\"; }}"),
    );
    let proxy = serving(r#"route("/{*rest}").to("web");"#)
        .pool("web", nginx.address())
        .at(namespace.inside())
        .through(namespace.prefix())
        .start();

    let start = Instant::now();
    let load = Load::start(proxy.address(), "/x", CONNECTIONS, Until::Elapsed(length()));
    let mut opened = vec![connections_opened(proxy.pid())];
    for second in 1..=length().as_secs() {
        // The rate per second is what is measured, so the seconds are counted out.
        std::thread::sleep(Duration::from_secs(second).saturating_sub(start.elapsed()));
        opened.push(connections_opened(proxy.pid()));
    }
    let report = load.finish();
    let rates: Vec<u64> = opened.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let total = connections_opened(proxy.pid()) - opened[0];
    measured(
        "keepalive-churn",
        &format!(
            "{} requests, {total} upstream connections, per second {rates:?}",
            report.answered()
        ),
    );
    report.assert_all_ok();
    assert_eq!(proxy.metric("upstream_connect_failures_total", &[]), 0.0);
    // One for each that can be in flight at once. Now and then Pingora loses an idle connection that
    // two of its threads look at together; that is a few in 10,000 requests. Churn is thousands.
    let lost = 20 * length().as_secs();
    assert!(
        total <= CONNECTIONS as u64 + lost,
        "{total} upstream connections were opened: {rates:?}"
    );
    let warm = rates.len() / 2;
    let steady: u64 = rates[warm..].iter().sum();
    let seconds = (rates.len() - warm) as u64;
    assert!(
        steady <= 20 * seconds,
        "still {steady} new connections in the last {seconds} s: {rates:?}"
    );
    // Nothing went wrong, so nothing is reported as wrong.
    assert_eq!(proxy.log.matching(" ERROR "), Vec::<String>::new());
    // All of them were for requests: the proxy's own count agrees with the kernel's.
    let fresh = proxy.metric("upstream_connections_total", &[("reused", "false")]);
    assert!(
        fresh <= (total + 10) as f64,
        "{fresh} counted, {total} opened"
    );
}
