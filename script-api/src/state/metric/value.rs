//! What a series holds.

use std::ops::AddAssign;

/// Upper bounds of a histogram's buckets, those that Prometheus' libraries have: fit for seconds.
pub const BOUNDS: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// The value of a series at a scrape.
#[derive(Debug, Clone, PartialEq)]
pub enum SeriesValue {
    /// Of a counter or gauge.
    Number(f64),
    /// Of a histogram: (upper bound, observations up to it), all observations, their sum.
    Histogram {
        /// By rising bounds, without the infinite one.
        buckets: Vec<(f64, u64)>,
        /// All observations.
        count: u64,
        /// Their sum.
        sum: f64,
    },
}

/// What is done to a series.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    Add(f64),
    Set(f64),
    Observe(f64),
}

/// What one part of the state holds of a series.
#[derive(Debug, Clone)]
pub(super) enum Held {
    Number(f64),
    Histogram(Box<Observations>),
}

#[derive(Debug, Clone, Default)]
pub(super) struct Observations {
    /// Not cumulative; the last one is above all bounds.
    buckets: [u64; BOUNDS.len() + 1],
    sum: f64,
}

impl Held {
    /// A series that `change` is the first one to.
    pub(super) fn new(change: Change) -> Self {
        let mut held = match change {
            Change::Observe(_) => Self::Histogram(Box::default()),
            Change::Add(_) | Change::Set(_) => Self::Number(0.0),
        };
        held.apply(change);
        held
    }

    pub(super) fn apply(&mut self, change: Change) {
        match (self, change) {
            (Self::Number(number), Change::Add(amount)) => *number += amount,
            (Self::Number(number), Change::Set(value)) => *number = value,
            (Self::Histogram(seen), Change::Observe(value)) => {
                let bucket = BOUNDS.iter().position(|bound| value <= *bound);
                seen.buckets[bucket.unwrap_or(BOUNDS.len())] += 1;
                seen.sum += value;
            }
            // A metric has one kind, so a series does.
            _ => {}
        }
    }

    pub(super) fn value(&self) -> SeriesValue {
        match self {
            Self::Number(number) => SeriesValue::Number(*number),
            Self::Histogram(seen) => {
                let mut count = 0;
                let cumulative = BOUNDS.iter().zip(&seen.buckets).map(|(bound, bucket)| {
                    count += bucket;
                    (*bound, count)
                });
                let buckets = cumulative.collect();
                SeriesValue::Histogram {
                    buckets,
                    count: seen.buckets.iter().sum(),
                    sum: seen.sum,
                }
            }
        }
    }
}

/// Puts together what two parts hold of one series.
impl AddAssign<&Held> for Held {
    fn add_assign(&mut self, other: &Held) {
        match (self, other) {
            (Self::Number(number), Self::Number(other)) => *number += other,
            (Self::Histogram(seen), Self::Histogram(other)) => {
                for (bucket, other) in seen.buckets.iter_mut().zip(&other.buckets) {
                    *bucket += other;
                }
                seen.sum += other.sum;
            }
            _ => {}
        }
    }
}
