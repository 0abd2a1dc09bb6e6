//! A connection of which is known what is spoken on it.

use std::fmt::Debug;
use std::future::poll_fn;
use std::io::{self, BufRead as _};
use std::os::fd::AsRawFd as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::FutureExt as _;
use pingora_core::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    TimingDigest, UniqueID, UniqueIDType, raw_connect::ProxyDigest, tls::SslDigest,
};
use pingora_core::tls::ServerTlsStream;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufWriter, ReadBuf};

use super::transport::Transport;
use crate::metrics::Unsent;

/// Bytes that are collected before they are written, so that a header and a short body go together: what fits into a
/// packet, as Pingora's own; with TLS, into one record. Nothing is collected of what is read: HTTP/1 reads into buffers that are there only as long as
/// something is read (Pingora's own would be 64 KiB for each connection), HTTP/2 has its own.
const WRITTEN: usize = 1460;

/// What carries the bytes: the connection itself, or TLS on it.
pub(super) trait Carrier:
    AsyncRead + AsyncWrite + Debug + Unpin + Send + Sync + 'static
{
    /// The connection.
    fn transport(&self) -> &Transport;
    /// The same.
    fn transport_mut(&mut self) -> &mut Transport;
    /// Whether there is something to read, or an end.
    fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<()>;
}

impl Carrier for Transport {
    fn transport(&self) -> &Transport {
        self
    }

    fn transport_mut(&mut self) -> &mut Transport {
        self
    }

    fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<()> {
        Transport::poll_readable(self, context)
    }
}

impl Carrier for ServerTlsStream<Transport> {
    fn transport(&self) -> &Transport {
        self.get_ref().0
    }

    fn transport_mut(&mut self) -> &mut Transport {
        self.get_mut().0
    }

    fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let (transport, session) = self.get_mut();
        // What is decrypted already, the end that the client has announced included.
        match session.reader().fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                transport.poll_readable(context)
            }
            _ => Poll::Ready(()),
        }
    }
}

/// A connection that tells Pingora what was agreed upon. All else is the connection's own.
#[derive(Debug)]
pub(super) struct Spoken<C: Carrier = Transport> {
    stream: BufWriter<C>,
    http2: bool,
    /// Only with HTTP/2, where a response counts as ended when its last byte was taken, which may still wait for the
    /// client then: the process doesn't end before it is gone.
    unsent: Option<Unsent>,
    /// What was agreed upon in the handshake of TLS.
    tls: Option<Arc<SslDigest>>,
    /// What was read, and is to be read again.
    again: Bytes,
}

/// A connection for requests.
pub(super) enum Opened {
    Plain(Box<Spoken>),
    Tls(Box<Spoken<ServerTlsStream<Transport>>>),
}

impl Spoken {
    pub(super) fn http1(stream: Transport) -> Self {
        Self::new(stream, false)
    }

    pub(super) fn http2(stream: Transport) -> Self {
        Self::new(stream, true)
    }
}

impl Spoken<ServerTlsStream<Transport>> {
    /// After a handshake, in which this was agreed upon.
    pub(super) fn encrypted(stream: ServerTlsStream<Transport>, digest: SslDigest) -> Self {
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let mut spoken = Self::new(stream, http2);
        spoken.tls = Some(Arc::new(digest));
        spoken
    }
}

impl<C: Carrier> Spoken<C> {
    fn new(stream: C, http2: bool) -> Self {
        Self {
            stream: BufWriter::with_capacity(WRITTEN, stream),
            http2,
            unsent: None,
            tls: None,
            again: Bytes::new(),
        }
    }

    pub(super) fn is_http2(&self) -> bool {
        self.http2
    }

    /// Waits until there is something to read, or the client has left.
    pub(super) async fn readable(&mut self) {
        if self.again.is_empty() {
            let carrier = self.stream.get_mut();
            poll_fn(|context| carrier.poll_readable(context)).await;
        }
    }

    /// Has these bytes read again, before all others.
    pub(super) fn rewind(&mut self, bytes: Vec<u8>) {
        self.again = bytes.into();
    }

    /// Counts the connection among those with something unsent, as long as that is so.
    pub(super) fn count_unsent(&mut self, unsent: Unsent) {
        self.unsent = Some(unsent);
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
impl<C: Carrier> Drop for Spoken<C> {
    fn drop(&mut self) {
        if !self.stream.buffer().is_empty() {
            // There is nobody who could wait; the system has room for so little, unless the client reads nothing.
            let _ = self.stream.flush().now_or_never();
        }
    }
}

impl<C: Carrier> Ssl for Spoken<C> {
    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.tls.clone()
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.is_http2().then_some(ALPN::H2)
    }
}

impl<C: Carrier> Peek for Spoken<C> {}

impl<C: Carrier> AsyncRead for Spoken<C> {
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

impl<C: Carrier> AsyncWrite for Spoken<C> {
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
impl<C: Carrier> Shutdown for Spoken<C> {
    async fn shutdown(&mut self) {
        // Writes what was collected; a client that has left needs nothing any more.
        let _ = self.stream.shutdown().await;
    }
}

impl<C: Carrier> UniqueID for Spoken<C> {
    fn id(&self) -> UniqueIDType {
        self.stream.get_ref().transport().as_raw_fd()
    }
}

/// Nobody asks when it was made.
impl<C: Carrier> GetTimingDigest for Spoken<C> {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        Vec::new()
    }
}

/// It goes through no proxy that is asked to connect.
impl<C: Carrier> GetProxyDigest for Spoken<C> {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        None
    }

    fn set_proxy_digest(&mut self, _: ProxyDigest) {}
}

impl<C: Carrier> GetSocketDigest for Spoken<C> {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        Some(self.stream.get_ref().transport().digest().clone())
    }

    fn set_socket_digest(&mut self, digest: SocketDigest) {
        self.stream.get_mut().transport_mut().set_digest(digest);
    }
}
