//! Work that is done once for all who need its outcome at the same time, on whatever worker.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::watch;

/// What is being done now, by its key.
pub(super) struct Flights<K, V> {
    open: Mutex<HashMap<K, watch::Receiver<Option<V>>>>,
}

impl<K, V> Default for Flights<K, V> {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
        }
    }
}

/// What somebody who needs an outcome does.
pub(super) enum Turn<K: Hash + Eq, V> {
    /// It does the work.
    Lead(Lead<K, V>),
    /// Another one does: wait for its outcome.
    Follow(Follow<V>),
}

impl<K: Hash + Eq + Clone, V: Clone> Flights<K, V> {
    pub(super) fn join(self: &Arc<Self>, key: &K) -> Turn<K, V> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcome) = open.get(key) {
            return Turn::Follow(Follow(outcome.clone()));
        }
        let (sender, outcome) = watch::channel(None);
        open.insert(key.clone(), outcome);
        Turn::Lead(Lead {
            flights: self.clone(),
            key: key.clone(),
            sender,
        })
    }
}

/// Dropped without [`Lead::land`], those who wait try again, and one of them leads.
pub(super) struct Lead<K: Hash + Eq, V> {
    flights: Arc<Flights<K, V>>,
    key: K,
    sender: watch::Sender<Option<V>>,
}

impl<K: Hash + Eq, V> Lead<K, V> {
    /// Gives the outcome to all who wait.
    pub(super) fn land(self, outcome: V) {
        self.sender.send_replace(Some(outcome));
    }
}

impl<K: Hash + Eq, V> Drop for Lead<K, V> {
    fn drop(&mut self) {
        let open = &self.flights.open;
        open.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.key);
    }
}

/// Waits for the outcome of another one's work.
pub(super) struct Follow<V>(watch::Receiver<Option<V>>);

impl<V: Clone> Follow<V> {
    /// `None` when there is none: try again.
    pub(super) async fn outcome(mut self) -> Option<V> {
        let landed = self.0.wait_for(Option::is_some).await;
        landed.ok()?.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flights() -> Arc<Flights<u8, u8>> {
        Arc::default()
    }

    #[tokio::test]
    async fn one_leads_and_the_others_follow() {
        let flights = flights();
        let Turn::Lead(lead) = flights.join(&1) else {
            panic!("the first leads");
        };
        let Turn::Follow(follow) = flights.join(&1) else {
            panic!("the second follows");
        };
        assert!(matches!(flights.join(&2), Turn::Lead(_)), "another key");
        lead.land(7);
        assert_eq!(follow.outcome().await, Some(7));
        assert!(matches!(flights.join(&1), Turn::Lead(_)), "it is over");
    }

    #[tokio::test]
    async fn a_leader_that_leaves_makes_room_for_another() {
        let flights = flights();
        let Turn::Lead(lead) = flights.join(&1) else {
            panic!("the first leads");
        };
        let Turn::Follow(follow) = flights.join(&1) else {
            panic!("the second follows");
        };
        drop(lead);
        assert_eq!(follow.outcome().await, None);
        assert!(matches!(flights.join(&1), Turn::Lead(_)));
    }
}
