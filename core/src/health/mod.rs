//! Looking after pools: which of their endpoints are used.
//!
//! One task for each pool of the generation in force runs on the thread `health` ([`keeper`]). It ejects endpoints on
//! which requests failed, brings them back, and has each endpoint asked by a task of its own where the pool says
//! so ([`repeated`], [`probe`]). Requests only count, and wake it when a count has run full; what follows is a new
//! choice of endpoints in the pool ([`Pool::rebuild`]).
//!
//! How an endpoint stands lies with the endpoint, so a reload changes nothing of it, and a pool
//! without a keeper (of a generation that only drains) keeps what it knows.

mod grpc;
mod http;
mod keeper;
mod probe;
mod repeated;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::{generation::Generation, metrics::PoolMetrics, pools::Pool};
use probe::Prober;

/// Looks after the pools of the generation in force.
#[derive(Default)]
pub struct Health {
    kept: Mutex<Kept>,
    prober: Arc<Prober>,
}

#[derive(Default)]
struct Kept {
    /// Where the tasks run; `None` before the first pool.
    runtime: Option<Handle>,
    /// By the pool's name.
    keepers: HashMap<String, Keeper>,
}

/// The task of one pool; it ends with this.
struct Keeper {
    pool: Weak<Pool>,
    task: AbortHandle,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Health {
    /// Looks after the pools of `generation` from now on, and after no others. Doesn't wait for checks.
    ///
    /// # Errors
    /// When the thread can't be made.
    pub(crate) fn serve(&self, generation: &Generation) -> anyhow::Result<()> {
        self.keep(generation.counted_pools())
    }

    fn keep<'a>(
        &self,
        pools: impl IntoIterator<Item = &'a (Arc<Pool>, Arc<PoolMetrics>)>,
    ) -> anyhow::Result<()> {
        let mut kept = self.lock();
        let mut before = std::mem::take(&mut kept.keepers);
        for (pool, metrics) in pools {
            let name = pool.name();
            let known = before.remove(name);
            let known = known.filter(|keeper| keeper.pool.as_ptr() == Arc::as_ptr(pool));
            let keeper = match known {
                Some(keeper) => keeper,
                None => {
                    let runtime = match &kept.runtime {
                        Some(runtime) => runtime.clone(),
                        None => kept.runtime.insert(start()?).clone(),
                    };
                    let task = keeper::keep(pool, metrics.clone(), self.prober.clone());
                    Keeper {
                        pool: Arc::downgrade(pool),
                        task: runtime.spawn(task).abort_handle(),
                    }
                }
            };
            kept.keepers.insert(name.to_owned(), keeper);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the thread, for as long as the process lives.
fn start() -> anyhow::Result<Handle> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name("health".to_owned())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(handle)
}
