use super::*;

fn rule(kind: MetricKind, labels: &[&str]) -> MetricRule {
    MetricRule {
        name: "m".to_owned(),
        kind,
        labels: labels.iter().map(|&label| label.to_owned()).collect(),
    }
}

fn bound(store: &StateStore, rule: MetricRule) -> Metric {
    let metric = Metric::new(rule);
    metric.bind(store);
    metric
}

fn values(texts: &[&str]) -> LabelValues {
    let mut values = LabelValues::default();
    texts.iter().for_each(|text| values.push(text));
    values
}

fn numbers(store: &StateStore) -> Vec<(Vec<String>, f64)> {
    let samples = store.metric_samples();
    let [sample] = samples.as_slice() else {
        panic!("{samples:?}");
    };
    let series = sample.series.iter().map(|(labels, value)| match value {
        SeriesValue::Number(number) => (labels.clone(), *number),
        other => panic!("{other:?}"),
    });
    series.collect()
}

#[test]
fn counts_of_all_threads_add_up() {
    let store = StateStore::default();
    let metric = bound(&store, rule(MetricKind::Counter, &["plan"]));
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                for _ in 0..100 {
                    metric.add(&values(&["gold"]), 1.0).unwrap();
                }
                metric.add(&values(&[""]), 0.5).unwrap();
            });
        }
    });
    let counted = [
        (vec![String::new()], 10.0),
        (vec!["gold".to_owned()], 2000.0),
    ];
    assert_eq!(numbers(&store), counted);
}

#[test]
fn the_last_value_of_a_gauge_counts() {
    let store = StateStore::default();
    let metric = bound(&store, rule(MetricKind::Gauge, &[]));
    metric.set(&values(&[]), 3.0).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| metric.set(&values(&[]), 2.0).unwrap());
    });
    assert_eq!(numbers(&store), [(vec![], 2.0)]);
}

#[test]
fn a_histogram_has_cumulative_buckets() {
    let store = StateStore::default();
    let metric = bound(&store, rule(MetricKind::Histogram, &[]));
    for value in [0.005, 0.02, 3.0, 100.0] {
        metric.observe(&values(&[]), value).unwrap();
    }
    let sample = store.metric_samples().remove(0);
    let SeriesValue::Histogram {
        buckets,
        count,
        sum,
    } = &sample.series[0].1
    else {
        panic!("{sample:?}");
    };
    assert_eq!(buckets[0], (0.005, 1));
    assert_eq!(buckets[2], (0.025, 2));
    assert_eq!(buckets[10], (10.0, 3));
    assert_eq!((*count, *sum), (4, 103.025));
}

#[test]
fn what_there_is_no_room_for_is_counted_together() {
    let store = StateStore::default();
    let metric = bound(&store, rule(MetricKind::Counter, &["user", "plan"]));
    for user in 0..MOST_SERIES + 5 {
        for _ in 0..2 {
            metric
                .add(&values(&[&user.to_string(), "free"]), 1.0)
                .unwrap();
        }
    }
    let counted = numbers(&store);
    assert_eq!(counted.len(), MOST_SERIES + 1);
    let other = vec![OTHER.to_owned(), OTHER.to_owned()];
    assert!(counted.contains(&(other, 10.0)));
    assert_eq!(counted.iter().map(|(_, n)| n).sum::<f64>(), 2.0 * 1005.0);
    let state = store.samples();
    assert_eq!(
        (state[0].kind, state[0].keys, state[0].full),
        ("metric", MOST_SERIES, 10)
    );
}

#[test]
fn all_metrics_together_are_bounded_and_give_their_room_back() {
    let store = StateStore::default();
    let fill = |number: usize| {
        let mut rule = rule(MetricKind::Counter, &["user"]);
        rule.name = format!("m{number:02}");
        let metric = bound(&store, rule);
        for user in 0..MOST_SERIES {
            metric.add(&values(&[&user.to_string()]), 1.0).unwrap();
        }
        metric
    };
    let all: Vec<Metric> = (0..12).map(fill).collect();
    let series = |sample: &MetricSample| sample.series.len();
    let samples = store.metric_samples();
    assert_eq!(series(&samples[0]), MOST_SERIES);
    assert_eq!(
        series(&samples[11]),
        1,
        "there is no room but for the others"
    );
    drop(all);
    store.forget_unused();
    let _one = fill(0);
    assert_eq!(series(&store.metric_samples()[0]), MOST_SERIES);
}

#[test]
fn counts_go_on_under_a_name_of_the_same_kind_and_labels() {
    let store = StateStore::default();
    let old = bound(&store, rule(MetricKind::Counter, &["plan"]));
    old.add(&values(&["gold"]), 1.0).unwrap();
    let same = bound(&store, rule(MetricKind::Counter, &["plan"]));
    same.add(&values(&["gold"]), 1.0).unwrap();
    assert_eq!(numbers(&store)[0].1, 2.0);
    // With other labels it is another one, and the newest is shown.
    let other = bound(&store, rule(MetricKind::Counter, &["tier"]));
    other.add(&values(&["gold"]), 1.0).unwrap();
    assert_eq!(numbers(&store)[0].1, 1.0);
    drop((old, same, other));
    assert!(store.metric_samples().is_empty());
}

#[test]
fn values_are_cut_and_cannot_run_into_each_other() {
    let long = "é".repeat(100);
    let cut = values(&[&long]);
    assert_eq!(cut.0.len(), LONGEST_VALUE + 1);
    assert_ne!(values(&["a\u{1f}b", "c"]), values(&["a", "b\u{1f}c"]));
    assert_eq!(values(&["a\nb"]).0, "a_b\u{1f}");
}
