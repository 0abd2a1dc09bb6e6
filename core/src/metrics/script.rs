//! What programs count themselves, with `metric(..)`.

use edgewright_script::state::metric::{MetricKind, MetricSample, SeriesValue};

use super::HistogramSample;
use super::family::{Families, Kind};

/// Before the names of the programs' metrics, so that none is called like one of the proxy's own.
const PREFIX: &str = "script_";

const HELP: &str = "Counted by the program.";

pub(super) fn describe(samples: &[MetricSample], families: &mut Families) {
    for sample in samples {
        let name = format!("{PREFIX}{}", sample.rule.name);
        let mut family = match sample.rule.kind {
            MetricKind::Counter => families.family(&name, HELP, Kind::Counter),
            MetricKind::Gauge => families.family(&name, HELP, Kind::Gauge),
            MetricKind::Histogram => families.histograms(&name, HELP),
        };
        for (values, value) in &sample.series {
            let labels = sample.rule.labels.iter().map(String::as_str);
            let labels: Vec<(&str, &str)> = labels.zip(values.iter().map(String::as_str)).collect();
            match value {
                SeriesValue::Number(number) => family.add(&labels, *number),
                SeriesValue::Histogram {
                    buckets,
                    count,
                    sum,
                } => {
                    let histogram = HistogramSample {
                        buckets: buckets.clone(),
                        count: *count,
                        sum: *sum,
                    };
                    family.add_histogram(&labels, &histogram);
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use edgewright_script::state::metric::MetricRule;

    use super::*;

    fn sample(name: &str, kind: MetricKind, value: SeriesValue) -> MetricSample {
        MetricSample {
            rule: MetricRule {
                name: name.to_owned(),
                kind,
                labels: vec!["plan".to_owned()],
            },
            series: vec![(vec!["a\"b".to_owned()], value)],
        }
    }

    #[test]
    fn metrics_of_programs_have_a_prefix_and_their_labels() {
        let histogram = SeriesValue::Histogram {
            buckets: vec![(0.5, 1)],
            count: 2,
            sum: 3.0,
        };
        let mut families = Families::default();
        describe(
            &[
                sample("logins", MetricKind::Counter, SeriesValue::Number(2.0)),
                sample("depth", MetricKind::Gauge, SeriesValue::Number(-1.5)),
                sample("took", MetricKind::Histogram, histogram),
            ],
            &mut families,
        );
        let text = String::from_utf8(families.finish()).unwrap();
        for line in [
            "# TYPE script_logins counter",
            "script_logins{plan=\"a\\\"b\"} 2",
            "script_depth{plan=\"a\\\"b\"} -1.5",
            "script_took_bucket{plan=\"a\\\"b\",le=\"0.5\"} 1",
            "script_took_bucket{plan=\"a\\\"b\",le=\"+Inf\"} 2",
            "script_took_sum{plan=\"a\\\"b\"} 3",
        ] {
            assert!(text.lines().any(|known| known == line), "{line}\n{text}");
        }
    }
}
