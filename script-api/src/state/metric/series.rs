//! The series of one metric.

use std::{
    cell::Cell,
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use ahash::RandomState;
use hashbrown::{HashMap, HashSet};

use super::{
    END, LabelValues, MOST_SERIES, MOST_SERIES_OF_ALL, MetricKind, MetricRule, SeriesCount,
    SeriesValue,
    value::{Change, Held},
};
use crate::state::store::Shared;

/// Parts of the state. Each worker has one to itself as long as there are no more workers than parts.
const PARTS: usize = 16;

/// One metric at a scrape.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricSample {
    /// What the program says of it.
    pub rule: MetricRule,
    /// The values of its labels, in the order of their names, and what was counted under them.
    pub series: Vec<(Vec<String>, SeriesValue)>,
}

/// What all programs that have the metric share.
pub(in crate::state) struct MetricState {
    pub(super) rule: MetricRule,
    parts: [Padded; PARTS],
    /// Which series there are. Locked when a thread first meets one, and at a scrape.
    known: Mutex<HashSet<Box<str>, RandomState>>,
    of_all: SeriesCount,
    other: LabelValues,
    /// Changes that went to `other` for want of room.
    full: AtomicU64,
}

/// Locked by its own thread, and at a scrape.
type Part = Mutex<HashMap<Box<str>, Held, RandomState>>;

/// On cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Padded(Part);

/// The number of this thread, by which it has its part.
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
    }
    NUMBER.get().unwrap_or_else(|| {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        NUMBER.set(Some(number));
        number
    })
}

impl MetricState {
    pub(super) fn new(rule: &MetricRule, of_all: &SeriesCount) -> Self {
        Self {
            rule: rule.clone(),
            parts: Default::default(),
            known: Mutex::default(),
            of_all: of_all.clone(),
            other: LabelValues::others(rule.labels.len()),
            full: AtomicU64::new(0),
        }
    }

    pub(super) fn change(&self, values: &str, change: Change) {
        // Of a gauge the last value counts, whoever sets it, so it is in one place.
        let part = match self.rule.kind {
            MetricKind::Gauge => 0,
            MetricKind::Counter | MetricKind::Histogram => thread_number() % PARTS,
        };
        let mut series = lock(&self.parts[part].0);
        if let Some(held) = series.get_mut(values) {
            held.apply(change);
            return;
        }
        let values = if self.admit(values) {
            values
        } else {
            self.full.fetch_add(1, Ordering::Relaxed);
            self.other.0.as_str()
        };
        match series.get_mut(values) {
            Some(held) => held.apply(change),
            None => {
                series.insert(values.into(), Held::new(change));
            }
        }
    }

    /// Whether there is a series with these values, or room for one.
    fn admit(&self, values: &str) -> bool {
        let mut known = lock(&self.known);
        if known.contains(values) {
            return true;
        }
        if known.len() >= MOST_SERIES {
            return false;
        }
        let before = self.of_all.fetch_add(1, Ordering::Relaxed);
        if before >= MOST_SERIES_OF_ALL {
            self.of_all.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        known.insert(values.into());
        true
    }

    pub(in crate::state) fn sample(&self) -> MetricSample {
        let mut all: BTreeMap<Box<str>, Held> = BTreeMap::new();
        for part in &self.parts {
            for (values, held) in &*lock(&part.0) {
                match all.get_mut(values) {
                    Some(sum) => *sum += held,
                    None => {
                        all.insert(values.clone(), held.clone());
                    }
                }
            }
        }
        let series = all.iter().map(|(values, held)| {
            let values = values.split_terminator(END).map(str::to_owned).collect();
            (values, held.value())
        });
        MetricSample {
            rule: self.rule.clone(),
            series: series.collect(),
        }
    }
}

impl Drop for MetricState {
    fn drop(&mut self) {
        let known = lock(&self.known).len();
        self.of_all.fetch_sub(known, Ordering::Relaxed);
    }
}

impl Shared for MetricState {
    const KIND: &'static str = "metric";

    fn keys(&self) -> usize {
        lock(&self.known).len()
    }

    fn full(&self) -> u64 {
        self.full.load(Ordering::Relaxed)
    }
}

/// Nothing panics while it holds a lock; should it, what is there is still whole.
fn lock<S>(mutex: &Mutex<S>) -> MutexGuard<'_, S> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
