//! `metric(name, labels)`: what programs count and measure.
//!
//! Which metrics there are, of which kind and with which labels, is known when a program is loaded. At
//! request time only the values of labels are looked up, in a part of the state that this thread has to
//! itself, so workers never wait for each other; a scrape adds the parts up.

mod series;
mod value;

use std::{
    fmt,
    sync::{Arc, atomic::AtomicUsize},
};

pub use series::MetricSample;
pub use value::SeriesValue;

pub(super) use series::MetricState;

use super::{
    handle::{Handle, NotBound},
    store::{Identity, StateStore},
};
use value::Change;

/// The most metrics of one program.
pub const MOST_METRICS: usize = 100;

/// The most labels of one metric.
pub const MOST_LABELS: usize = 8;

/// The most series of one metric, and of all that the process has. What comes then is counted under labels
/// that all say [`OTHER`].
pub const MOST_SERIES: usize = 1000;
/// See [`MOST_SERIES`].
pub const MOST_SERIES_OF_ALL: usize = 10_000;

/// Bytes of a label's value; what is longer is cut.
pub const LONGEST_VALUE: usize = 128;

/// The value of all labels of the series that takes what there is no room for.
pub const OTHER: &str = "other";

/// What is done with a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// `.inc()`, `.add(n)`: it only grows.
    Counter,
    /// `.set(x)`: the last value that was set.
    Gauge,
    /// `.observe(x)`: how often values of which size were seen.
    Histogram,
}

impl MetricKind {
    /// The methods, and the kinds that they belong to.
    pub const METHODS: [(&'static str, Self); 4] = [
        ("inc", Self::Counter),
        ("add", Self::Counter),
        ("set", Self::Gauge),
        ("observe", Self::Histogram),
    ];

    /// For messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A metric as a program says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricRule {
    /// Without the prefix that it is exported with.
    pub name: String,
    /// What its methods say.
    pub kind: MetricKind,
    /// The names of its labels, in order.
    pub labels: Vec<String>,
}

/// What a program holds of a metric. Cloning shares it.
#[derive(Clone)]
pub struct Metric(Arc<Handle<MetricRule, MetricState>>);

impl Metric {
    /// A metric by this rule, not bound yet.
    pub fn new(rule: MetricRule) -> Self {
        Self(Arc::new(Handle::new(rule)))
    }

    /// What the program says of it.
    pub fn rule(&self) -> &MetricRule {
        self.0.rule()
    }

    /// Binds it to the metric of that name, kind and labels.
    pub(crate) fn bind(&self, store: &StateStore) {
        let rule = self.0.rule();
        let identity = Identity::Name(rule.name.clone());
        self.0.bind(|| {
            store.metrics().find(
                &identity,
                |state| state.rule == *rule,
                || MetricState::new(rule, store.series()),
            )
        });
    }

    /// Adds to a counter.
    ///
    /// # Errors
    /// When it is not bound.
    pub(crate) fn add(&self, values: &LabelValues, amount: f64) -> Result<(), NotBound> {
        self.change(values, Change::Add(amount))
    }

    /// Sets a gauge.
    ///
    /// # Errors
    /// When it is not bound.
    pub(crate) fn set(&self, values: &LabelValues, value: f64) -> Result<(), NotBound> {
        self.change(values, Change::Set(value))
    }

    /// Adds an observation to a histogram.
    ///
    /// # Errors
    /// When it is not bound.
    pub(crate) fn observe(&self, values: &LabelValues, value: f64) -> Result<(), NotBound> {
        self.change(values, Change::Observe(value))
    }

    fn change(&self, values: &LabelValues, change: Change) -> Result<(), NotBound> {
        let (_, state) = self.0.get()?;
        state.change(&values.0, change);
        Ok(())
    }
}

impl fmt::Debug for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.rule().fmt(f)
    }
}

/// The values of labels as one text, in the order of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelValues(String);

/// Stands behind each value; no value has it, because control characters are replaced.
const END: char = '\u{1f}';

impl LabelValues {
    /// Adds a value, cut to [`LONGEST_VALUE`]; control characters become `_`.
    pub(crate) fn push(&mut self, value: &str) {
        let start = self.0.len();
        for c in value.chars() {
            if self.0.len() - start + c.len_utf8() > LONGEST_VALUE {
                break;
            }
            self.0.push(if c.is_control() { '_' } else { c });
        }
        self.0.push(END);
    }

    fn others(labels: usize) -> Self {
        let mut values = Self::default();
        (0..labels).for_each(|_| values.push(OTHER));
        values
    }
}

/// Series that all metrics of a store have together.
pub(super) type SeriesCount = Arc<AtomicUsize>;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
