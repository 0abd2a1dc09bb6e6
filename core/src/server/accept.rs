//! Taking connections from a listening socket.
//!
//! Pingora's own loop is not used. It gives each connection a task that holds the state of a TLS handshake for as
//! long as the connection lives (9 KiB), stops for a second when there are no more open files, and closes a socket with
//! connections in its queue, which are reset then.

use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener as Socket};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use pingora_core::protocols::SocketDigest;
use pingora_core::protocols::l4::stream::Stream as Transport;
use socket2::{Domain, Protocol, Socket as RawSocket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::door::Door;

/// Connections that the kernel may hold until they are taken. The system bounds it too (`net.core.somaxconn`).
const BACKLOG: i32 = 65_535;

/// How long nothing is taken when the process has run out of what a connection needs.
const PAUSE: Duration = Duration::from_millis(50);

/// How often it is told that it has.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// A socket of one worker that listens on an address. The kernel spreads connections over those of all workers
/// (SO_REUSEPORT).
///
/// # Errors
/// When the system refuses.
pub(super) fn listen(address: SocketAddr) -> anyhow::Result<Socket> {
    let open = || {
        let socket = RawSocket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok::<_, io::Error>(socket.into())
    };
    open().with_context(|| format!("can't listen on {address}"))
}

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
            Ok(taken) => open(taken, &door, &closing),
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
    while let Some(Ok(taken)) = waiting(&listener).await {
        open(taken, &door, &closing);
    }
}

/// Waits until the listeners are to be closed.
async fn closed(closing: &mut watch::Receiver<bool>) {
    // An end without a word is one too.
    let _ = closing.wait_for(|closed| *closed).await;
}

/// A connection that stands in the queue.
async fn waiting(listener: &TcpListener) -> Option<io::Result<(TcpStream, SocketAddr)>> {
    poll_fn(|context| match listener.poll_accept(context) {
        Poll::Ready(taken) => Poll::Ready(Some(taken)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

fn open(
    (stream, peer): (TcpStream, SocketAddr),
    door: &Arc<Door>,
    closing: &watch::Receiver<bool>,
) {
    if let Err(error) = stream.set_nodelay(true) {
        // Only a connection that is gone already has none.
        tracing::debug!("a connection is lost: {error}");
        return;
    }
    let digest = SocketDigest::from_raw_fd(stream.as_raw_fd());
    // It is new, so nothing is set yet.
    let _ = digest.peer_addr.set(Some(peer.into()));
    let mut transport = Transport::from(stream);
    pingora_core::protocols::GetSocketDigest::set_socket_digest(&mut transport, digest);
    let (door, closing) = (door.clone(), closing.clone());
    tokio::spawn(async move { door.serve(transport, &closing).await });
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

    #[test]
    fn workers_share_an_address() {
        let one = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = one.local_addr().unwrap();
        assert!(listen(address).is_ok());
        let other = "192.0.2.1:80".parse().unwrap();
        let refused = listen(other).unwrap_err();
        assert!(refused.to_string().contains("192.0.2.1:80"), "{refused}");
    }

    #[tokio::test]
    async fn what_waits_in_the_queue_is_taken() {
        let socket = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = socket.local_addr().unwrap();
        let listener = TcpListener::from_std(socket).unwrap();
        assert!(waiting(&listener).await.is_none());
        let _client = std::net::TcpStream::connect(address).unwrap();
        listener.accept().await.unwrap();
        let _more = std::net::TcpStream::connect(address).unwrap();
        // A client on the same machine is in the queue when its connect returns; tokio has to hear of it.
        while waiting(&listener).await.is_none() {
            tokio::task::yield_now().await;
        }
    }
}
