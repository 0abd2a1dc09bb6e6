//! Listening ports from the system.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use anyhow::{Context, Result};

/// Free loopback addresses, all different. The sockets are closed again, so another process may
/// take one before it is used: a start that fails is tried again with others.
pub(crate) fn free(count: usize) -> Result<Vec<SocketAddr>> {
    let listeners: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<Result<_, _>>()
        .context("cannot get a free port")?;
    listeners
        .iter()
        .map(|listener| listener.local_addr().context("cannot read a port back"))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    #[test]
    fn addresses_differ() {
        let addresses = super::free(8).unwrap();
        assert_eq!(addresses.iter().collect::<HashSet<_>>().len(), 8);
    }
}
