//! Counters by label: the same label gets the same counters, over reloads too, within a bound.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the series of a label stays after the last generation that used it is gone: long enough
/// for a scrape to see its last values, and for a route that returns to go on where it was.
pub const RETENTION: Duration = Duration::from_secs(600);

struct Kept<T> {
    counters: Arc<T>,
    /// When a scrape or a registration first found that nothing else holds the counters.
    unused_since: Option<Instant>,
}

impl<T> Kept<T> {
    fn in_use(&self) -> bool {
        Arc::strong_count(&self.counters) > 1
    }
}

/// Counters by label, at most `bound` of them. Locked while loading and at a scrape only.
pub struct Registry<T> {
    bound: usize,
    kept: Mutex<BTreeMap<Box<str>, Kept<T>>>,
}

impl<T> Registry<T> {
    /// An empty registry for at most `bound` labels.
    pub fn new(bound: usize) -> Self {
        Self {
            bound,
            kept: Mutex::new(BTreeMap::new()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Kept<T>>> {
        // A panic elsewhere can't leave the map half-changed: every change is one insert or remove.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counters of each label, in the order given; `None` where the registry is full. When it
    /// is full, labels that nobody uses any more go at once, to make room.
    pub fn get<'a>(
        &self,
        labels: impl IntoIterator<Item = &'a str>,
        make: impl Fn(&str) -> T,
    ) -> Vec<Option<Arc<T>>> {
        let mut kept = self.lock();
        let mut purged = false;
        let mut found = Vec::new();
        for label in labels {
            if let Some(entry) = kept.get_mut(label) {
                entry.unused_since = None;
                found.push(Some(entry.counters.clone()));
                continue;
            }
            if kept.len() >= self.bound && !purged {
                kept.retain(|_, entry| entry.in_use());
                // Once is enough: all that was taken since is in use.
                purged = true;
            }
            if kept.len() >= self.bound {
                found.push(None);
                continue;
            }
            let counters = Arc::new(make(label));
            found.push(Some(counters.clone()));
            if let Entry::Vacant(place) = kept.entry(label.into()) {
                place.insert(Kept {
                    counters,
                    unused_since: None,
                });
            }
        }
        found
    }

    /// All counters in the order of their labels, without those unused for [`RETENTION`] at `now`.
    pub fn scrape(&self, now: Instant) -> Vec<Arc<T>> {
        let mut kept = self.lock();
        kept.retain(|_, entry| {
            if entry.in_use() {
                entry.unused_since = None;
                return true;
            }
            let since = *entry.unused_since.get_or_insert(now);
            now.saturating_duration_since(since) < RETENTION
        });
        kept.values().map(|entry| entry.counters.clone()).collect()
    }
}

impl<T> std::fmt::Debug for Registry<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("bound", &self.bound)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn get(registry: &Registry<String>, label: &str) -> Option<Arc<String>> {
        registry.get([label], str::to_owned).pop().unwrap()
    }

    fn labels(registry: &Registry<String>, now: Instant) -> Vec<String> {
        let all = registry.scrape(now);
        all.iter().map(|label| label.to_string()).collect()
    }

    #[test]
    fn the_same_label_is_the_same_counters() {
        let registry = Registry::new(10);
        let first = get(&registry, "/a").unwrap();
        let again = get(&registry, "/a").unwrap();
        assert!(Arc::ptr_eq(&first, &again));
    }

    #[test]
    fn full_means_none_for_new_labels_only() {
        let registry = Registry::new(2);
        let held = registry.get(["/a", "/b", "/c", "/a"], str::to_owned);
        let got: Vec<_> = held.iter().map(|h| h.as_deref().cloned()).collect();
        let text = |s: &str| Some(s.to_owned());
        assert_eq!(got, [text("/a"), text("/b"), None, text("/a")]);
    }

    #[test]
    fn unused_labels_make_room_when_it_is_full() {
        let registry = Registry::new(2);
        let kept = get(&registry, "/kept");
        drop(get(&registry, "/gone"));
        assert!(get(&registry, "/new").is_some());
        assert_eq!(labels(&registry, Instant::now()), ["/kept", "/new"]);
        drop(kept);
    }

    #[test]
    fn an_unused_label_stays_for_the_retention_and_no_longer() {
        let registry = Registry::new(10);
        let start = Instant::now();
        drop(get(&registry, "/a"));
        assert_eq!(labels(&registry, start), ["/a"]);
        let almost = start + RETENTION - Duration::from_millis(1);
        assert_eq!(labels(&registry, almost), ["/a"]);
        assert!(labels(&registry, start + RETENTION).is_empty());
    }

    #[test]
    fn using_a_label_again_starts_its_retention_anew() {
        let registry = Registry::new(10);
        let start = Instant::now();
        drop(get(&registry, "/a"));
        labels(&registry, start);
        let held = get(&registry, "/a");
        assert_eq!(labels(&registry, start + RETENTION * 2), ["/a"]);
        drop(held);
        assert_eq!(labels(&registry, start + RETENTION * 3), ["/a"]);
        assert!(labels(&registry, start + RETENTION * 4).is_empty());
    }
}
