use std::collections::BTreeMap;

use super::*;
use crate::outage::turn::{PhaseResult, Reached};
use crate::outage::windows::Stretch;

/// 150 requests, of which so many failed, with this 99th percentile.
fn stretch(p99_ms: Option<u64>, errors: u64) -> Stretch {
    Stretch {
        requests: 150,
        errors,
        p50_us: Some(6000),
        p99_us: p99_ms.map(|value| value * 1000),
    }
}

/// A turn whose first windows after the kill have these 99th percentiles (`None`: errors); all else is
/// as before.
fn turn(round: usize, before_ms: u64, killed: &[Option<u64>]) -> Turn {
    let phases = Phase::ALL.map(|phase| {
        let mut windows = vec![stretch(Some(before_ms), 0); 12];
        if phase == Phase::Killed {
            for (window, p99_ms) in windows.iter_mut().zip(killed) {
                *window = stretch(*p99_ms, if p99_ms.is_none() { 3 } else { 0 });
            }
        }
        PhaseResult {
            phase,
            start_s: 0.0,
            whole: Stretch {
                errors: windows.iter().map(|window| window.errors).sum(),
                ..stretch(Some(before_ms), 0)
            },
            windows,
            reached: Reached {
                killed: 10,
                slowed: 20,
                other: 30,
            },
        }
    });
    let errors: u64 = phases.iter().map(|phase| phase.whole.errors).sum();
    let failures: BTreeMap<_, _> = (errors > 0)
        .then(|| ("status 502".to_owned(), errors))
        .into_iter()
        .collect();
    Turn {
        round,
        seconds: 30.0,
        phases: phases.into(),
        failures,
        warmup_errors: 0,
        checks: 90,
        latest_event_ms: 0.1,
    }
}

fn report(rows: Vec<(&'static str, Vec<Turn>)>) -> Report {
    let rows = rows
        .into_iter()
        .map(|(name, turns)| Row {
            name,
            what: "x",
            turns,
        })
        .collect();
    Report::new(
        Environment {
            started_at: 0,
            kernel: "6".to_owned(),
            cpu: "cpu".to_owned(),
            cpus: 2,
            load_average: 0.0,
            nginx: "nginx".to_owned(),
            wrk: "wrk".to_owned(),
        },
        "HAProxy 2".to_owned(),
        Settings {
            pace: Pace {
                rounds: 3,
                seconds: 30,
                rate: 300,
                threads: 1,
            },
            connections: 200,
            delay_ms: 5,
            slow_factor: 20,
        },
        rows,
        vec![Skipped {
            name: "haproxy",
            why: "no program".to_owned(),
        }],
        vec!["a busy machine".to_owned()],
    )
}

#[test]
fn one_limit_holds_for_all() {
    // The slow one's own 30 ms are not normal: the limit is twice the median of all six, 10 ms.
    let report = report(vec![
        ("quick", (1..=4).map(|round| turn(round, 10, &[])).collect()),
        (
            "sluggish",
            (1..=2).map(|round| turn(round, 30, &[])).collect(),
        ),
    ]);
    assert_eq!(report.normal_up_to_ms, Some(20.0));
    let after = |index: usize| report.summaries[index].events[0].normal_after_s.unwrap();
    assert_eq!(after(0).median, 0.0);
    assert!(after(1).median.is_infinite());
    assert!(report.markdown().contains("never (never..never); 12 of 12"));
}

#[test]
fn tables_tell_errors_times_and_shares() {
    let bad = [None, Some(90), Some(5)];
    let report = report(vec![(
        "nginx",
        vec![turn(1, 10, &bad), turn(2, 10, &[]), turn(3, 10, &bad)],
    )]);
    let text = report.markdown();
    for expected in [
        // 3 of 750 requests in two of three rounds, all of them after the kill.
        "| nginx | 2250 | 6 | 0.400 (0.000..0.400) | 6 | 0 | 0 | 0 | 6.0 (6.0..6.0) | 10.0 (10.0..10.0) | 3.0 (3.0..3.0) |",
        "| nginx | 1.0 (0.0..1.0); 0 of 12 | 0.0 (0.0..0.0); 0 of 12 |",
        "| contestant | 0.5 | 1.0 |",
        "| nginx | ∞ | 90.0 | 5.0 | 10.0 |",
        "| nginx | 10 / 20 / 30 |",
        "up to 20.0 ms",
        "- nginx failed: 6 × status 502",
        "- haproxy: not run, no program",
        "- **Warning**: a busy machine",
    ] {
        assert!(text.contains(expected), "no `{expected}` in\n{text}");
    }
    let table_lines = text.lines().filter(|line| line.starts_with('|'));
    let columns: Vec<_> = table_lines.map(|line| line.matches('|').count()).collect();
    // Header, line and row of each table have as many columns.
    for table in columns.chunks(3) {
        assert!(table.iter().all(|count| *count == table[0]), "{text}");
    }
}

#[test]
fn what_never_was_is_null_in_json() {
    let none = [None; 12];
    let report = report(vec![("nginx", vec![turn(1, 10, &none)])]);
    let json = serde_json::to_value(&report).unwrap();
    let event = &json["summaries"][0]["events"][0];
    assert_eq!(event["phase"], "killed");
    assert!(event["normal_after_s"]["median"].is_null());
    assert_eq!(event["errors"], 36);
    assert_eq!(json["summaries"][0]["failures"]["status 502"], 36);
    assert_eq!(
        json["rows"][0]["turns"][0]["phases"][2]["windows"][0]["p99_us"],
        10_000
    );
}
