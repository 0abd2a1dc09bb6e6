//! A connection on which TLS is spoken.
//!
//! Pingora's own stream for it can only be had from Pingora's handshake, which keeps to itself why one has failed.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use pingora_core::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    TimingDigest, UniqueID, UniqueIDType, l4::stream::Stream, raw_connect::ProxyDigest,
    tls::SslDigest,
};
use pingora_core::tls::ServerTlsStream;
use rustls::{CipherSuite, ProtocolVersion};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};

/// A connection whose handshake is done, and what was agreed upon in it.
pub(super) struct Encrypted {
    tls: ServerTlsStream<Stream>,
    digest: Arc<SslDigest>,
    /// What was read, and is to be read again.
    again: Bytes,
}

impl Encrypted {
    pub(super) fn new(tls: ServerTlsStream<Stream>) -> Self {
        let session = tls.get_ref().1;
        let suite = session.negotiated_cipher_suite();
        let digest = SslDigest::new(
            suite.map_or(Cow::Borrowed(""), |suite| cipher(suite.suite())),
            version(session.protocol_version()).into(),
            // The name that was asked for: what Pingora has for others' data, others can't fill
            // (`SslDigestExtension::set`), and no client is asked for a certificate with an organization.
            session.server_name().map(str::to_owned),
            None,
            Vec::new(),
        );
        Self {
            digest: Arc::new(digest),
            again: Bytes::new(),
            tls,
        }
    }

    /// Has these bytes read again, before all others.
    pub(super) fn rewind(&mut self, bytes: Vec<u8>) {
        self.again = bytes.into();
    }

    fn transport(&self) -> &Stream {
        self.tls.get_ref().0
    }

    fn transport_mut(&mut self) -> &mut Stream {
        self.tls.get_mut().0
    }

    fn pinned(&mut self) -> Pin<&mut ServerTlsStream<Stream>> {
        Pin::new(&mut self.tls)
    }
}

fn version(version: Option<ProtocolVersion>) -> &'static str {
    match version {
        Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
        Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
        _ => "",
    }
}

/// The name of a cipher suite in the registry of IANA: the TLS stack marks those of TLS 1.3.
fn cipher(suite: CipherSuite) -> Cow<'static, str> {
    let name = suite.as_str().unwrap_or_default();
    match name.strip_prefix("TLS13_") {
        Some(rest) => format!("TLS_{rest}").into(),
        None => name.into(),
    }
}

impl fmt::Debug for Encrypted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encrypted")
            .field("transport", self.transport())
            .finish_non_exhaustive()
    }
}

impl Ssl for Encrypted {
    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        Some(self.digest.clone())
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        match self.tls.get_ref().1.alpn_protocol()? {
            b"h2" => Some(ALPN::H2),
            _ => Some(ALPN::H1),
        }
    }
}

impl Peek for Encrypted {}

impl AsyncRead for Encrypted {
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
        self.pinned().poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.pinned().poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pinned().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pinned().poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.pinned().poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.tls.is_write_vectored()
    }
}

#[async_trait]
impl Shutdown for Encrypted {
    async fn shutdown(&mut self) {
        // The other end may be gone: there is nobody left to tell.
        let _ = self.tls.shutdown().await;
    }
}

impl UniqueID for Encrypted {
    fn id(&self) -> UniqueIDType {
        self.transport().id()
    }
}

impl GetTimingDigest for Encrypted {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.transport().get_timing_digest()
    }

    fn get_read_pending_time(&self) -> Duration {
        self.transport().get_read_pending_time()
    }

    fn get_write_pending_time(&self) -> Duration {
        self.transport().get_write_pending_time()
    }
}

impl GetProxyDigest for Encrypted {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.transport().get_proxy_digest()
    }

    fn set_proxy_digest(&mut self, digest: ProxyDigest) {
        self.transport_mut().set_proxy_digest(digest);
    }
}

impl GetSocketDigest for Encrypted {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.transport().get_socket_digest()
    }

    fn set_socket_digest(&mut self, digest: SocketDigest) {
        self.transport_mut().set_socket_digest(digest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_ciphers_have_their_usual_names() {
        assert_eq!(version(Some(ProtocolVersion::TLSv1_3)), "TLSv1.3");
        let newer = CipherSuite::TLS13_AES_128_GCM_SHA256;
        assert_eq!(cipher(newer), "TLS_AES_128_GCM_SHA256");
        let older = CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256;
        assert_eq!(cipher(older), "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256");
    }
}
