//! A connection of which is known what is spoken on it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use pingora_core::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    TimingDigest, UniqueID, UniqueIDType, l4::stream::Stream, raw_connect::ProxyDigest,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufWriter, ReadBuf};

use crate::metrics::Unsent;

/// Bytes that are collected before they are written, so that a header and a short body go together: what fits into a
/// packet, as Pingora's own. Nothing is collected of what is read: HTTP/1 reads into buffers that are there only as long as
/// something is read (Pingora's own would be 64 KiB for each connection), HTTP/2 has its own.
const WRITTEN: usize = 1460;

/// A connection that tells Pingora what was agreed upon, as TLS would. All else is the connection's own.
#[derive(Debug)]
pub(super) struct Spoken {
    stream: BufWriter<Stream>,
    /// Only with HTTP/2, where a response counts as ended when its last byte was taken, which may still wait for the
    /// client then: the process doesn't end before it is gone.
    unsent: Option<Unsent>,
}

impl Spoken {
    pub(super) fn http1(stream: Stream) -> Self {
        Self::new(stream, None)
    }

    pub(super) fn http2(stream: Stream, unsent: Unsent) -> Self {
        Self::new(stream, Some(unsent))
    }

    pub(super) fn is_http2(&self) -> bool {
        self.unsent.is_some()
    }

    fn new(stream: Stream, unsent: Option<Unsent>) -> Self {
        let stream = BufWriter::with_capacity(WRITTEN, stream);
        Self { stream, unsent }
    }

    /// Takes note of whether an attempt to send has left something behind.
    fn sent<T>(&mut self, done: Poll<T>) -> Poll<T> {
        if let Some(unsent) = &mut self.unsent {
            unsent.set(done.is_pending());
        }
        done
    }
}

/// A response that breaks off leaves what was written of it here: Pingora only drops the connection.
impl Drop for Spoken {
    fn drop(&mut self) {
        if !self.stream.buffer().is_empty() {
            // There is nobody who could wait; the system has room for so little, unless the client reads nothing.
            let _ = self.stream.flush().now_or_never();
        }
    }
}

impl Ssl for Spoken {
    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.is_http2().then_some(ALPN::H2)
    }
}

impl Peek for Spoken {}

impl AsyncRead for Spoken {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Spoken {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.sent(done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(context);
        self.sent(done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.sent(done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[async_trait]
impl Shutdown for Spoken {
    async fn shutdown(&mut self) {
        // Writes what was collected; a client that has left needs nothing any more.
        let _ = self.stream.shutdown().await;
    }
}

impl UniqueID for Spoken {
    fn id(&self) -> UniqueIDType {
        self.stream.get_ref().id()
    }
}

impl GetTimingDigest for Spoken {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.stream.get_ref().get_timing_digest()
    }

    fn get_read_pending_time(&self) -> Duration {
        self.stream.get_ref().get_read_pending_time()
    }

    fn get_write_pending_time(&self) -> Duration {
        self.stream.get_ref().get_write_pending_time()
    }
}

impl GetProxyDigest for Spoken {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.stream.get_ref().get_proxy_digest()
    }

    fn set_proxy_digest(&mut self, digest: ProxyDigest) {
        self.stream.get_mut().set_proxy_digest(digest);
    }
}

impl GetSocketDigest for Spoken {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.stream.get_ref().get_socket_digest()
    }

    fn set_socket_digest(&mut self, digest: SocketDigest) {
        self.stream.get_mut().set_socket_digest(digest);
    }
}
