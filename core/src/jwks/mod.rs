//! Key sets of `jwks(..)`, kept up to date in the background: no request ever waits for one.
//!
//! [`KeySets`] is one for the process. It knows each source by its name, so a set outlives the
//! programs that use it. A source has a task on the thread `jwks`, which fetches it at first, then
//! after each `refresh`, and earlier when a token names a key that is not there. Whatever fails, the
//! last good set stays in use; before the first one every verification fails.

mod fetch;
mod task;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use edgewright_script::{
    jwt::{JwksSource, Slot},
    program::Program,
};
use tokio::{
    runtime::Handle,
    sync::Notify,
    task::{AbortHandle, JoinHandle},
};

use crate::{
    dns::Resolver,
    generation::Generation,
    metrics::{JwksSample, Metrics},
    outbound::{Client, Roots},
};

/// Idle connections to issuers that are kept. They are asked every few minutes.
const KEPT_CONNECTIONS: usize = 4;

/// The key sets of the process.
pub struct KeySets {
    known: Mutex<Known>,
    /// Something was fetched, or could not be.
    attempted: Condvar,
    shared: Arc<ForTasks>,
}

/// What the tasks use.
struct ForTasks {
    client: Client,
    /// The newest generation: pools are those of it.
    generation: ArcSwapOption<Generation>,
}

#[derive(Default)]
struct Known {
    sets: HashMap<String, Entry>,
    /// Where the tasks run; `None` before the first program that has a set.
    runtime: Option<Handle>,
}

/// One source.
struct Entry {
    source: JwksSource,
    slot: Arc<Slot>,
    /// Tells the task that a newer set is wanted.
    wake: Arc<Notify>,
    task: Option<AbortHandle>,
    progress: Progress,
}

/// What became of a source so far.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    attempted: bool,
    fetched: Option<Instant>,
    failures: u64,
}

impl KeySets {
    /// None yet.
    pub fn new(resolver: Arc<Resolver>, metrics: Arc<Metrics>, roots: Arc<Roots>) -> Self {
        Self {
            known: Mutex::default(),
            attempted: Condvar::new(),
            shared: Arc::new(ForTasks {
                client: Client::new(resolver, metrics, roots, KEPT_CONNECTIONS),
                generation: ArcSwapOption::empty(),
            }),
        }
    }

    /// Gives the sets of a program what earlier programs have fetched from the same sources. Nothing
    /// is fetched before [`KeySets::serve`].
    pub fn bind(&self, program: &Program) {
        let mut known = self.lock();
        for set in &program.jwks {
            let Some(source) = set.source() else { continue };
            let entry = known
                .sets
                .entry(source.name.clone())
                .or_insert_with(|| Entry::new(source));
            set.bind(entry.slot.clone());
        }
    }

    /// Keeps the sets of `generation` up to date from now on, and no others. Waits until each of
    /// them was asked for once, whatever came of it, but no longer than `wait`.
    ///
    /// # Errors
    /// When the thread that fetches can't be made.
    pub fn serve(
        self: &Arc<Self>,
        generation: &Arc<Generation>,
        wait: Duration,
    ) -> anyhow::Result<()> {
        let sources: Vec<&JwksSource> = generation
            .program
            .jwks
            .iter()
            .filter_map(|set| set.source())
            .collect();
        self.shared
            .generation
            .store((!sources.is_empty()).then(|| generation.clone()));
        let mut known = self.lock();
        known.sets.retain(|name, entry| {
            let stays = sources.iter().any(|source| source.name == *name);
            if !stays && let Some(task) = &entry.task {
                task.abort();
            }
            stays
        });
        for source in &sources {
            let runtime = match &known.runtime {
                Some(runtime) => runtime.clone(),
                None => known.runtime.insert(start()?).clone(),
            };
            let entry = known
                .sets
                .entry(source.name.clone())
                .or_insert_with(|| Entry::new(source));
            let unchanged = entry.source == **source;
            if unchanged && entry.task.is_some() {
                continue;
            }
            if let Some(task) = entry.task.take() {
                task.abort();
            }
            entry.source = (*source).clone();
            let task: JoinHandle<()> = runtime.spawn(task::keep(
                self.clone(),
                entry.source.clone(),
                entry.slot.clone(),
                entry.wake.clone(),
            ));
            entry.task = Some(task.abort_handle());
        }
        let waits = |known: &mut Known| {
            let mut entries = sources
                .iter()
                .filter_map(|source| known.sets.get(&source.name));
            entries.any(|entry| !entry.progress.attempted)
        };
        let waited = self.attempted.wait_timeout_while(known, wait, waits);
        let (known, _) = waited.unwrap_or_else(PoisonError::into_inner);
        for (name, entry) in &known.sets {
            if entry.slot.is_empty() {
                tracing::warn!("no key set of {name} yet: until there is one no token is taken");
            }
        }
        Ok(())
    }

    /// What became of each source, for metrics.
    pub fn samples(&self) -> Vec<JwksSample> {
        let known = self.lock();
        let mut samples: Vec<JwksSample> = known
            .sets
            .iter()
            .map(|(name, entry)| JwksSample {
                source: name.clone(),
                keys: entry.slot.len().unwrap_or_default(),
                age: entry.progress.fetched.map(|at| at.elapsed()),
                failures: entry.progress.failures,
            })
            .collect();
        samples.sort_by(|a, b| a.source.cmp(&b.source));
        samples
    }

    /// Notes what an attempt has come to.
    fn note(&self, name: &str, fetched: bool) {
        if let Some(entry) = self.lock().sets.get_mut(name) {
            entry.progress.attempted = true;
            if fetched {
                entry.progress.fetched = Some(Instant::now());
            } else {
                entry.progress.failures += 1;
            }
        }
        self.attempted.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn new(source: &JwksSource) -> Self {
        let wake = Arc::new(Notify::new());
        let wakes = wake.clone();
        Self {
            source: source.clone(),
            slot: Arc::new(Slot::new(move || wakes.notify_one())),
            wake,
            task: None,
            progress: Progress::default(),
        }
    }
}

/// Starts the thread that fetches, for as long as the process lives.
fn start() -> anyhow::Result<Handle> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name("jwks".to_owned())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(handle)
}
