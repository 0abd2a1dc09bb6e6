//! Connections of clients: how many there are, and how many still have something to get.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Counts connections of clients. Two additions for each connection; requests don't touch it.
#[derive(Debug, Default)]
pub struct Connections {
    open: AtomicUsize,
    unsent: AtomicUsize,
}

/// A connection that is open; dropping it says that it is closed.
#[derive(Debug)]
pub(crate) struct OpenConnection(Arc<Connections>);

/// Whether one connection has bytes that its client has not taken; dropping it says that it has none.
#[derive(Debug)]
pub(crate) struct Unsent {
    connections: Arc<Connections>,
    some: Arc<AtomicBool>,
}

/// Tells the same of the connection, for who doesn't have it.
#[derive(Debug)]
pub(crate) struct Sending(Arc<AtomicBool>);

impl Sending {
    pub(crate) fn has_unsent(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Connections {
    /// Connections that are open now.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    /// Connections of HTTP/2 with bytes that wait for their client. Those of HTTP/1 have a request in flight then.
    pub(crate) fn unsent(&self) -> usize {
        self.unsent.load(Ordering::Acquire)
    }

    pub(crate) fn opened(self: &Arc<Self>) -> OpenConnection {
        self.open.fetch_add(1, Ordering::AcqRel);
        OpenConnection(self.clone())
    }

    pub(crate) fn sending(self: &Arc<Self>) -> Unsent {
        Unsent {
            connections: self.clone(),
            some: Arc::default(),
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Unsent {
    pub(crate) fn sending(&self) -> Sending {
        Sending(self.some.clone())
    }

    /// Whether the last attempt to send has left something behind.
    pub(crate) fn set(&mut self, some: bool) {
        // Nobody else changes it.
        match (self.some.load(Ordering::Acquire), some) {
            (false, true) => self.connections.unsent.fetch_add(1, Ordering::AcqRel),
            (true, false) => self.connections.unsent.fetch_sub(1, Ordering::AcqRel),
            _ => return,
        };
        self.some.store(some, Ordering::Release);
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_is_not_counted_any_more() {
        let connections = Arc::new(Connections::default());
        let (first, second) = (connections.opened(), connections.opened());
        let mut sending = connections.sending();
        for some in [true, true, false, true] {
            sending.set(some);
            assert_eq!(connections.unsent(), usize::from(some));
            assert_eq!(sending.sending().has_unsent(), some);
        }
        assert_eq!(connections.open(), 2);
        drop((first, sending));
        assert_eq!((connections.open(), connections.unsent()), (1, 0));
        drop(second);
        assert_eq!(connections.open(), 0);
    }
}
