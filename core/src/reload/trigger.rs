//! What asks the pipeline to look at the files, collapsed while it is busy.

use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Options, Outcome};

/// Called once with the outcome of the attempt that answers a request; dropped when there will be none.
pub(super) type Reply = Box<dyn FnOnce(Outcome) + Send>;

/// Why the worker wakes.
pub(super) enum Wake {
    /// The pipeline ends.
    Stop,
    /// Someone asked; these are to be answered.
    Asked(Vec<Reply>),
    /// A burst of file events has ended, or lasts too long.
    Files,
    /// Time for the poll.
    Poll,
    /// Time to look whether a missing folder is back.
    Return,
}

/// When the worker wants to wake by itself.
pub(super) struct Plan {
    /// The next poll.
    pub poll_at: Instant,
    /// The next look for a missing folder.
    pub return_at: Option<Instant>,
    /// File events are not acted on before this.
    pub not_before: Option<Instant>,
}

/// Shared by those who trigger and the one thread that waits.
#[derive(Default)]
pub(super) struct Triggers {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    burst: Option<Burst>,
    asked: bool,
    replies: Vec<Reply>,
    watcher_errors: u64,
    stop: bool,
    finished: bool,
}

/// File events that are treated as one.
#[derive(Clone, Copy)]
struct Burst {
    first: Instant,
    last: Instant,
}

impl Burst {
    fn due(self, options: &Options) -> Instant {
        (self.last + options.debounce).min(self.first + options.max_debounce)
    }
}

impl Triggers {
    /// Something may have changed in a watched folder.
    pub(super) fn file_event(&self) {
        self.note_event(&mut self.lock());
    }

    /// The watcher reported an error: events may be lost, so this is an event, too.
    pub(super) fn watcher_error(&self) {
        let mut state = self.lock();
        state.watcher_errors += 1;
        self.note_event(&mut state);
    }

    fn note_event(&self, state: &mut State) {
        let now = Instant::now();
        match &mut state.burst {
            // The worker sees the later end of the burst when it wakes; a storm must not wake it each time.
            Some(burst) => burst.last = now,
            None => {
                state.burst = Some(Burst {
                    first: now,
                    last: now,
                });
                self.wake.notify_all();
            }
        }
    }

    /// An explicit request.
    pub(super) fn ask(&self, reply: Option<Reply>) {
        let mut state = self.lock();
        if state.stop || state.finished {
            return;
        }
        state.asked = true;
        state.replies.extend(reply);
        self.wake.notify_all();
    }

    /// Tells the worker to end.
    pub(super) fn stop(&self) {
        self.lock().stop = true;
        self.wake.notify_all();
    }

    /// The worker has ended. Who still waits for an answer learns it by the drop of the reply.
    pub(super) fn finished(&self) {
        let mut state = self.lock();
        state.finished = true;
        let unanswered = mem::take(&mut state.replies);
        self.wake.notify_all();
        drop(state);
        drop(unanswered);
    }

    /// Waits until the worker has ended; false when it hasn't after `limit`.
    pub(super) fn wait_finished(&self, limit: Duration) -> bool {
        let (state, _) = self
            .wake
            .wait_timeout_while(self.lock(), limit, |state| !state.finished)
            .unwrap_or_else(PoisonError::into_inner);
        state.finished
    }

    /// Errors of the watcher since the last call.
    pub(super) fn take_watcher_errors(&self) -> u64 {
        mem::take(&mut self.lock().watcher_errors)
    }

    /// Waits for the next thing to do.
    pub(super) fn wait(&self, plan: &Plan, options: &Options) -> Wake {
        let mut state = self.lock();
        loop {
            if state.stop {
                return Wake::Stop;
            }
            if mem::take(&mut state.asked) {
                return Wake::Asked(mem::take(&mut state.replies));
            }
            let now = Instant::now();
            let mut next = match state.burst {
                // The look that ends the burst is as good as a poll. A poll before it could read a folder
                // in the middle of its change.
                Some(burst) => {
                    let due = burst.due(options).max(plan.not_before.unwrap_or(now));
                    if due <= now {
                        state.burst = None;
                        return Wake::Files;
                    }
                    due
                }
                None if plan.poll_at <= now => return Wake::Poll,
                None => plan.poll_at,
            };
            if let Some(return_at) = plan.return_at {
                if return_at <= now {
                    return Wake::Return;
                }
                next = next.min(return_at);
            }
            state = self
                .wake
                .wait_timeout(state, next - now)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change of the state is complete in itself, so a panic elsewhere can't leave it half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_due_after_quiet_or_at_the_limit() {
        let options = Options::default();
        let first = Instant::now();
        let due = |last_event: u64| {
            let last = first + Duration::from_millis(last_event);
            let due = Burst { first, last }.due(&options);
            (due - first).as_millis()
        };
        assert_eq!(due(0), 200);
        assert_eq!(due(150), 350);
        assert_eq!(due(1_799), 1_999);
        assert_eq!(due(1_999), 2_000);
    }
}
