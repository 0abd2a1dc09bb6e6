//! The times by which a request's response header, and its end, must be there.
//!
//! Pingora has one timeout for each read, which a slow header would reset with every byte and
//! which would also cut a stream that pauses. So these are kept beside it: when one passes,
//! the connection is shut down from outside, and Pingora's read ends.

use std::{
    os::fd::{BorrowedFd, OwnedFd, RawFd},
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};

use pingora_proxy::Session;
use rustix::net::{Shutdown, shutdown};
use tokio::task::JoinHandle;

use super::presence;

/// What an upstream that was cut has to be told of, and its client answered, before the client is cut too.
const GRACE: Duration = Duration::from_secs(1);

/// What took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Late {
    /// The response header: the route's `.timeout`, over all attempts.
    Route = 1,
    /// The response header of this attempt: the pool's `first_byte`.
    FirstByte,
    /// All of it: the pool's `request`.
    Request,
}

/// The times of one request. Most have none.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    /// When the response header must be there.
    route: Option<Instant>,
    /// When everything must be over.
    request: Option<Instant>,
    /// How long the upstream in use may take from the end of the request to its response header.
    first_byte: Option<Duration>,
    /// Watches the next of them on the connection in use.
    watch: Option<Watch>,
}

impl Deadlines {
    /// Takes what the route and the pool of the next attempt say. The route's time begins now, unless
    /// it has begun; the pool's for everything with the request.
    pub(super) fn set(
        &mut self,
        route: Option<Duration>,
        first_byte: Option<Duration>,
        request: Option<Instant>,
    ) {
        self.watch = None;
        if let Some(route) = route {
            self.route.get_or_insert_with(|| Instant::now() + route);
        }
        self.first_byte = first_byte;
        self.request = request;
    }

    /// The time by which it is too late for another attempt, and for what.
    pub(super) fn next(&self) -> Option<(Instant, Late)> {
        nearest([(self.route, Late::Route), (self.request, Late::Request)])
    }

    /// Whether the next attempt is bounded by any of them.
    pub(super) fn is_any(&self) -> bool {
        self.next().is_some() || self.first_byte.is_some()
    }

    /// Watches the connection behind `fd`, which a request is about to be sent on.
    ///
    /// # Errors
    /// When the descriptor can't be duplicated, for want of open files.
    pub(super) fn connected(&mut self, fd: RawFd, session: &Session) -> std::io::Result<()> {
        self.watch = None;
        if !self.is_any() {
            return Ok(());
        }
        let upstream = own(fd)?;
        let client = match self.request {
            Some(_) => presence::connection(session)?,
            None => None,
        };
        let mut watch = Watch::new(upstream, client);
        watch.set(self.next());
        self.watch = Some(watch);
        Ok(())
    }

    /// Notes that all of the request has been sent.
    pub(super) fn sent(&mut self) {
        if let (Some(watch), Some(time)) = (&mut self.watch, self.first_byte) {
            let first_byte = Some(Instant::now() + time);
            let all = [
                (self.route, Late::Route),
                (self.request, Late::Request),
                (first_byte, Late::FirstByte),
            ];
            watch.set(nearest(all));
        }
    }

    /// Notes that the response header is there.
    pub(super) fn answered(&mut self) {
        match (&mut self.watch, self.request) {
            (Some(watch), Some(request)) => watch.set(Some((request, Late::Request))),
            (watch, _) => *watch = None,
        }
    }

    /// Stops watching.
    pub(super) fn end(&mut self) {
        self.watch = None;
    }

    /// What has taken too long, so that the connection's end means that.
    pub(super) fn passed(&self) -> Option<Late> {
        self.watch.as_ref().and_then(Watch::passed)
    }
}

fn nearest<const N: usize>(all: [(Option<Instant>, Late); N]) -> Option<(Instant, Late)> {
    let set = all
        .into_iter()
        .filter_map(|(time, late)| Some((time?, late)));
    set.min_by_key(|(time, _)| *time)
}

/// Shuts a connection down when a time passes, unless it is dropped before.
#[derive(Debug)]
struct Watch {
    connections: Arc<Connections>,
    timer: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Connections {
    upstream: OwnedFd,
    /// The client's, where it may have to go too: it may be the one that holds everything up.
    client: Option<OwnedFd>,
    /// 0, or what was late.
    passed: AtomicU8,
}

impl Watch {
    fn new(upstream: OwnedFd, client: Option<OwnedFd>) -> Self {
        let connections = Connections {
            upstream,
            client,
            passed: AtomicU8::new(0),
        };
        Self {
            connections: Arc::new(connections),
            timer: None,
        }
    }

    /// From now on this is the time that counts.
    fn set(&mut self, next: Option<(Instant, Late)>) {
        self.stop();
        let Some((time, late)) = next else { return };
        let connections = self.connections.clone();
        self.timer = Some(tokio::spawn(async move {
            tokio::time::sleep_until(time.into()).await;
            connections.passed.store(late as u8, Ordering::Relaxed);
            // A connection that is gone already needs no end.
            let _ = shutdown(&connections.upstream, Shutdown::Both);
            if late == Late::Request
                && let Some(client) = &connections.client
            {
                tokio::time::sleep(GRACE).await;
                let _ = shutdown(client, Shutdown::Both);
            }
        }));
    }

    fn stop(&mut self) {
        if let Some(timer) = self.timer.take() {
            timer.abort();
        }
    }

    fn passed(&self) -> Option<Late> {
        let passed = self.connections.passed.load(Ordering::Relaxed);
        [Late::Route, Late::FirstByte, Late::Request]
            .into_iter()
            .find(|late| *late as u8 == passed)
    }
}

/// A descriptor of our own for the connection behind `fd`: Pingora may close its own, and the number may soon
/// name somebody else's connection. For the callbacks in which Pingora names it.
///
/// # Errors
/// When it can't be duplicated, for want of open files.
pub(super) fn own(fd: RawFd) -> std::io::Result<OwnedFd> {
    // SAFETY: Pingora names the descriptor of a connection that it keeps open during the
    // callback that this is called from; it is only borrowed until the next line.
    let connection = unsafe { BorrowedFd::borrow_raw(fd) };
    connection.try_clone_to_owned()
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_time_counts() {
        let now = Instant::now();
        let after = |millis| now + Duration::from_millis(millis);
        let mut deadlines = Deadlines::default();
        assert_eq!(deadlines.next(), None);
        deadlines.set(None, Some(Duration::from_millis(1)), Some(after(500)));
        // The time to the first byte bounds an attempt only.
        assert_eq!(deadlines.next(), Some((after(500), Late::Request)));
        deadlines.route = Some(after(300));
        assert_eq!(deadlines.next(), Some((after(300), Late::Route)));
        deadlines.set(Some(Duration::from_secs(9)), None, None);
        // It has begun, and does not begin again with the next attempt.
        assert_eq!(deadlines.next(), Some((after(300), Late::Route)));
    }
}
