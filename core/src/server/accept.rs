//! Taking connections from a listening socket.
//!
//! Pingora's own loop is not used. It gives each connection a task that holds the state of a TLS handshake for as
//! long as the connection lives (9 KiB), stops for a second when there are no more open files, and closes a socket with
//! connections in its queue, which are reset then.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::door::Door;
use super::transport::Transport;

/// The most connections that are taken from one socket before it closes: as many as can wait in one. Where another
/// process has taken the socket over there may always be more.
const MOST_WAITING: usize = 65_536;

/// How long nothing is taken when the process has run out of what a connection needs.
const PAUSE: Duration = Duration::from_millis(50);

/// How often it is told that it has.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// Serves the connections of a socket until `closing` says so. Those that stand in its queue then are served too.
pub(super) async fn serve(
    listener: TcpListener,
    door: Arc<Door>,
    mut closing: watch::Receiver<bool>,
) {
    let mut told = None;
    loop {
        let taken = tokio::select! {
            taken = listener.accept() => taken,
            () = closed(&mut closing) => break,
        };
        match taken {
            Ok(taken) => open(taken, &door, &closing).await,
            // The client has left again, or what it is reported for is the connection's own.
            Err(error) if !is_exhaustion(&error) => {
                tracing::debug!("a connection is lost: {error}")
            }
            Err(error) => {
                door.shared.metrics.accept_failed();
                tell(&mut told, &error);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    // Asked without the runtime, which doesn't know yet of what has come since it last looked.
    let socket = match listener.into_std() {
        Ok(socket) => socket,
        Err(error) => return tracing::warn!("connections that waited are lost: {error}"),
    };
    for _ in 0..MOST_WAITING {
        // The socket closes right behind the look that finds nothing.
        let taken = match socket.accept() {
            Ok(taken) => taken,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) if !is_exhaustion(&error) => continue,
            Err(error) => return tracing::warn!("connections that waited are lost: {error}"),
        };
        let (stream, peer) = taken;
        let stream = stream
            .set_nonblocking(true)
            .and_then(|()| TcpStream::from_std(stream));
        if let Ok(stream) = stream {
            open((stream, peer), &door, &closing).await;
        }
    }
}

/// Waits until the listeners are to be closed.
pub(super) async fn closed(closing: &mut watch::Receiver<bool>) {
    // An end without a word is one too.
    let _ = closing.wait_for(|closed| *closed).await;
}

async fn open(
    (stream, peer): (TcpStream, SocketAddr),
    door: &Arc<Door>,
    closing: &watch::Receiver<bool>,
) {
    if let Err(error) = stream.set_nodelay(true) {
        // Only a connection that is gone already has none.
        tracing::debug!("a connection is lost: {error}");
        return;
    }
    let transport = Transport::new(stream, peer);
    // Counted from here on, so that none is overlooked which has not begun to be served.
    let counted = door.shared.metrics.connections().opened();
    let (door, closing) = (door.clone(), closing.clone());
    let mut ending = closing.clone();
    // At the end of the process those that have waited are served beyond the limit: nobody gives way any more.
    let place = match door.limit.free_place() {
        None => tokio::select! {
            place = door.limit.place(&door.shared.metrics) => place,
            () = closed(&mut ending) => None,
        },
        place => place,
    };
    tokio::spawn(async move {
        let (_counted, _place) = (counted, place);
        door.serve(transport, &closing).await;
    });
}

/// Whether the process, or the system, has run out of something, so that trying at once is no use.
fn is_exhaustion(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let exhausted = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|error| exhausted.contains(&error))
}

fn tell(told: &mut Option<Instant>, error: &io::Error) {
    if told.is_none_or(|told: Instant| told.elapsed() >= TOLD_EVERY) {
        *told = Some(Instant::now());
        tracing::warn!("connections have to wait: {error}");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn running_out_is_told_from_a_client_that_left() {
        let error = |errno: rustix::io::Errno| io::Error::from_raw_os_error(errno.raw_os_error());
        assert!(is_exhaustion(&error(rustix::io::Errno::MFILE)));
        assert!(!is_exhaustion(&error(rustix::io::Errno::CONNABORTED)));
        assert!(!is_exhaustion(&io::Error::other("no number")));
    }
}
