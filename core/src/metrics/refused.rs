//! Connections of clients that are closed before their first request.

/// Why: the `reason` label of `edgewright_refused_connections_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RefusedConnection {
    /// On a listener with `proxy_protocol`, from an address that is none of `[trusted_proxies]`.
    Untrusted,
    /// There, without a header of the PROXY protocol, or with one that can't be read.
    NoProxyHeader,
    /// What a connection begins with took longer than `[limits] request_read_timeout`, or the handshake of TLS longer
    /// than `tls_handshake_timeout`.
    Late,
    /// It ended in the middle of that.
    Cut,
    /// On a listener with TLS, what is no handshake: plain HTTP, or something else.
    NotTls,
    /// Client and listener have no version, cipher, signature or protocol in common.
    TlsIncompatible,
    /// The client has ended the handshake, as it does when it doesn't believe the certificate.
    TlsAlert,
    /// A handshake that can't be right.
    TlsInvalid,
}

impl RefusedConnection {
    /// All of them, in the order of their discriminants.
    pub const ALL: [RefusedConnection; 8] = [
        RefusedConnection::Untrusted,
        RefusedConnection::NoProxyHeader,
        RefusedConnection::Late,
        RefusedConnection::Cut,
        RefusedConnection::NotTls,
        RefusedConnection::TlsIncompatible,
        RefusedConnection::TlsAlert,
        RefusedConnection::TlsInvalid,
    ];

    /// The label's value.
    pub fn name(self) -> &'static str {
        match self {
            RefusedConnection::Untrusted => "untrusted",
            RefusedConnection::NoProxyHeader => "no_proxy_header",
            RefusedConnection::Late => "late",
            RefusedConnection::Cut => "cut",
            RefusedConnection::NotTls => "not_tls",
            RefusedConnection::TlsIncompatible => "tls_incompatible",
            RefusedConnection::TlsAlert => "tls_alert",
            RefusedConnection::TlsInvalid => "tls_invalid",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_index_all() {
        for (index, reason) in RefusedConnection::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, index);
        }
    }
}
