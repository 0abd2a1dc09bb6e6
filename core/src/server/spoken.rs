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

/// A connection that tells Pingora that HTTP/2 was agreed upon, as TLS would. All else is the connection's
/// own.
#[derive(Debug)]
pub(super) struct Http2(pub(super) Stream);

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
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Http2 {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}

#[async_trait]
impl Shutdown for Http2 {
    async fn shutdown(&mut self) {
        Shutdown::shutdown(&mut self.0).await;
    }
}

impl UniqueID for Http2 {
    fn id(&self) -> UniqueIDType {
        self.0.id()
    }
}

impl GetTimingDigest for Http2 {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.0.get_timing_digest()
    }

    fn get_read_pending_time(&self) -> Duration {
        self.0.get_read_pending_time()
    }

    fn get_write_pending_time(&self) -> Duration {
        self.0.get_write_pending_time()
    }
}

impl GetProxyDigest for Http2 {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.0.get_proxy_digest()
    }

    fn set_proxy_digest(&mut self, digest: ProxyDigest) {
        self.0.set_proxy_digest(digest);
    }
}

impl GetSocketDigest for Http2 {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.0.get_socket_digest()
    }

    fn set_socket_digest(&mut self, digest: SocketDigest) {
        self.0.set_socket_digest(digest);
    }
}
