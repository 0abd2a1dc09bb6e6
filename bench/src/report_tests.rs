use super::*;
use crate::turn::{Cost, Measured};
use crate::wrk::WrkResult;

pub(crate) fn turn(round: usize, user_us: f64, status_errors: u64) -> Turn {
    Turn {
        round,
        closed: Measured {
            load: WrkResult {
                requests: 100_000,
                duration_us: 5_000_000,
                bytes: 120_000_000,
                connect: 0,
                read: 0,
                write: 0,
                status: status_errors,
                timeout: 0,
                p50_us: 1500,
                p99_us: 4000,
            },
            cpu: Cost {
                user_us,
                system_us: 10.0,
            },
        },
        open: None,
        upstream_connections: 3,
        open_files_before: 20,
        open_files_after: 21,
        time_wait_before: 50,
        time_wait_after: 100,
    }
}

fn report(rows: Vec<Row>) -> Report {
    Report {
        environment: Environment {
            started_at: 0,
            kernel: "6".to_owned(),
            cpu: "cpu".to_owned(),
            cpus: 2,
            load_average: 0.0,
            nginx: "nginx".to_owned(),
            wrk: "wrk".to_owned(),
        },
        settings: Settings {
            rounds: 2,
            seconds: 5,
            warmup: 1,
            rate_seconds: 5,
            connections: 50,
            threads: 1,
            pool: 1000,
            pinned: false,
        },
        direct_per_second: 60_000.0,
        rate: None,
        rows,
        skipped: vec![Skipped {
            name: "nginx-lua",
            why: "no module".to_owned(),
        }],
        warnings: vec!["a busy machine".to_owned()],
    }
}

fn row(name: &'static str, turns: Vec<Turn>) -> Row {
    Row {
        name,
        what: "x",
        turns,
    }
}

#[test]
fn ratios_are_taken_within_a_round() {
    // Both are twice as slow in the second round: the ratio doesn't move.
    let report = report(vec![
        row(FLOOR, vec![turn(1, 10.0, 0), turn(2, 30.0, 0)]),
        row("edgewright", vec![turn(2, 50.0, 0), turn(1, 20.0, 0)]),
    ]);
    let ratio = report.ratio(&report.rows[1], closed_cost).unwrap();
    assert_eq!(
        ratio,
        Spread {
            median: 1.5,
            min: 1.5,
            max: 1.5
        }
    );
}

#[test]
fn tables_name_everyone_and_warn() {
    let report = report(vec![
        row(FLOOR, vec![turn(1, 10.0, 0)]),
        row("nginx", vec![turn(1, 2.0, 7)]),
    ]);
    let text = report.markdown();
    assert!(
        text.contains("| floor | 20.0 (20.0..20.0) | 10.0 | 10.0 | 1.000 (1.000..1.000) |"),
        "{text}"
    );
    assert!(text.contains("| 1.50 | 4.00 | 7 |"), "{text}");
    assert!(
        text.contains("| nginx | 3 | 20 → 21 | 50 → 100 |"),
        "{text}"
    );
    assert!(text.contains("- nginx-lua: not run, no module"), "{text}");
    assert!(
        text.contains("**Warning**: a busy machine") && !text.contains("open loop"),
        "{text}"
    );
}

#[test]
fn without_the_floor_there_is_no_ratio() {
    let report = report(vec![row("nginx", vec![turn(1, 2.0, 0)])]);
    assert_eq!(report.ratio(&report.rows[0], closed_cost), None);
    assert!(
        report
            .markdown()
            .contains("| nginx | 12.0 (12.0..12.0) | 2.0 | 10.0 | – |")
    );
}
