//! The rules by themselves, with time as an argument.

use super::super::addresses::sift_outcome;
use super::super::family::Families;
use super::super::guard::Guard;
use super::super::known::{Event, Known, Timing};
use super::super::outcome::{Failure, LookupResult, Outcome};
use super::*;

fn timing() -> Timing {
    let seconds = Duration::from_secs;
    Timing {
        min_ttl: seconds(1),
        max_ttl: seconds(300),
        hold_empty: seconds(30),
        backoff_min: millis(500),
        backoff_max: seconds(30),
        backoff_max_unresolved: seconds(5),
        empty_recheck: seconds(5),
        empty_recheck_max: seconds(30),
        empty_confirm: seconds(1),
        new_server: seconds(5),
    }
}

fn found(list: &[&str], ttl: u64, candidate: usize) -> Outcome<IpAddr> {
    let outcome = Outcome::Records {
        records: ips(list),
        left_out: 0,
        ttl: Duration::from_secs(ttl),
        candidate,
    };
    sift_outcome(outcome, &Guard::default()).0
}

fn failed() -> Outcome<IpAddr> {
    Outcome::Failed(Failure {
        result: LookupResult::ServFail,
        detail: "SERVFAIL".to_owned(),
    })
}

fn nothing(negative_ttl: Option<u64>) -> Outcome<IpAddr> {
    Outcome::Empty {
        no_such_name: true,
        negative_ttl: negative_ttl.map(Duration::from_secs),
    }
}

#[test]
fn the_next_refresh_is_the_ttl_less_some_jitter() {
    let now = Instant::now();
    for (ttl, bound) in [(0, 1), (20, 20), (86_400, 300)] {
        let step = Known::new().apply(found(&["10.0.0.1"], ttl, 0), now, &timing(), false);
        let bound = Duration::from_secs(bound);
        assert!(
            step.next <= bound && step.next >= bound.mul_f64(0.9),
            "{step:?}"
        );
        assert_eq!(step.event, None);
    }
}

#[test]
fn failures_back_off_and_are_reported_once() {
    for (known, longest) in [(true, 30.0), (false, 5.0)] {
        let mut family = Known::new();
        let now = Instant::now();
        if known {
            family.apply(found(&["10.0.0.1"], 20, 0), now, &timing(), false);
        }
        let mut expected: f64 = 0.5;
        for n in 0..40 {
            let step = family.apply(failed(), now, &timing(), false);
            let next = step.next.as_secs_f64();
            assert!(next <= expected && next >= expected * 0.8, "{n}: {next}");
            assert_eq!(step.event.is_some(), n == 0);
            expected = (expected * 2.0).min(longest);
        }
        let step = family.apply(found(&["10.0.0.1"], 20, 0), now, &timing(), false);
        assert_eq!(step.event, Some(Event::Recovered));
    }
}

#[test]
fn the_hold_ends_on_time() {
    let mut family = Known::new();
    let start = Instant::now();
    family.apply(found(&["10.0.0.1"], 5, 0), start, &timing(), false);
    let mut now = start;
    let mut step = family.apply(nothing(Some(7)), now, &timing(), false);
    assert_eq!(step.event, Some(Event::Holding { no_such_name: true }));
    let mut answers = 1;
    while family.found_at().is_some() {
        now += step.next;
        step = family.apply(nothing(Some(7)), now, &timing(), false);
        answers += 1;
    }
    assert_eq!(now - start, Duration::from_secs(30));
    assert_eq!(answers, 6);
    assert_eq!(step.event, Some(Event::Emptied { no_such_name: true }));
    assert_eq!(step.next, Duration::from_secs(7));
}

#[test]
fn a_failure_in_between_starts_the_hold_anew() {
    let mut family = Known::new();
    let start = Instant::now();
    let later = |seconds| start + Duration::from_secs(seconds);
    family.apply(found(&["10.0.0.1"], 5, 0), start, &timing(), false);
    family.apply(nothing(None), later(0), &timing(), false);
    family.apply(failed(), later(20), &timing(), false);
    family.apply(nothing(None), later(40), &timing(), false);
    family.apply(nothing(None), later(60), &timing(), false);
    assert!(family.found_at().is_some());
    family.apply(nothing(None), later(70), &timing(), false);
    assert_eq!(family.found_at(), None);
}

#[test]
fn a_clock_that_jumps_breaks_nothing() {
    let now = Instant::now();
    let mut family = Known::new();
    family.apply(found(&["10.0.0.1"], 5, 0), now, &timing(), false);
    // Backwards, as a virtual machine may after it was moved: the hold is not over.
    family.apply(nothing(None), now, &timing(), false);
    let before = now.checked_sub(Duration::from_secs(5)).unwrap_or(now);
    let step = family.apply(nothing(None), before, &timing(), false);
    assert!(family.found_at().is_some());
    assert!(step.next <= Duration::from_secs(30), "{step:?}");
    // Days forward: two answers have been there, so it is.
    let after = now + Duration::from_secs(7 * 24 * 3600);
    let step = family.apply(nothing(None), after, &timing(), false);
    assert_eq!(family.found_at(), None);
    assert_eq!(step.next, Duration::from_secs(5));
}

#[test]
fn a_family_that_is_empty_beside_the_other_is_not_urgent() {
    let now = Instant::now();
    for (served, negative_ttl, expected) in [
        (false, Some(3600), 30),
        (false, None, 5),
        (true, Some(3600), 300),
        (true, Some(60), 60),
        (true, None, 30),
    ] {
        let mut family = Known::new();
        family.apply(nothing(negative_ttl), now, &timing(), served);
        let step = family.apply(nothing(negative_ttl), now, &timing(), served);
        assert_eq!(step.next, Duration::from_secs(expected));
    }
}

#[test]
fn one_answer_is_not_believed_even_after_the_hold() {
    let mut family = Known::new();
    let start = Instant::now();
    let hasty = Timing {
        hold_empty: Duration::ZERO,
        ..timing()
    };
    family.apply(found(&["10.0.0.1"], 5, 0), start, &hasty, false);
    family.apply(nothing(Some(600)), start, &hasty, false);
    assert!(family.found_at().is_some());
    family.apply(nothing(Some(600)), start, &hasty, false);
    assert_eq!(family.found_at(), None);
}

#[test]
fn the_earlier_candidate_wins() {
    let now = Instant::now();
    let mut families = Families::new();
    families
        .a
        .apply(found(&["10.0.0.1"], 5, 2), now, &timing(), false);
    families
        .aaaa
        .apply(found(&["fd00::1"], 5, 0), now, &timing(), false);
    assert_eq!(families.answer().addresses[..], ips(&["fd00::1"])[..]);
    families
        .a
        .apply(found(&["10.0.0.1"], 5, 0), now, &timing(), false);
    assert_eq!(
        families.answer().addresses[..],
        ips(&["10.0.0.1", "fd00::1"])[..]
    );
    families.aaaa.set_not_asked();
    assert_eq!(families.answer().addresses[..], ips(&["10.0.0.1"])[..]);
}

#[test]
fn an_answer_that_is_too_large_is_reported_once() {
    let now = Instant::now();
    let addresses: Vec<String> = (0..1030).map(|n| format!("fd00::{n:x}")).collect();
    let list: Vec<&str> = addresses.iter().map(|a| &a[..]).skip(1).collect();
    let mut family = Known::new();
    let step = family.apply(found(&list, 5, 0), now, &timing(), false);
    assert_eq!(step.event, Some(Event::Capped { left_out: 5 }));
    let step = family.apply(found(&list, 5, 0), now, &timing(), false);
    assert_eq!(step.event, None);
}
