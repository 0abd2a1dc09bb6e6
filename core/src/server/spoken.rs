//! A connection on which HTTP/2 is spoken, as is known already.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use pingora_core::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    TimingDigest, UniqueID, UniqueIDType, l4::stream::Stream, raw_connect::ProxyDigest,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::metrics::Unsent;

/// A connection that tells Pingora that HTTP/2 was agreed upon, as TLS would. All else is the connection's
/// own.
///
/// A response counts as ended when HTTP/2 has taken its last byte, which may still wait for the client then:
/// so what waits is counted here, and the process doesn't end before it is gone.
#[derive(Debug)]
pub(super) struct Http2 {
    stream: Stream,
    unsent: Unsent,
}

impl Http2 {
    pub(super) fn new(stream: Stream, unsent: Unsent) -> Self {
        Self { stream, unsent }
    }
}

impl Ssl for Http2 {
    fn selected_alpn_proto(&self) -> Option<ALPN> {
        Some(ALPN::H2)
    }
}

impl Peek for Http2 {}

impl AsyncRead for Http2 {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Http2 {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.unsent.set(done.is_pending());
        done
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(context);
        self.unsent.set(done.is_pending());
        done
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
        self.unsent.set(done.is_pending());
        done
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[async_trait]
impl Shutdown for Http2 {
    async fn shutdown(&mut self) {
        Shutdown::shutdown(&mut self.stream).await;
    }
}

impl UniqueID for Http2 {
    fn id(&self) -> UniqueIDType {
        self.stream.id()
    }
}

impl GetTimingDigest for Http2 {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.stream.get_timing_digest()
    }

    fn get_read_pending_time(&self) -> Duration {
        self.stream.get_read_pending_time()
    }

    fn get_write_pending_time(&self) -> Duration {
        self.stream.get_write_pending_time()
    }
}

impl GetProxyDigest for Http2 {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.stream.get_proxy_digest()
    }

    fn set_proxy_digest(&mut self, digest: ProxyDigest) {
        self.stream.set_proxy_digest(digest);
    }
}

impl GetSocketDigest for Http2 {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.stream.get_socket_digest()
    }

    fn set_socket_digest(&mut self, digest: SocketDigest) {
        self.stream.set_socket_digest(digest);
    }
}
