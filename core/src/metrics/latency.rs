//! Latency histograms with fixed buckets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets in seconds, 0.5 ms to 10 s; one more bucket holds the rest.
pub const BOUNDS: [f64; 14] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// The same bounds in nanoseconds.
const BOUNDS_NANOS: [u64; BOUNDS.len()] = [
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// A histogram of durations: 128 bytes, two cache lines.
#[derive(Debug)]
pub struct Latency {
    /// Nanoseconds; wraps after 584 years of added-up time.
    sum: AtomicU64,
    /// Not cumulative; the last one is above all bounds.
    buckets: [AtomicU64; BOUNDS.len() + 1],
}

impl Default for Latency {
    fn default() -> Self {
        Self {
            sum: AtomicU64::new(0),
            buckets: [const { AtomicU64::new(0) }; BOUNDS.len() + 1],
        }
    }
}

impl Latency {
    /// Adds one observation.
    #[inline]
    pub fn add(&self, duration: Duration) {
        let nanos = duration
            .as_secs()
            .saturating_mul(1_000_000_000)
            .saturating_add(u64::from(duration.subsec_nanos()));
        // Most answers are in the first buckets, which the scan from below meets first.
        let bucket = BOUNDS_NANOS
            .iter()
            .position(|bound| nanos <= *bound)
            .unwrap_or(BOUNDS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(nanos, Ordering::Relaxed);
    }
}

/// A histogram's values at one moment, in Prometheus' sense.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramSample {
    /// (upper bound in seconds, observations up to it): cumulative, by rising bounds, without the
    /// `+Inf` bucket, which is `count`.
    pub buckets: Vec<(f64, u64)>,
    /// All observations.
    pub count: u64,
    /// Their sum in seconds.
    pub sum: f64,
}

impl HistogramSample {
    /// The sum over all shards.
    pub fn of<'a>(shards: impl Iterator<Item = &'a Latency>) -> Self {
        let mut counts = [0u64; BOUNDS.len() + 1];
        let mut nanos = 0u64;
        for shard in shards {
            nanos = nanos.wrapping_add(shard.sum.load(Ordering::Relaxed));
            for (count, bucket) in counts.iter_mut().zip(&shard.buckets) {
                *count += bucket.load(Ordering::Relaxed);
            }
        }
        let mut count = 0;
        let mut buckets = Vec::with_capacity(BOUNDS.len());
        for (bound, own) in BOUNDS.iter().zip(counts) {
            count += own;
            buckets.push((*bound, count));
        }
        Self {
            buckets,
            count: count + counts[BOUNDS.len()],
            sum: nanos as f64 / 1e9,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_tables_of_bounds_say_the_same() {
        for (seconds, nanos) in BOUNDS.iter().zip(BOUNDS_NANOS) {
            assert_eq!((seconds * 1e9).round() as u64, nanos);
        }
        assert!(BOUNDS.is_sorted());
    }

    #[test]
    fn a_bound_belongs_to_its_own_bucket() {
        let latency = Latency::default();
        latency.add(Duration::from_micros(500));
        latency.add(Duration::from_nanos(500_001));
        latency.add(Duration::from_secs(10));
        latency.add(Duration::from_secs(11));
        let sample = HistogramSample::of(std::iter::once(&latency));
        let at = |bound| sample.buckets.iter().find(|(b, _)| *b == bound);
        assert_eq!(at(0.0005), Some(&(0.0005, 1)));
        assert_eq!(at(0.001), Some(&(0.001, 2)));
        assert_eq!(at(5.0), Some(&(5.0, 2)));
        assert_eq!(at(10.0), Some(&(10.0, 3)));
        assert_eq!(sample.count, 4);
        assert!((sample.sum - 21.001).abs() < 1e-5, "{}", sample.sum);
    }

    #[test]
    fn an_endless_duration_counts_as_the_slowest() {
        let latency = Latency::default();
        latency.add(Duration::MAX);
        let sample = HistogramSample::of(std::iter::once(&latency));
        assert_eq!(sample.buckets.last(), Some(&(10.0, 0)));
        assert_eq!(sample.count, 1);
    }
}
