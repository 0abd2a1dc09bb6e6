//! State that all workers share and that outlives programs: `rate(..)`, `counter(..)`, `cache(..)`,
//! `concurrency(..)` and `metric(..)`.
//!
//! A program holds *handles*. A handle is made while the top level runs, gets its name from the
//! constant that holds it, and is bound to the state of that name in the [`StateStore`] when the
//! program is known to be right. So a program that is refused changes nothing, and two programs
//! that serve at the same time share what has the same name. The store itself holds on to nothing:
//! state lives as long as a program that uses it.
//!
//! What may change over a reload without losing anything (a limit, a number of keys) belongs to the
//! handle, and the rest to the state.

mod cache;
mod clock;
mod concurrency;
mod counter;
mod handle;
mod key;
pub mod metric;
mod rate;
mod sharded;
mod store;

pub use cache::{Cache, CacheRule, TooLarge};
pub use clock::{Clock, ManualClock};
pub use concurrency::{Concurrency, ConcurrencyRule, Slot};
pub use counter::{Counter, CounterRule, Full};
pub use handle::NotBound;
pub use key::Key;
pub use rate::{Algorithm, Hit, Rate, RateRule};
pub use store::{Identity, StateSample, StateStore};

/// A handle on some state.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// `rate(..)`
    Rate(Rate),
    /// `counter(..)`
    Counter(Counter),
    /// `cache(..)`
    Cache(Cache),
    /// `concurrency(..)`
    Concurrency(Concurrency),
}

impl State {
    /// The function that makes it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Rate(_) => "rate",
            Self::Counter(_) => "counter",
            Self::Cache(_) => "cache",
            Self::Concurrency(_) => "concurrency",
        }
    }

    /// Binds it to the state of that name. A handle that is bound stays as it is.
    pub fn bind(&self, store: &StateStore, identity: &Identity) {
        match self {
            Self::Rate(rate) => rate.bind(store, identity),
            Self::Counter(counter) => counter.bind(store, identity),
            Self::Cache(cache) => cache.bind(store, identity),
            Self::Concurrency(slots) => slots.bind(store, identity),
        }
    }
}
