//! Whether a client is still there while nothing is read from it or written to it.

use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
};

use pingora_proxy::Session;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::{io::Interest, net::TcpStream};

/// Watches the connection of a client.
pub(super) struct Presence {
    connection: TcpStream,
}

impl Presence {
    /// Watches the client of `session`. `None` when it can't be watched, for want of open files.
    pub(super) fn watch(session: &Session) -> Option<Self> {
        // Pingora has registered its own descriptor for its reads and writes.
        let connection = connection(session).ok()??;
        let connection = TcpStream::from_std(connection.into()).ok()?;
        Some(Self { connection })
    }

    /// Whether the client has closed its side already, or the connection is lost.
    pub(super) fn has_ended(&self) -> bool {
        let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        let mut connection = [PollFd::new(&self.connection, gone)];
        let now = Timespec::default();
        poll(&mut connection, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Returns when the client has closed its side of the connection, or the connection is lost.
    /// Nothing is read: what the client sends meanwhile stays where it is.
    ///
    /// A client that closes only its own side counts as gone, as for Pingora itself.
    pub(super) async fn ends(&self) {
        loop {
            match self.connection.ready(Interest::READABLE).await {
                Ok(ready) if ready.is_read_closed() => return,
                // Something has arrived. To say that nothing was there makes the next turn wait
                // for more.
                Ok(_) => {
                    let nothing = || io::Result::<()>::Err(io::ErrorKind::WouldBlock.into());
                    let _ = self.connection.try_io(Interest::READABLE, nothing);
                }
                // The runtime ends.
                Err(_) => std::future::pending().await,
            }
        }
    }
}

/// A descriptor of our own for the client's connection; `None` when the client has no connection for itself.
///
/// # Errors
/// When there is none to be had, for want of open files.
pub(super) fn connection(session: &Session) -> io::Result<Option<OwnedFd>> {
    let Some(http1) = session.as_http1() else {
        return Ok(None);
    };
    let fd = http1.stream().id();
    // SAFETY: the stream keeps its descriptor open as long as the session is borrowed; it is
    // only borrowed until the next line.
    let connection = unsafe { BorrowedFd::borrow_raw(fd) };
    connection.try_clone_to_owned().map(Some)
}
