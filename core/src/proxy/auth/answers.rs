//! Answers of services that were asked about requests, kept for a while.

use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use http::{HeaderName, HeaderValue};
use lru::LruCache;
use sha2::{Digest as _, Sha256};

use super::flights::Flights;

/// The most answers of one route. The one that was asked for longest ago goes first.
const MOST_ANSWERS: usize = 4096;

/// The most bytes of the fields of an answer that is kept.
const MOST_BYTES: usize = 4096;

/// What a request is let through with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Passed {
    /// Fields for the request.
    pub(super) request: Vec<(HeaderName, HeaderValue)>,
    /// Fields for the response.
    pub(super) response: Vec<(HeaderName, HeaderValue)>,
}

/// Which requests one answer counts for, as a digest: what stands in it are credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key([u8; 32]);

/// Makes a key out of parts, none of which can pass for a piece of another one.
#[derive(Default)]
pub(super) struct Keyed(Sha256);

impl Keyed {
    pub(super) fn add(&mut self, part: &[u8]) {
        self.0.update((part.len() as u64).to_be_bytes());
        self.0.update(part);
    }

    /// Values of a field; none is something else than an empty one.
    pub(super) fn add_all<'v>(&mut self, values: impl Iterator<Item = &'v HeaderValue>) {
        let mut count = 0u64;
        for value in values {
            count += 1;
            self.add(value.as_bytes());
        }
        self.0.update(count.to_be_bytes());
    }

    pub(super) fn key(self) -> Key {
        Key(self.0.finalize().into())
    }
}

/// What those who wait for another one's question learn.
#[derive(Debug, Clone)]
pub(super) enum Landed {
    /// The answer counts for them too.
    Passed(Arc<Passed>),
    /// There is none; with the status and the reason.
    Failed(u16, &'static str),
    /// The answer was meant for one client: ask.
    Ask,
}

/// The kept answers of one route, for all workers. A new program begins without.
pub(crate) struct ForwardAnswers {
    kept: Mutex<LruCache<Key, (Instant, Arc<Passed>)>>,
    pub(super) flights: Arc<Flights<Key, Landed>>,
}

impl Default for ForwardAnswers {
    fn default() -> Self {
        let most = NonZeroUsize::new(MOST_ANSWERS).unwrap_or(NonZeroUsize::MIN);
        Self {
            kept: Mutex::new(LruCache::new(most)),
            flights: Arc::default(),
        }
    }
}

impl ForwardAnswers {
    /// An answer that still counts at `now`.
    pub(super) fn get(&self, key: &Key, now: Instant) -> Option<Arc<Passed>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, passed) = kept.get(key)?;
        if now < *until {
            return Some(passed.clone());
        }
        kept.pop(key);
        None
    }

    /// Keeps an answer that arrived at `now`, unless it is large.
    pub(super) fn keep(&self, key: Key, passed: Arc<Passed>, now: Instant, ttl: Duration) {
        let fields = passed.request.iter().chain(&passed.response);
        let bytes = fields.map(|(name, value)| name.as_str().len() + value.len());
        if bytes.sum::<usize>() > MOST_BYTES {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.put(key, (now + ttl, passed));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn key(parts: &[&str]) -> Key {
        let mut keyed = Keyed::default();
        for part in parts {
            keyed.add(part.as_bytes());
        }
        keyed.key()
    }

    fn passed(value: &str) -> Arc<Passed> {
        let field = (HeaderName::from_static("x-user"), value.parse().unwrap());
        Arc::new(Passed {
            request: vec![field],
            response: Vec::new(),
        })
    }

    #[test]
    fn answers_count_for_their_time_and_no_longer() {
        let answers = ForwardAnswers::default();
        let (now, ttl) = (Instant::now(), Duration::from_secs(30));
        let alice = key(&["alice"]);
        assert!(answers.get(&alice, now).is_none());
        answers.keep(alice, passed("alice"), now, ttl);
        let just_before = now + ttl - Duration::from_millis(1);
        assert_eq!(answers.get(&alice, just_before), Some(passed("alice")));
        assert!(answers.get(&key(&["bob"]), now).is_none());
        assert!(answers.get(&alice, now + ttl).is_none());
        answers.keep(alice, passed(&"x".repeat(MOST_BYTES)), now, ttl);
        assert!(answers.get(&alice, now).is_none(), "too large to be kept");
    }

    #[test]
    fn what_differs_has_another_key() {
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_ne!(key(&["a", ""]), key(&["a"]));
        let values = |values: &[&'static str]| {
            let values: Vec<_> = values
                .iter()
                .map(|value| HeaderValue::from_static(value))
                .collect();
            let mut keyed = Keyed::default();
            keyed.add_all(values.iter());
            keyed.add_all(std::iter::empty());
            keyed.key()
        };
        assert_ne!(values(&[]), values(&[""]));
        assert_ne!(values(&["a", "b"]), values(&["ab"]));
    }
}
