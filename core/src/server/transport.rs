//! The connection of a client, as it was accepted.
//!
//! Pingora's own stream for connections looks at the clock around each read that has to wait, keeps buffers that are not
//! used here, and tells each request anew when the connection was made, which takes memory. Nobody asks for these here.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use pingora_core::protocols::SocketDigest;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes that are read at once of a request that has been waited for: what Pingora has room for when it begins to read one.
const FIRST: usize = 4096;

/// A connection, and what requests are told of it.
#[derive(Debug)]
pub(super) struct Transport {
    stream: TcpStream,
    /// What was read, and is to be read again.
    again: Bytes,
    digest: Arc<SocketDigest>,
}

impl Transport {
    /// A connection from `peer`.
    pub(super) fn new(stream: TcpStream, peer: SocketAddr) -> Self {
        let digest = SocketDigest::from_raw_fd(stream.as_raw_fd());
        // It is new, so nothing is set yet.
        let _ = digest.peer_addr.set(Some(peer.into()));
        Self {
            stream,
            again: Bytes::new(),
            digest: Arc::new(digest),
        }
    }

    /// Its addresses.
    pub(super) fn digest(&self) -> &Arc<SocketDigest> {
        &self.digest
    }

    /// Gives it other addresses.
    pub(super) fn set_digest(&mut self, digest: SocketDigest) {
        self.digest = Arc::new(digest);
    }

    /// Has these bytes read again, before all others.
    pub(super) fn rewind(&mut self, bytes: &[u8]) {
        self.again = match self.again.is_empty() {
            true => Bytes::copy_from_slice(bytes),
            false => [bytes, &self.again].concat().into(),
        };
    }

    /// Whether there is something to read, or an end; what fails here fails again when it is read.
    ///
    /// To look at it and leave it there would be a system call more for each request. And the runtime can't tell without
    /// one: it may not have noticed yet that all has been read.
    pub(super) fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.again.is_empty() {
            return Poll::Ready(());
        }
        let mut room = [MaybeUninit::uninit(); FIRST];
        let mut buffer = ReadBuf::uninit(&mut room);
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
        if read.is_ok() {
            self.again = Bytes::copy_from_slice(buffer.filled());
        }
        Poll::Ready(())
    }
}

impl AsRawFd for Transport {
    fn as_raw_fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.again.is_empty() {
            let length = buffer.remaining().min(self.again.len());
            buffer.put_slice(&self.again.split_to(length));
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
