//! Who is told when an answer changes.

use std::sync::{Mutex, Weak};

use super::watched::lock;

/// Somebody who is told when the answer to a name changes.
pub trait Listener: Send + Sync {
    /// The answer differs from the one before as a set, or in its state. Called on the resolver's
    /// thread, after the new one can be read: it may compute, but not block.
    fn answer_changed(&self);

    /// A lookup failed, or was of no use, while there is no answer yet. Called under the same rule.
    fn lookup_failed(&self) {}
}

/// All who listen to one name.
#[derive(Default)]
pub(super) struct Listeners(Mutex<Vec<Weak<dyn Listener>>>);

impl Listeners {
    pub(super) fn add(&self, listener: Weak<dyn Listener>) {
        let mut listeners = lock(&self.0);
        listeners.retain(|known| known.strong_count() > 0);
        listeners.push(listener);
    }

    /// Called without the lock held, so that a listener may add others.
    pub(super) fn tell(&self, what: impl Fn(&dyn Listener)) {
        let listeners = lock(&self.0).clone();
        for listener in listeners.iter().filter_map(Weak::upgrade) {
            what(&*listener);
        }
    }
}
