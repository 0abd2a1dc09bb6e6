//! Building the text exposition format 0.0.4 with the `prometheus` crate's model and encoder, which
//! does the escaping.

use super::latency::HistogramSample;
use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType,
};
use prometheus::{Encoder, TextEncoder};

/// The `content-type` of the text that [`Metrics::render`](super::Metrics::render) gives.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whether a value can only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows until the process ends.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// The text under construction. Families are encoded one after the other, so that only one is held
/// as a model at a time.
#[derive(Debug, Default)]
pub struct Families {
    text: Vec<u8>,
}

impl Families {
    /// Starts a family of counters or gauges, which is written when it is dropped. Without samples
    /// nothing is written.
    pub fn family(&mut self, name: &str, help: &str, kind: Kind) -> Family<'_> {
        let field_type = match kind {
            Kind::Counter => MetricType::COUNTER,
            Kind::Gauge => MetricType::GAUGE,
        };
        self.start(name, help, field_type)
    }

    /// Starts a family of histograms; see [`family`](Self::family).
    pub fn histograms(&mut self, name: &str, help: &str) -> Family<'_> {
        self.start(name, help, MetricType::HISTOGRAM)
    }

    fn start(&mut self, name: &str, help: &str, field_type: MetricType) -> Family<'_> {
        let mut family = MetricFamily::default();
        family.set_name(name.to_owned());
        family.set_help(help.to_owned());
        family.set_field_type(field_type);
        Family {
            text: &mut self.text,
            family,
        }
    }

    /// The text.
    pub fn finish(self) -> Vec<u8> {
        self.text
    }
}

/// Label names and values of one sample.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// One family under construction.
#[derive(Debug)]
pub struct Family<'a> {
    text: &'a mut Vec<u8>,
    family: MetricFamily,
}

impl Family<'_> {
    /// Adds a counter or gauge.
    pub fn add(&mut self, labels: Labels<'_>, value: f64) {
        let mut metric = labelled(labels);
        if self.family.get_field_type() == MetricType::COUNTER {
            let mut counter = Counter::default();
            counter.set_value(value);
            metric.set_counter(counter);
        } else {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
        }
        self.family.mut_metric().push(metric);
    }

    /// Adds a histogram.
    pub fn add_histogram(&mut self, labels: Labels<'_>, sample: &HistogramSample) {
        let buckets = sample.buckets.iter().map(|(bound, count)| {
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(*bound);
            bucket.set_cumulative_count(*count);
            bucket
        });
        let mut histogram = Histogram::default();
        histogram.set_bucket(buckets.collect());
        histogram.set_sample_count(sample.count);
        histogram.set_sample_sum(sample.sum);
        let mut metric = labelled(labels);
        metric.set_histogram(histogram);
        self.family.mut_metric().push(metric);
    }
}

impl Drop for Family<'_> {
    fn drop(&mut self) {
        // The encoder refuses a family without samples.
        if self.family.get_metric().is_empty() {
            return;
        }
        let family = std::mem::take(&mut self.family);
        if let Err(error) = TextEncoder::new().encode(&[family], self.text) {
            tracing::error!("metrics: a family could not be written: {error}");
        }
    }
}

fn labelled(labels: Labels<'_>) -> Metric {
    let pairs = labels.iter().map(|(name, value)| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value((*value).to_owned());
        pair
    });
    Metric::from_label(pairs.collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        let mut families = Families::default();
        families
            .family("x_total", "Help.", Kind::Counter)
            .add(&[("route", "/a\"b\\c\nd{é}")], 3.0);
        let text = String::from_utf8(families.finish()).unwrap();
        assert_eq!(
            text,
            "# HELP x_total Help.\n# TYPE x_total counter\nx_total{route=\"/a\\\"b\\\\c\\nd{é}\"} 3\n"
        );
    }

    #[test]
    fn a_family_without_samples_is_not_written() {
        let mut families = Families::default();
        drop(families.family("x_total", "Help.", Kind::Counter));
        assert!(families.finish().is_empty());
    }

    #[test]
    fn a_histogram_ends_with_the_infinite_bucket() {
        let mut families = Families::default();
        let sample = HistogramSample {
            buckets: vec![(0.5, 2), (1.0, 5)],
            count: 9,
            sum: 12.5,
        };
        families.histograms("d", "D.").add_histogram(&[], &sample);
        let text = String::from_utf8(families.finish()).unwrap();
        assert_eq!(
            text,
            "# HELP d D.\n# TYPE d histogram\nd_bucket{le=\"0.5\"} 2\nd_bucket{le=\"1\"} 5\n\
             d_bucket{le=\"+Inf\"} 9\nd_sum 12.5\nd_count 9\n"
        );
    }
}
