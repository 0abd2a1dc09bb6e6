//! What a client has agreed upon in the handshake of TLS; it goes along with the connection.

use std::borrow::Cow;

/// Kept in the extension of Pingora's `SslDigest`.
#[derive(Debug)]
pub(crate) struct Agreed {
    /// `TLSv1.2` or `TLSv1.3`.
    pub(crate) version: &'static str,
    /// The cipher suite, by its name at IANA.
    pub(crate) cipher: Cow<'static, str>,
    /// The name that was asked for, in lower case.
    pub(crate) sni: Option<Box<str>>,
}
