//! What makes an endpoint stand badly, and well again.

use super::*;
use crate::config::{Initial, Probe};
use proptest::prelude::*;

const REFUSED: Outcome = Outcome::Failed(Fault::Refused);
const OK: Outcome = Outcome::Answered(200);
const BAD: Outcome = Outcome::Answered(503);

fn limits() -> Ejection {
    Ejection {
        consecutive_failures: 3,
        consecutive_5xx: 4,
        ..Ejection::default()
    }
}

fn check() -> HealthCheck {
    HealthCheck {
        probe: Probe::Tcp,
        interval: Duration::from_secs(5),
        timeout: Duration::from_secs(1),
        healthy: 2,
        unhealthy: 3,
        port: None,
        initial: Initial::Healthy,
    }
}

fn trips(outcomes: &[Outcome], limits: &Ejection) -> Vec<bool> {
    let standing = Standing::default();
    outcomes
        .iter()
        .map(|one| standing.note(*one, limits))
        .collect()
}

#[test]
fn a_run_trips_and_a_success_ends_it() {
    let limits = limits();
    assert_eq!(trips(&[REFUSED; 4], &limits), [false, false, true, false]);
    assert_eq!(
        trips(&[REFUSED, REFUSED, OK, REFUSED, REFUSED], &limits),
        [false; 5]
    );
    assert_eq!(trips(&[BAD; 4], &limits), [false, false, false, true]);
    // A failure doesn't end a run of 5xx; an answer ends one of failures, whatever its status.
    assert_eq!(
        trips(&[BAD, BAD, BAD, REFUSED, BAD], &limits),
        [false, false, false, false, true]
    );
    assert_eq!(
        trips(&[REFUSED, REFUSED, BAD, REFUSED], &limits),
        [false; 4]
    );
    assert_eq!(trips(&[Outcome::Answered(404); 20], &limits), [false; 20]);
}

#[test]
fn zero_switches_a_run_off() {
    let limits = Ejection {
        consecutive_failures: 0,
        consecutive_5xx: 0,
        ..limits()
    };
    assert_eq!(trips(&[REFUSED; 50], &limits), [false; 50]);
    assert_eq!(trips(&[BAD; 50], &limits), [false; 50]);
}

#[test]
fn what_tripped_is_told_once() {
    let standing = Standing::default();
    assert_eq!(standing.take_tripped(), None);
    for reason in EjectionReason::ALL {
        standing.trip(reason);
        assert_eq!(standing.take_tripped(), Some(reason));
        assert_eq!(standing.take_tripped(), None);
    }
}

#[test]
fn the_first_check_counts_alone_and_later_ones_in_runs() {
    let (check, standing, now) = (check(), Standing::default(), SystemTime::now());
    let say = |well: bool| {
        let result = if well { Ok(()) } else { Err("status 500") };
        standing.checked(result, &check, now)
    };
    assert_eq!(say(true), Some(true));
    assert_eq!([say(false), say(false), say(true)], [None; 3]);
    assert_eq!(
        [say(false), say(false), say(false)],
        [None, None, Some(false)]
    );
    assert_eq!([say(true), say(false), say(true)], [None; 3]);
    assert_eq!(say(true), Some(true));

    let unwell = Standing::default();
    assert_eq!(unwell.checked(Err("a\r\nb"), &check, now), Some(false));
    let told = unwell.told();
    assert_eq!(told.healthy, Some(false));
    assert_eq!(told.since, Some(now));
    assert_eq!(told.last_failure.as_deref(), Some("check: a  b"));
}

#[test]
fn a_reason_is_bounded() {
    let standing = Standing::default();
    let _ = standing.checked(Err(&"é".repeat(5000)), &check(), SystemTime::now());
    let shown = standing.told().last_failure.unwrap_or_default();
    assert_eq!(shown.chars().count(), MOST_CHARACTERS + "check: ".len());
}

#[test]
fn ejections_grow_and_are_forgiven() {
    let limits = Ejection {
        base_time: Duration::from_secs(10),
        max_time: Duration::from_secs(35),
        ..limits()
    };
    let standing = Standing::default();
    let mut now = Instant::now();
    for seconds in [10, 20, 30, 35, 35, 35] {
        let time = standing.eject(EjectionReason::Failures, &limits, now);
        assert_eq!(time, Duration::from_secs(seconds));
        now += time;
        standing.readmit(now);
    }
    // Four count; two are forgiven in 29 s, and this is one more.
    now += Duration::from_secs(29);
    let time = standing.eject(EjectionReason::Failures, &limits, now);
    assert_eq!(time, Duration::from_secs(30));
    now += time;
    standing.readmit(now);
    now += Duration::from_secs(3600);
    let time = standing.eject(EjectionReason::Failures, &limits, now);
    assert_eq!(time, Duration::from_secs(10));
}

#[test]
fn the_last_failure_in_use_is_told() {
    let standing = Standing::default();
    assert_eq!(standing.told(), Told::default());
    standing.note(BAD, &limits());
    assert_eq!(standing.told().last_failure.as_deref(), Some("status 503"));
    for fault in Fault::ALL {
        standing.note(Outcome::Failed(fault), &limits());
        assert_eq!(standing.told().last_failure.as_deref(), Some(fault.text()));
    }
}

proptest! {
    #[test]
    fn an_ejection_lasts_no_longer_than_the_longest(
        ejections in 0u32.., good in proptest::option::of(0u64..10_000_000), base in 1u64..100_000, more in 0u64..1_000_000
    ) {
        let limits = Ejection {
            base_time: Duration::from_millis(base),
            max_time: Duration::from_millis(base + more),
            ..Ejection::default()
        };
        let (counted, time) = ejection_time(ejections, good.map(Duration::from_millis), &limits);
        prop_assert!(counted >= 1);
        prop_assert!(time >= limits.base_time && time <= limits.max_time);
    }
}
