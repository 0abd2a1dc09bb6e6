use super::super::job::Job;
use super::super::threads::{Pair, Speed};
use super::*;

fn timed(job: Job, way: Way, cpu: &[f64]) -> Timed {
    let turns = cpu.iter().enumerate().map(|(index, &cpu_ns)| Turn {
        round: index + 1,
        cpu_ns,
        bytes: 160.0,
    });
    Timed {
        job,
        way,
        turns: turns.collect(),
    }
}

fn report() -> Report {
    let speed = |per_second| Speed {
        per_second,
        cpu_ns: 500.0,
    };
    let scaled = |work, many| Scaled {
        work,
        pairs: vec![Pair {
            round: 1,
            single: speed(1000.0),
            many: speed(many),
        }],
    };
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
            calls: 10,
            counted: 20,
            traced: 64,
            threads: 2,
        },
        timed: vec![
            timed(Job::Routing, Way::Native, &[10.0, 30.0]),
            // The second round was three times as slow for everyone.
            timed(Job::Routing, Way::Edgewright, &[1000.0, 3000.0]),
            timed(Job::Routing, Way::CallFn, &[2000.0, 6000.0]),
            timed(Job::Auth, Way::Edgewright, &[2600.0]),
        ],
        counted: vec![Counted {
            job: Job::Routing,
            way: Way::Edgewright,
            instructions: 8000.4,
            allocations: 4.0,
        }],
        scaled: vec![scaled(Work::Spin, 2000.0), scaled(Work::Auth, 1500.0)],
        sharing: vec![Sharing {
            work: Work::Auth,
            shared_lines: 1,
            writes: vec![Site {
                place: "clone (table.rs:12)".to_owned(),
                per_call: 1.0,
            }],
            atomics: None,
        }],
        end_to_end: None,
        warnings: vec!["a busy machine".to_owned()],
    }
}

#[test]
fn costs_are_compared_within_a_round_and_a_job() {
    let text = report().markdown();
    for line in [
        "| routing | edgewright | 2000 (1000..3000) | 100.00 | 0.50 | 8000 | 4.0 | 160 |",
        "| routing | native Rust | 20 (10..30) | 1.00 | 0.01 | – | – | 160 |",
        "| auth | edgewright | 2600 (2600..2600) | – | – | – | – | 160 |",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn a_hook_above_the_bound_is_named() {
    let text = report().markdown();
    assert!(text.contains("routing by edgewright: 2.00 µs of the 2.5 µs that a hook may cost\n"));
    assert!(
        text.contains(
            "auth by edgewright: 2.60 µs of the 2.5 µs that a hook may cost: **too much**"
        )
    );
}

#[test]
fn threads_stand_beside_the_control() {
    let text = report().markdown();
    let line = "| auth (`table`) | 1000 | 1500 | 1.50 (1.50..1.50) | 0.75 (0.75..0.75) | 500 | 1.00 (1.00..1.00) |";
    assert!(text.contains(line), "{text}");
}

#[test]
fn what_is_unknown_is_not_zero() {
    let mut report = report();
    let text = report.markdown();
    assert!(text.contains("| auth (`table`) | 1 | – |"), "{text}");
    assert!(
        text.contains("- auth (`table`), writes of shared lines: 1.0 × `clone (table.rs:12)`\n"),
        "{text}"
    );
    assert!(text.contains("**Warning**: a busy machine"), "{text}");
    report.sharing[0].atomics = Some(Vec::new());
    assert!(report.markdown().contains("| auth (`table`) | 1 | 0.0 |"));
    report.sharing.clear();
    report.scaled.clear();
    let text = report.markdown();
    assert!(
        !text.contains("threads") && !text.contains("share"),
        "{text}"
    );
}
