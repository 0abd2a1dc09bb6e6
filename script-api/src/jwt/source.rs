//! `jwks(..)`: a key set that somebody else keeps, and where it comes from.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use arc_swap::{ArcSwapOption, Guard};

use super::KeySet;
use crate::outbound::Recipient;

/// The most key sets of one program that are fetched. Each is kept up to date by the process.
pub const MOST_JWKS: usize = 64;

/// Where a key set is fetched, and how often. Two of the same source are the same set, also in
/// programs that follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwksSource {
    /// Its name in metrics and log lines: the URL, or the pool and the path. It tells one set from
    /// another.
    pub name: String,
    /// Who has it.
    pub from: JwksFrom,
    /// Path and query.
    pub target: String,
    /// The time between two fetches.
    pub refresh: Duration,
}

/// Who has a key set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JwksFrom {
    /// A pool, by its name: its number may change with a reload.
    Pool(String),
    /// The server of a URL.
    Server(Recipient),
}

/// A key set of the process. Whoever keeps it up to date puts the newest here.
pub struct Slot {
    set: ArcSwapOption<KeySet>,
    wanted: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Slot {
    /// Nothing yet. `wake` is called when a newer set is wanted: seldom, and never twice before
    /// [`Slot::take_wanted`].
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            set: ArcSwapOption::empty(),
            wanted: AtomicBool::new(false),
            wake: Box::new(wake),
        }
    }

    /// Puts a set in the place of the one before.
    pub fn put(&self, set: KeySet) {
        self.set.store(Some(Arc::new(set)));
    }

    /// How many keys there are; `None` before the first set.
    pub fn len(&self) -> Option<usize> {
        self.set.load().as_ref().map(|set| set.len())
    }

    /// Whether there is no set yet.
    pub fn is_empty(&self) -> bool {
        self.set.load().is_none()
    }

    /// Whether a newer set has been wanted since this was asked last.
    pub fn take_wanted(&self) -> bool {
        self.wanted.swap(false, Ordering::AcqRel)
    }

    fn want(&self) {
        // Most find it set: a client that invents names of keys writes to nothing.
        if !self.wanted.load(Ordering::Relaxed) && !self.wanted.swap(true, Ordering::AcqRel) {
            (self.wake)();
        }
    }
}

/// `jwks(..)` of a program. Cloning shares it.
#[derive(Clone)]
pub struct Jwks(Arc<Inner>);

struct Inner {
    /// `None` for a file, which a reload reads again.
    source: Option<JwksSource>,
    slot: OnceLock<Arc<Slot>>,
}

impl Jwks {
    /// A set that is fetched. There are no keys until it is bound.
    pub fn fetched(source: JwksSource) -> Self {
        Self(Arc::new(Inner {
            source: Some(source),
            slot: OnceLock::new(),
        }))
    }

    /// A set from a file.
    pub fn fixed(set: KeySet) -> Self {
        let slot = Slot::new(|| ());
        slot.put(set);
        Self(Arc::new(Inner {
            source: None,
            slot: OnceLock::from(Arc::new(slot)),
        }))
    }

    /// Where it is fetched; `None` for a file.
    pub fn source(&self) -> Option<&JwksSource> {
        self.0.source.as_ref()
    }

    /// Says where the process keeps it up to date. The first word counts.
    pub fn bind(&self, slot: Arc<Slot>) {
        let _ = self.0.slot.set(slot);
    }

    /// The newest keys.
    pub(super) fn keys(&self) -> Option<Keys> {
        let keys = self.0.slot.get()?.set.load();
        keys.is_some().then_some(Keys(keys))
    }

    /// A token names a key that is not there.
    pub(super) fn want_newer(&self) {
        if let Some(slot) = self.0.slot.get() {
            slot.want();
        }
    }
}

/// Keys in use for one look-up, without a count that other workers write.
pub(super) struct Keys(Guard<Option<Arc<KeySet>>>);

impl Keys {
    pub(super) fn set(&self) -> Option<&KeySet> {
        self.0.as_deref()
    }
}

impl fmt::Debug for Jwks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source() {
            Some(source) => write!(f, "Jwks({})", source.name),
            None => f.write_str("Jwks(file)"),
        }
    }
}

/// One and the same.
impl PartialEq for Jwks {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
