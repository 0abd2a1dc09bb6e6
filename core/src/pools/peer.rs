//! What Pingora is told about an endpoint: where it is, what is spoken there, and for how long it is waited for.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pingora_core::protocols::{ALPN, TcpKeepalive};
use pingora_core::upstreams::peer::{HttpPeer, Scheme};

use super::endpoint::Address;
use super::introduction::Introduction;
use crate::config::{PoolConfig, Protocol, Timeouts, Tls};

/// The most that a server may send on a connection, and on a stream of it, before it waits for the client
/// that reads, in bytes: Pingora keeps what the client has not read. Its default of 8 MiB for each stream
/// would be 800 MiB for a connection of 100 streams.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;

/// The peer of an endpoint of a pool. Requests only clone it.
///
/// # Errors
/// When the path of a Unix socket can't be one: not UTF-8, or too long for the system.
pub(super) fn make(address: &Address, config: &PoolConfig) -> Result<HttpPeer, String> {
    let mut peer = match address {
        // A SocketAddr needs no resolution: this is the only form that neither blocks nor
        // panics (pingora #570).
        Address::Tcp(tcp) => HttpPeer::new(*tcp, false, String::new()),
        Address::Unix(path) => unix_peer(path)?,
    };
    set_timeouts(&mut peer, &config.timeouts);
    if let Some(tls) = &config.tls {
        set_tls(&mut peer, tls);
    }
    set_protocol(&mut peer, config);
    if let Some(version) = config.proxy_protocol {
        // Of the proxy's own connections, for calls of hooks; those for clients name the client.
        peer.options.custom_l4 = Some(Arc::new(Introduction::own(version)));
    }
    Ok(peer)
}

/// Whether the peers of two configurations are the same, so that endpoints can be carried over.
pub(super) fn same(one: &PoolConfig, other: &PoolConfig) -> bool {
    one.timeouts == other.timeouts
        && one.protocol == other.protocol
        && one.proxy_protocol == other.proxy_protocol
        && one.connections == other.connections
        && one.tls == other.tls
}

fn unix_peer(path: &Path) -> Result<HttpPeer, String> {
    let text = path
        .to_str()
        .ok_or_else(|| format!("{} is not UTF-8", path.display()))?;
    HttpPeer::new_uds(text, false, String::new()).map_err(|error| error.to_string())
}

/// Every timeout is set: Pingora's own are infinite.
fn set_timeouts(peer: &mut HttpPeer, timeouts: &Timeouts) {
    let options = &mut peer.options;
    options.connection_timeout = Some(timeouts.connect);
    // Bounds the handshake of TLS as well.
    options.total_connection_timeout = Some(timeouts.connect);
    options.read_timeout = Some(timeouts.read);
    options.write_timeout = Some(timeouts.write);
    options.idle_timeout = Some(timeouts.idle);
    // Finds peers that vanished without a word (a lost node, a stateful firewall) within 90 s.
    options.tcp_keepalive = Some(TcpKeepalive {
        idle: Duration::from_secs(60),
        interval: Duration::from_secs(10),
        count: 3,
        // 0 leaves it to the system.
        #[cfg(target_os = "linux")]
        user_timeout: Duration::ZERO,
    });
}

/// Pingora's connector makes a configuration of it for each connection; sessions are not resumed.
fn set_tls(peer: &mut HttpPeer, tls: &Tls) {
    peer.scheme = Scheme::HTTPS;
    // Never empty: without a name Pingora would not verify anything.
    peer.sni = tls.server_name().to_owned();
    peer.client_cert_key = tls.identity().cloned();
    // What tells connections apart has no authorities in it, and of certificates the serial only.
    peer.group_key = tls.key();
    let options = &mut peer.options;
    options.ca = Some(tls.authorities().clone());
    options.verify_cert = tls.verify();
    options.verify_hostname = tls.verify();
}

fn set_protocol(peer: &mut HttpPeer, config: &PoolConfig) {
    let options = &mut peer.options;
    options.alpn = match config.protocol {
        Protocol::Http1 => return,
        Protocol::Http2 => ALPN::H2,
        Protocol::Auto => ALPN::H2H1,
    };
    options.max_h2_streams = config.connections.streams;
    options.h2_stream_window_size = Some(STREAM_WINDOW);
    options.h2_connection_window_size = Some(CONNECTION_WINDOW);
}
