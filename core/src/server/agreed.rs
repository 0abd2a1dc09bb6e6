//! What was agreed upon in the handshake of TLS, as requests are told of it.

use std::borrow::Cow;

use pingora_core::protocols::tls::SslDigest;
use rustls::{CipherSuite, ProtocolVersion, ServerConnection};

/// What goes along with a connection.
pub(super) fn digest(session: &ServerConnection) -> SslDigest {
    let suite = session.negotiated_cipher_suite();
    SslDigest::new(
        suite.map_or(Cow::Borrowed(""), |suite| cipher(suite.suite())),
        version(session.protocol_version()).into(),
        // The name that was asked for: what Pingora has for others' data, others can't fill (`SslDigestExtension::set`),
        // and no client is asked for a certificate with an organization.
        session.server_name().map(str::to_owned),
        None,
        Vec::new(),
    )
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
