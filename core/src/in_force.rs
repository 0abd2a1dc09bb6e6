//! The generation in force, for all threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, Guard};

use crate::generation::Generation;

/// The generation in force. Beside it stands its number, by which a worker sees for next to nothing whether the one that
/// it has is still the one: each request asks.
pub struct InForce {
    generation: ArcSwap<Generation>,
    number: AtomicU64,
}

impl InForce {
    /// The first one.
    pub fn new(generation: Generation) -> Self {
        Self {
            number: AtomicU64::new(generation.number),
            generation: ArcSwap::from_pointee(generation),
        }
    }

    /// Puts another one in force. By one thread at a time.
    pub fn store(&self, generation: Arc<Generation>) {
        let number = generation.number;
        self.generation.store(generation);
        // Afterwards: who sees the number sees the generation, and who doesn't yet has the one before.
        self.number.store(number, Ordering::Release);
    }

    /// The one in force, for a short look.
    pub fn load(&self) -> Guard<Arc<Generation>> {
        self.generation.load()
    }

    /// The one in force.
    pub fn load_full(&self) -> Arc<Generation> {
        self.generation.load_full()
    }

    /// Whether this is the number of the one in force.
    #[inline]
    pub(crate) fn is(&self, number: u64) -> bool {
        self.number.load(Ordering::Acquire) == number
    }
}
