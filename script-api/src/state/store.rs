//! State by its name, over all programs of the process.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use hashbrown::HashMap;

use super::{
    cache::CacheState,
    clock::Clock,
    concurrency::ConcurrencyState,
    counter::CounterState,
    metric::{MetricSample, MetricState, SeriesCount},
    rate::RateState,
};

/// What state is called.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Identity {
    /// The constant that holds it, and the keys of the maps in it that lead there.
    Constant(Vec<String>),
    /// A name that the program gives: `counter("hits")`.
    Name(String),
    /// A gate of a route: the gate's name, the route's label, the methods of the route, which of the
    /// routes with these it is, and which of the gates with this name, each counted from 0.
    Gate {
        /// `limit` or `concurrency`.
        gate: &'static str,
        /// The route's label.
        label: String,
        /// The route's methods, with commas between.
        methods: String,
        /// Which of the routes with this label and these methods, in the order written.
        route: usize,
        /// Which of the route's gates of this name.
        nth: usize,
    },
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(path) => f.write_str(&path.join(".")),
            Self::Name(name) => f.write_str(name),
            Self::Gate {
                gate,
                label,
                methods,
                route,
                nth,
            } => {
                if !methods.is_empty() {
                    write!(f, "{methods} ")?;
                }
                f.write_str(label)?;
                if *route > 0 {
                    write!(f, " ({})", route + 1)?;
                }
                write!(f, " .{gate}")?;
                if *nth > 0 {
                    write!(f, " ({})", nth + 1)?;
                }
                Ok(())
            }
        }
    }
}

/// Finds state again when a program is loaded anew. Clones are the same store; a process has one,
/// and a test or a tool one of its own.
#[derive(Debug, Clone, Default)]
pub struct StateStore(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    clock: Clock,
    rates: Registry<RateState>,
    counters: Registry<CounterState>,
    caches: Registry<CacheState>,
    concurrencies: Registry<ConcurrencyState>,
    metrics: Registry<MetricState>,
    /// Of all metrics.
    series: SeriesCount,
}

/// What is known of one value, for metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateSample {
    /// `rate`, `counter`, `cache`, `concurrency` or `metric`.
    pub kind: &'static str,
    /// Its identity as text.
    pub name: String,
    /// Keys that it holds, those that have expired and were not looked at since included; the series of
    /// a metric.
    pub keys: usize,
    /// How often it was full: a rate forgot what one key had used, a counter or `concurrency` refused
    /// a new key, a cache dropped a value before its time, a metric counted something under other labels.
    pub full: u64,
}

/// What all kinds of state have.
pub(super) trait Shared {
    const KIND: &'static str;
    fn keys(&self) -> usize;
    fn full(&self) -> u64;
}

impl StateStore {
    /// An empty store with this clock.
    pub fn with_clock(clock: Clock) -> Self {
        Self(Arc::new(Inner {
            clock,
            ..Inner::default()
        }))
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub(super) fn rates(&self) -> &Registry<RateState> {
        &self.0.rates
    }

    pub(super) fn counters(&self) -> &Registry<CounterState> {
        &self.0.counters
    }

    pub(super) fn caches(&self) -> &Registry<CacheState> {
        &self.0.caches
    }

    pub(super) fn concurrencies(&self) -> &Registry<ConcurrencyState> {
        &self.0.concurrencies
    }

    pub(super) fn metrics(&self) -> &Registry<MetricState> {
        &self.0.metrics
    }

    /// How many series all metrics have.
    pub(super) fn series(&self) -> &SeriesCount {
        &self.0.series
    }

    /// Forgets the names of what no program uses any more.
    pub(crate) fn forget_unused(&self) {
        self.0.rates.forget_unused();
        self.0.counters.forget_unused();
        self.0.caches.forget_unused();
        self.0.concurrencies.forget_unused();
        self.0.metrics.forget_unused();
    }

    /// All state that a program uses, by kind and name.
    pub fn samples(&self) -> Vec<StateSample> {
        let mut samples = Vec::new();
        self.0.rates.sample(&mut samples);
        self.0.counters.sample(&mut samples);
        self.0.caches.sample(&mut samples);
        self.0.concurrencies.sample(&mut samples);
        self.0.metrics.sample(&mut samples);
        samples
    }

    /// All metrics that a program has, by name. Of several of one name, while a reload changes one, it is
    /// the newest: two of one name would be refused by whoever reads them.
    pub fn metric_samples(&self) -> Vec<MetricSample> {
        let mut newest = self.0.metrics.newest();
        newest.sort_by(|a, b| a.0.cmp(&b.0));
        newest.iter().map(|(_, state)| state.sample()).collect()
    }
}

/// State of one kind. It is looked up when a program is loaded; hooks hold the state itself.
pub(super) struct Registry<S>(Mutex<Known<S>>);

/// Of one name there may be several, when a reload changed what belongs to the state: the newest
/// comes last.
type Known<S> = HashMap<Identity, Vec<Weak<S>>>;

impl<S: Shared> Registry<S> {
    /// The state called `identity` for which `fits` holds, made when there is none.
    pub(super) fn find(
        &self,
        identity: &Identity,
        fits: impl Fn(&S) -> bool,
        make: impl FnOnce() -> S,
    ) -> Arc<S> {
        let mut known = self.lock();
        let all = known.entry(identity.clone()).or_default();
        let mut living = all.iter().filter_map(Weak::upgrade);
        if let Some(found) = living.find(|state| fits(state)) {
            return found;
        }
        let made = Arc::new(make());
        all.push(Arc::downgrade(&made));
        made
    }

    /// The newest state of each name.
    fn newest(&self) -> Vec<(Identity, Arc<S>)> {
        let known = self.lock();
        let newest = known.iter().filter_map(|(identity, all)| {
            let newest = all.iter().rev().find_map(Weak::upgrade)?;
            Some((identity.clone(), newest))
        });
        newest.collect()
    }

    fn sample(&self, samples: &mut Vec<StateSample>) {
        let mut used: Vec<(String, Vec<Arc<S>>)> = self
            .lock()
            .iter()
            .map(|(identity, all)| (identity, all.iter().filter_map(Weak::upgrade).collect()))
            .filter(|(_, all): &(_, Vec<_>)| !all.is_empty())
            .map(|(identity, all)| (identity.to_string(), all))
            .collect();
        used.sort_by(|a, b| a.0.cmp(&b.0));
        // A constant and a given name may read the same.
        used.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1.append(&mut later.1);
            }
            same
        });
        samples.extend(used.into_iter().map(|(name, all)| StateSample {
            kind: S::KIND,
            name,
            keys: all.iter().map(|state| state.keys()).sum(),
            full: all.iter().map(|state| state.full()).sum(),
        }));
    }
}

impl<S> Registry<S> {
    fn forget_unused(&self) {
        self.lock().retain(|_, all| {
            all.retain(|state| state.strong_count() > 0);
            !all.is_empty()
        });
    }

    fn lock(&self) -> MutexGuard<'_, Known<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Default for Registry<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<S> fmt::Debug for Registry<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.lock().keys()).finish()
    }
}
