//! Medians, spreads and percentiles.

use serde::Serialize;

/// The middle of several measurements and how far they lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Spread {
    /// The middle one; of an even number, the mean of the middle two.
    pub(crate) median: f64,
    /// The smallest.
    pub(crate) min: f64,
    /// The largest.
    pub(crate) max: f64,
}

impl Spread {
    /// `None` without any value, or when one is not a number.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        if values.iter().any(|value| value.is_nan()) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let upper = *values.get(middle)?;
        let median = if values.len() % 2 == 1 {
            upper
        } else {
            (values[middle - 1] + upper) / 2.0
        };
        Some(Self {
            median,
            min: values[0],
            max: values[values.len() - 1],
        })
    }
}

/// The value that so many of 1000 ascending values don't exceed (nearest rank); `None` without any.
/// Whole numbers, because 99.9 % of 1000 is a little more than 999 in floating point.
pub(crate) fn percentile(sorted: &[u64], per_mille: usize) -> Option<u64> {
    let rank = (sorted.len() * per_mille.min(1000)).div_ceil(1000);
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even_counts() {
        let odd = Spread::of([3.0, 1.0, 10.0]).unwrap();
        assert_eq!(
            odd,
            Spread {
                median: 3.0,
                min: 1.0,
                max: 10.0
            }
        );
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 9.0]).unwrap().median, 3.0);
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([1.0, f64::NAN]), None);
    }

    #[test]
    fn percentiles_take_the_nearest_rank() {
        let values: Vec<u64> = (1..=200).collect();
        assert_eq!(percentile(&values, 500), Some(100));
        assert_eq!(percentile(&values, 990), Some(198));
        assert_eq!(percentile(&values, 1000), Some(200));
        assert_eq!(percentile(&[7], 10), Some(7));
        assert_eq!(percentile(&[], 500), None);
    }
}
