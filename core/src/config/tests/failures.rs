//! `timeouts`, `retries` and `limits` of pools.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use edgewright_script::program::{RetryCause, RetryOn};

use super::{errors, parse};
use crate::config::{PoolConfig, PoolLimits, Retries};

fn pool(text: &str) -> PoolConfig {
    let text = format!("[pools.web]\ntargets = [\"a:1\"]\n{text}");
    parse(&text).unwrap().pools.remove("web").unwrap()
}

#[test]
fn every_key_reaches_the_model() {
    let pool = pool(
        "[pools.web.timeouts]\nfirst_byte = \"2s\"\nrequest = \"30s\"\n\
         [pools.web.retries]\nattempts = 4\non = [\"reset\", \"503\"]\nbudget = 0.35\nmin_retries = 0\n\
         backoff = \"10ms\"\nmax_backoff = \"1s\"\n\
         [pools.web.limits]\nrequests = 100\nrequests_per_target = 20\nqueue = 50\nqueue_timeout = \"300ms\"\n",
    );
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!(pool.timeouts.first_byte, seconds(2));
    assert_eq!(pool.timeouts.request, seconds(30));
    let words = [RetryCause::Reset, RetryCause::Unavailable].map(RetryCause::name);
    let retries = Retries {
        attempts: 4,
        on: RetryOn::parse(words).unwrap(),
        budget: 350_000,
        min_retries: 0,
        backoff: Duration::from_millis(10),
        max_backoff: Duration::from_secs(1),
    };
    assert_eq!(pool.retries, retries);
    let limits = PoolLimits {
        requests: Some(100),
        requests_per_target: Some(20),
        queue: 50,
        queue_timeout: Duration::from_millis(300),
    };
    assert_eq!(pool.limits, limits);
}

#[test]
fn none_is_the_default() {
    let with = pool(
        "[pools.web.timeouts]\nfirst_byte = \"none\"\nrequest = \"none\"\n\
         [pools.web.limits]\nrequests = \"none\"\nrequests_per_target = \"none\"\n",
    );
    assert_eq!(with, pool(""));
    // A whole number is a share too.
    let all = pool("[pools.web.retries]\nbudget = 1\n").retries.budget;
    assert_eq!(all, 1_000_000);
}

#[test]
fn mistakes_are_named() {
    for (text, expected) in [
        (
            "retries]\non = [\"conect\"]",
            "is nothing to try again after (did you mean \"connect\"?)",
        ),
        (
            "retries]\non = [\"500\"]",
            "\"500\" is nothing to try again after",
        ),
        (
            "retries]\nbudget = 1.5",
            "`pools.web.retries.budget` must be between 0 and 1, not 1.5",
        ),
        ("retries]\nbudget = nan", "must be between 0 and 1, not NaN"),
        (
            "retries]\nattempts = 11",
            "`pools.web.retries.attempts` must be between 0 and 10, not 11",
        ),
        (
            "retries]\nbackoff = \"1s\"",
            "`pools.web.retries.max_backoff` must not be shorter than `pools.web.retries.backoff`",
        ),
        (
            "limits]\nqueue = 5",
            "nothing waits in `pools.web.limits.queue` without a bound (set `pools.web.limits.requests`",
        ),
        (
            "limits]\nrequests = 0",
            "`pools.web.limits.requests` must be between 1 and 1000000, not 0",
        ),
        (
            "limits]\nrequests = \"many\"",
            "\"many\" is no number, or \"none\"",
        ),
        (
            "timeouts]\nrequest = \"0s\"",
            "`pools.web.timeouts.request` must be between 1ms and 7days, not 0s",
        ),
        (
            "timeouts]\nfirst_byte = 5",
            "a time needs a unit: write \"5s\" or \"5ms\"",
        ),
    ] {
        let text = format!("[pools.web]\ntargets = [\"a:1\"]\n[pools.web.{text}\n");
        let found = errors(&text);
        assert!(found.contains(expected), "{text}: {found}");
    }
}
