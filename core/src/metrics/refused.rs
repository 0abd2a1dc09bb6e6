//! Connections of clients that are closed before their first request.

/// Why: the `reason` label of `edgewright_refused_connections_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RefusedConnection {
    /// On a listener with `proxy_protocol`, from an address that is none of `[trusted_proxies]`.
    Untrusted,
    /// There, without a header of the PROXY protocol, or with one that can't be read.
    NoProxyHeader,
    /// What a connection begins with took longer than `[limits] request_read_timeout`.
    Late,
    /// It ended in the middle of that.
    Cut,
}

impl RefusedConnection {
    /// All of them, in the order of their discriminants.
    pub const ALL: [RefusedConnection; 4] = [
        RefusedConnection::Untrusted,
        RefusedConnection::NoProxyHeader,
        RefusedConnection::Late,
        RefusedConnection::Cut,
    ];

    /// The label's value.
    pub fn name(self) -> &'static str {
        match self {
            RefusedConnection::Untrusted => "untrusted",
            RefusedConnection::NoProxyHeader => "no_proxy_header",
            RefusedConnection::Late => "late",
            RefusedConnection::Cut => "cut",
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
