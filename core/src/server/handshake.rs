//! The handshake of TLS, before Pingora gets the connection.
//!
//! Pingora's listeners take their settings once, at the start, and wait for a silent client for 60 s. Here they are those
//! of the generation in force, and the whole has a limit.

use std::{io, sync::Arc, time::Duration};

use pingora_core::tls::{ServerConfig, ServerTlsStream, TlsAcceptor};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{
    agreed,
    door::{PREFACE, more},
    spoken::Spoken,
    transport::Transport,
};
use crate::metrics::RefusedConnection;

/// A connection on which TLS is spoken.
type Encrypted = Spoken<ServerTlsStream<Transport>>;

/// The content type of a record that holds a handshake (RFC 8446 section 5.1): the first byte that a client sends.
const HANDSHAKE: u8 = 22;

/// What somebody is told who speaks HTTP without TLS, as browsers do where `http://` is typed.
const PLAIN: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 45\r\n\
    connection: close\r\n\r\nthis port speaks HTTPS: ask it with https://\n";

/// How long one is waited for who speaks without TLS, until what it has sent is read: what is unread when a connection
/// is closed takes the answer with it.
const FAREWELL: Duration = Duration::from_secs(1);

/// Shakes hands within `limit`, the preface of HTTP/2 included where that is agreed upon. `settings` is asked once the client has begun to speak.
///
/// `Err`: the reason, or none when there was nothing to refuse.
pub(super) async fn shake(
    stream: Transport,
    limit: Duration,
    settings: impl FnOnce() -> Option<Arc<ServerConfig>>,
) -> Result<Encrypted, Option<RefusedConnection>> {
    let shaken = tokio::time::timeout(limit, begin(stream, settings)).await;
    shaken.unwrap_or(Err(Some(RefusedConnection::Late)))
}

async fn begin(
    mut stream: Transport,
    settings: impl FnOnce() -> Option<Arc<ServerConfig>>,
) -> Result<Encrypted, Option<RefusedConnection>> {
    let mut bytes = Vec::with_capacity(512);
    more(&mut stream, &mut bytes, 512).await?;
    if bytes[0] != HANDSHAKE {
        // A method of HTTP is in capital letters.
        if bytes[0].is_ascii_uppercase() {
            farewell(stream).await;
        }
        return Err(Some(RefusedConnection::NotTls));
    }
    stream.rewind(&bytes);
    // A listener with TLS has settings in every generation.
    let settings = settings().ok_or(None)?;
    match TlsAcceptor::from(settings).accept(stream).await {
        Ok(stream) => {
            let digest = agreed::digest(stream.get_ref().1);
            let mut stream = Spoken::encrypted(stream, digest);
            expect_preface(&mut stream).await?;
            Ok(stream)
        }
        Err(error) => {
            tracing::debug!("TLS handshake: {error}");
            Err(reason(&error))
        }
    }
}

/// Where HTTP/2 was agreed upon, waits for what it begins with: Pingora would wait without a limit.
async fn expect_preface(stream: &mut Encrypted) -> Result<(), Option<RefusedConnection>> {
    if !stream.is_http2() {
        return Ok(());
    }
    let mut bytes = Vec::with_capacity(PREFACE.len());
    while bytes.len() < PREFACE.len() {
        let mut piece = [0; PREFACE.len()];
        let room = PREFACE.len() - bytes.len();
        match stream.read(&mut piece[..room]).await {
            // Who only wants to see the certificate leaves like this.
            Ok(0) if bytes.is_empty() => return Err(None),
            Ok(0) => return Err(Some(RefusedConnection::Cut)),
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
            Err(error) => return Err(reason(&error)),
        }
        if !PREFACE.starts_with(&bytes) {
            return Err(Some(RefusedConnection::TlsInvalid));
        }
    }
    stream.rewind(bytes);
    Ok(())
}

async fn farewell(mut stream: Transport) {
    let said = async {
        stream.write_all(PLAIN).await?;
        stream.flush().await?;
        stream.shutdown().await?;
        let mut rest = stream.take(64 * 1024);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    // Whether they hear it is up to them.
    let _ = tokio::time::timeout(FAREWELL, said).await;
}

/// Why a handshake failed, from what the TLS stack says.
fn reason(error: &io::Error) -> Option<RefusedConnection> {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(rustls::Error::AlertReceived(_)) => Some(RefusedConnection::TlsAlert),
        Some(rustls::Error::PeerIncompatible(_) | rustls::Error::NoApplicationProtocol) => {
            Some(RefusedConnection::TlsIncompatible)
        }
        Some(_) => Some(RefusedConnection::TlsInvalid),
        None if error.kind() == io::ErrorKind::UnexpectedEof => Some(RefusedConnection::Cut),
        // The connection broke.
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_farewell_is_as_long_as_it_says() {
        let text = String::from_utf8_lossy(PLAIN);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
        assert!(
            head.contains(&format!("content-length: {}", body.len())),
            "{head}"
        );
    }

    #[test]
    fn failures_have_their_reasons() {
        let of = |error: rustls::Error| {
            let error = io::Error::new(io::ErrorKind::InvalidData, error);
            reason(&error).map(RefusedConnection::name)
        };
        let alert = rustls::AlertDescription::UnknownCA;
        assert_eq!(of(rustls::Error::AlertReceived(alert)), Some("tls_alert"));
        let older = rustls::PeerIncompatible::SupportedVersionsExtensionRequired;
        assert_eq!(of(older.into()), Some("tls_incompatible"));
        assert_eq!(of(rustls::Error::DecryptError), Some("tls_invalid"));
        let cut = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert_eq!(reason(&cut), Some(RefusedConnection::Cut));
        let broken = io::Error::from(io::ErrorKind::ConnectionReset);
        assert_eq!(reason(&broken), None);
    }
}
