//! The handshake of TLS, before Pingora gets the connection.
//!
//! It is Pingora's own, with the settings of the generation in force; Pingora's listeners would take theirs once, at
//! the start, and wait for a silent client for 60 s.

use std::{any::Any, borrow::Cow, io, sync::Arc, time::Duration};

use async_trait::async_trait;
use pingora_core::{
    listeners::{TlsAccept, tls::Acceptor},
    protocols::{
        Stream,
        l4::stream::Stream as Transport,
        tls::{TlsRef, server::handshake_with_callback},
    },
    tls::ServerConfig,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::door::more;
use crate::{metrics::RefusedConnection, proxy::Agreed};

/// The content type of a record that holds a handshake (RFC 8446 section 5.1): the first byte that a client sends.
const HANDSHAKE: u8 = 22;

/// What somebody is told who speaks HTTP without TLS, as browsers do where `http://` is typed.
const PLAIN: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 45\r\n\
    connection: close\r\n\r\nthis port speaks HTTPS: ask it with https://\n";

/// How long one is waited for who speaks without TLS, until what it has sent is read: what is unread when a connection
/// is closed takes the answer with it.
const FAREWELL: Duration = Duration::from_secs(1);

/// Shakes hands within `limit`. `settings` is asked once the client has begun to speak.
///
/// `Err`: the reason, or none when there was nothing to refuse.
pub(super) async fn shake(
    stream: Transport,
    limit: Duration,
    settings: impl FnOnce() -> Option<Arc<ServerConfig>>,
) -> Result<Stream, Option<RefusedConnection>> {
    let shaken = tokio::time::timeout(limit, begin(stream, settings)).await;
    shaken.unwrap_or(Err(Some(RefusedConnection::Late)))
}

async fn begin(
    mut stream: Transport,
    settings: impl FnOnce() -> Option<Arc<ServerConfig>>,
) -> Result<Stream, Option<RefusedConnection>> {
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
    let acceptor = Acceptor::from_server_config(settings);
    match handshake_with_callback(&acceptor, stream, &Noted).await {
        Ok(stream) => Ok(Box::new(stream)),
        Err(error) => {
            tracing::debug!("TLS handshake: {error}");
            Err(reason(error.root_cause().downcast_ref()))
        }
    }
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
fn reason(error: Option<&io::Error>) -> Option<RefusedConnection> {
    let error = error?;
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

/// Keeps what was agreed upon with the connection.
struct Noted;

#[async_trait]
impl TlsAccept for Noted {
    async fn handshake_complete_callback(
        &self,
        tls: &TlsRef,
    ) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::new(Agreed {
            version: match tls.version()? {
                "TLSv1_2" => "TLSv1.2",
                "TLSv1_3" => "TLSv1.3",
                other => other,
            },
            cipher: iana(tls.current_cipher_name()?),
            sni: tls.server_name().map(Into::into),
        }))
    }
}

/// The name of a cipher suite in the registry of IANA: the TLS stack marks those of TLS 1.3.
fn iana(cipher: &'static str) -> Cow<'static, str> {
    match cipher.strip_prefix("TLS13_") {
        Some(rest) => format!("TLS_{rest}").into(),
        None => cipher.into(),
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
    fn ciphers_have_their_registered_names() {
        assert_eq!(iana("TLS13_AES_128_GCM_SHA256"), "TLS_AES_128_GCM_SHA256");
        let older = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
        assert_eq!(iana(older), older);
    }

    #[test]
    fn failures_have_their_reasons() {
        let of = |error: rustls::Error| {
            let error = io::Error::new(io::ErrorKind::InvalidData, error);
            reason(Some(&error)).map(RefusedConnection::name)
        };
        let alert = rustls::AlertDescription::UnknownCA;
        assert_eq!(of(rustls::Error::AlertReceived(alert)), Some("tls_alert"));
        let older = rustls::PeerIncompatible::SupportedVersionsExtensionRequired;
        assert_eq!(of(older.into()), Some("tls_incompatible"));
        assert_eq!(of(rustls::Error::DecryptError), Some("tls_invalid"));
        let cut = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert_eq!(reason(Some(&cut)), Some(RefusedConnection::Cut));
        assert_eq!(reason(None), None);
    }
}
